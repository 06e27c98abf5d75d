import { quoteLiteral, quoteName } from '../../../postgres/identifier.ts';
import { DANGEROUS } from './builtins.ts';
import { fingerprintGrants } from './fingerprint.ts';

/** A statement for review, with its reason and whose rights it needs. */
export interface HardeningStep {
  readonly sql: string;
  readonly why: string;
  readonly needs: string;
}

/** Whom hardening is for. */
export interface HardeningPlan {
  readonly database: string;
  readonly owner: string;
  readonly control: string;
  readonly executor: string;
  /**
   * Other roles that keep what PUBLIC loses in this database. A role whose functions an execution
   * can reach must not be among them: it would lend the right on.
   */
  readonly keepFor?: readonly string[];
}

/** Built-ins that the trusted functions themselves call. */
const NEEDED_BY_OWNER: ReadonlySet<string> = new Set([
  'set_config',
  'setseed',
  'pg_advisory_unlock_all',
]);

/**
 * Closes what PostgreSQL opens to everybody by default. The statements concern this database only
 * and can be repeated. Built-in functions and languages belong to the superuser that made the
 * cluster: without one of its rights they stay executable, and the survey says so for each.
 */
export function hardeningStatements(plan: HardeningPlan): readonly HardeningStep[] {
  const [owner, control] = [plan.owner, plan.control].map(quoteName);
  const keep = (plan.keepFor ?? []).map(quoteName);
  const step = (needs: string, why: string, sql: string): HardeningStep => ({ sql, why, needs });
  const database = quoteName(plan.database);
  return [
    step(
      'ownership of the database',
      'a database made from a template lets everybody create temporary tables',
      `revoke create, temporary on database ${database} from public`,
    ),
    ...(keep.length === 0
      ? []
      : [
          step(
            'ownership of the database',
            'these roles keep temporary tables',
            `grant temporary on database ${database} to ${keep.join(', ')}`,
          ),
        ]),
    step(
      'ownership of the schema',
      'objects that stand in for others',
      'revoke create on schema public from public',
    ),
    ...Object.entries(DANGEROUS).map(([why, names]) =>
      step(
        'superuser',
        `a built-in that ${why}`,
        revokeBuiltins(names, plan.owner, plan.keepFor ?? []),
      ),
    ),
    step(
      'superuser',
      'anonymous blocks; roles that have anything in this database keep the languages, except the execution login',
      keepLanguages(plan.executor),
    ),
    ...fingerprintGrants(control ?? '').map((sql) =>
      step('superuser', 'the trusted login sees that a row changed, not what is in it', sql),
    ),
    step(
      'ADMIN on pg_read_all_settings, or superuser',
      'the trusted login sees which libraries are preloaded',
      `grant pg_read_all_settings to ${control}`,
    ),
    step('CREATEROLE', 'the owner of the records is nobody', `alter role ${owner} nologin`),
  ];
}

function revokeBuiltins(
  names: readonly string[],
  owner: string,
  keepFor: readonly string[],
): string {
  const list = names.map(quoteLiteral).join(', ');
  const needed = names
    .filter((name) => NEEDED_BY_OWNER.has(name))
    .map(quoteLiteral)
    .join(', ');
  const grants = [
    ...(needed === ''
      ? []
      : [
          `\n    if name in (${needed}) then execute format('grant execute on function %s to %I', f, ${quoteLiteral(owner)}); end if;`,
        ]),
    ...keepFor.map(
      (role) =>
        `\n    execute format('grant execute on function %s to %I', f, ${quoteLiteral(role)});`,
    ),
  ];
  return `do $$ declare f regprocedure; name name; begin
  for f, name in select p.oid, p.proname from pg_catalog.pg_proc as p
      where p.pronamespace = 'pg_catalog'::regnamespace and p.oid < 16384 and p.provolatile = 'v' and p.proname in (${list}) loop
    execute format('revoke execute on function %s from public', f);${grants.join('')}
  end loop;
end $$`;
}

function keepLanguages(executor: string): string {
  return `do $$ declare r name; begin
  for r in select rolname from pg_catalog.pg_roles where rolname !~ '^pg_' and not rolsuper and rolname <> ${quoteLiteral(executor)}
      and oid in (select refobjid from pg_catalog.pg_shdepend where refclassid = 'pg_authid'::regclass
        and dbid = (select oid from pg_catalog.pg_database where datname = current_database())) loop
    execute format('grant usage on language plpgsql, sql to %I', r);
  end loop;
  revoke usage on language plpgsql, sql from public;
end $$`;
}
