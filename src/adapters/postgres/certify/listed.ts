import { RUN_PROVISION } from '../../../backend/failure.ts';
import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import {
  DANGERS,
  dangerOf,
  READING_ROLES,
  TRUSTED_EXTENSIONS,
  TRUSTED_LIBRARIES,
} from './builtins.ts';
import { readRows, type TextReader } from './catalog.ts';
import type { Closer, Problem, SurveyContext } from './facts.ts';
import { ownerFor } from './roles.ts';

/** An outlet that the server listed. */
type Finding =
  | ({ readonly kind: 'open' } & Problem)
  | {
      readonly kind: 'observed' | 'denied';
      readonly outlet: string;
      readonly why: string;
      readonly closer?: Closer;
    };

/** A part of the survey that a statement of `../sql/outlets.sql` makes. */
export function surveyListed(statement: string) {
  // Not every statement uses the parameter, and the server refuses one that is not used.
  const query = `with actors as (${SQL.outlets.get('actors')})
    select json_strip_nulls(to_json(f)) as finding
    from (${SQL.outlets.get(statement)}) as f where $1::jsonb is not null`;
  return async ({ control, given, outlets }: SurveyContext): Promise<void> => {
    for (const { finding } of await readRows<{ finding: Finding }>(control, query, [given])) {
      const { kind, outlet, why } = finding;
      if (kind === 'open') {
        const { object, needs, behind, keep, fix } = finding;
        const place = { object, needs, behind, ...(keep !== undefined && { keep }) };
        outlets.open(place, outlet, why, ...fix);
      } else if (kind === 'observed') outlets.observed(outlet, why);
      else outlets.denied(outlet, why, finding.closer);
    }
  };
}

/** Why each dangerous built-in of this server must not be executable. */
export async function readDangers(control: TextReader): Promise<ReadonlyMap<string, string>> {
  const rows = await readRows<{ name: string }>(control, SQL.rights.get('volatile_builtins'));
  const dangers = rows.map(({ name }) => [name, dangerOf(name) ?? ''] as const);
  return new Map(dangers.filter(([, why]) => why !== ''));
}

/** The parameter of the statements in `../sql/outlets.sql`, which says what it contains. */
export function describeGiven(
  { catalog, facts, index, reach }: Pick<SurveyContext, 'catalog' | 'facts' | 'index' | 'reach'>,
  dangers: ReadonlyMap<string, string>,
): string {
  const { executor, control, owner, tier, trustedCode = [] } = facts;
  return JSON.stringify({
    executor,
    control,
    owner,
    managed: tier === 'managed',
    lent: Array.from(reach.principals, ([role, route]) => ({ role, ...route })),
    registered: [...index.registered],
    dangers: Object.fromEntries(dangers),
    dangerous: [...DANGERS.values()].flatMap((names) => [...names]),
    reading: [...READING_ROLES],
    trusted: [...TRUSTED_EXTENSIONS, ...trustedCode],
    libraries: [...TRUSTED_LIBRARIES, ...trustedCode],
    provision: RUN_PROVISION,
    guards: SQL.guards.all(),
    owned: catalog.owned.map(({ description }) => description),
    heir: quoteName(ownerFor(catalog, facts)),
  });
}
