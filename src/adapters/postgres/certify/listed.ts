import { RUN_PROVISION } from '../../../backend/failure.ts';
import { quoteName } from '../../../postgres/identifier.ts';
import { createRecorders, recorderTriggers } from '../provision/recorders.ts';
import { SQL } from '../sql.ts';
import {
  DANGERS,
  dangerOf,
  HARMLESS_SETTINGS,
  READING_ROLES,
  SESSION_STATE,
  TRUSTED_EXTENSIONS,
  TRUSTED_LIBRARIES,
} from './builtins.ts';
import { readRows, type SystemCatalog, type TextReader } from './catalog.ts';
import type { BoundaryFacts, Closer, Problem, SurveyContext } from './facts.ts';

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
  const text = SQL.outlets.get(statement);
  const tables = [`actors as (${SQL.outlets.get('actors')})`];
  for (const part of SQL.catalog.names) {
    // `owned` takes another parameter, so the facts bring its rows.
    if (part !== 'owned' && new RegExp(`\\b${part}\\b`).test(text))
      tables.push(`"${part}" as (${SQL.catalog.get(part)})`);
  }
  // Not every statement uses the parameter, and the server refuses one that is not used.
  const query = `with ${tables.join(', ')} select json_strip_nulls(to_json(f)) as finding
    from (${text}) as f where $1::jsonb is not null`;
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
  const { executor, control, owner, tier, path = [], trustedCode = [] } = facts;
  return JSON.stringify({
    executor,
    control,
    owner,
    managed: tier === 'managed',
    lent: Array.from(reach.principals, ([role, route]) => ({ role, ...route })),
    tables: facts.relations.map((relation) => {
      const { oid, target, bulk, volatile } = relation;
      const leaves = relation.leaves.map((leaf) => leaf.oid);
      const recorders = createRecorders(relation, executor);
      return { oid, target, bulk, volatile, leaves, recorders };
    }),
    recorders: [true, false].flatMap((bulk) =>
      recorderTriggers(bulk).map((trigger) => ({ bulk, ...trigger })),
    ),
    registered: [...index.registered],
    views: [...index.views],
    reached: Array.from(reach.relations.keys(), ({ oid }) => oid),
    path,
    dangers: Object.fromEntries(dangers),
    dangerous: [...DANGERS.values()].flatMap((names) => [...names]),
    session: [...SESSION_STATE],
    harmless: HARMLESS_SETTINGS.source,
    reading: [...READING_ROLES],
    trusted: [...TRUSTED_EXTENSIONS, ...trustedCode],
    libraries: [...TRUSTED_LIBRARIES, ...trustedCode],
    provision: RUN_PROVISION,
    guards: SQL.guards.all(),
    owned: catalog.owned.map(({ description }) => description),
    heir: quoteName(ownerFor(catalog, facts)),
  });
}

/**
 * A role other than the execution login that can own things: the owner of the first registered
 * relation, or else of the database.
 */
function ownerFor(catalog: SystemCatalog, facts: BoundaryFacts): string {
  const registered = catalog.relations.find(({ oid }) => oid === facts.relations[0]?.oid);
  const isUsable = registered !== undefined && registered.owner !== facts.executor;
  return isUsable ? registered.owner : (catalog.server[0]?.owner ?? facts.owner);
}
