import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { DANGEROUS } from './builtins.ts';
import { readRows } from './catalog.ts';
import type { SurveyContext } from './facts.ts';

/**
 * Digests (MD5, as the server computes it) of the few built-ins of PostgreSQL 15 and 17 that are
 * SQL in a string.
 */
const SQL_TEXTS: readonly string[] = [
  '693d427fcd1b0b7b530633f099a2c224', // quote_literal
  '945146006b285e964ac83073e10a3d6b', // quote_nullable
  'd046c267fcecd57d0b3fce72693ceda7', // textanycat
  '0c69a54529e0b0d08acb589274812be8', // anytextcat
  '867fc328ffe013628f28861c201d2ca9', // _pg_expandarray of 15
  'f0ed363c107a0828181f785bb538b85b', // _pg_expandarray of 17
];

/**
 * Built-ins that were replaced or given rights. Nothing else in the survey would look at them: what
 * the server came with is judged by its name. Asked for all roles that an execution, or our own
 * functions, run as.
 */
export async function surveyReplaced({
  control,
  facts,
  reach,
  outlets,
}: SurveyContext): Promise<void> {
  const roles = [facts.executor, facts.control, facts.owner, ...reach.principals.keys()];
  const rows = await readRows<{
    object: string;
    definer: boolean;
    configured: boolean;
    roles: readonly string[];
  }>(control, SQL.rights.get('replaced_builtins'), [
    roles,
    Object.values(DANGEROUS).flat(),
    SQL_TEXTS,
  ]);
  for (const { object, definer, configured, roles: able } of rows) {
    const callers = able.map(quoteName).join(', ');
    const open = (why: string, fix: string) =>
      outlets.open({ outlet: `built-in ${object}`, object, why, fix: [fix], needs: 'superuser' });
    if (definer)
      open(
        'It is SECURITY DEFINER, with the rights of a superuser, and the server came with it otherwise',
        `ALTER ROUTINE ${object} SECURITY INVOKER`,
      );
    else if (configured)
      open(
        'It has its own settings, and the server came with it otherwise',
        `ALTER ROUTINE ${object} RESET ALL`,
      );
    else
      open(
        `It is not the one that the server came with, and ${callers} may execute it`,
        `REVOKE EXECUTE ON ROUTINE ${object} FROM PUBLIC, ${callers}`,
      );
  }
  if (rows.length === 0)
    outlets.denied(
      'replaced built-in functions',
      'every built-in is the one that the server came with',
    );
}
