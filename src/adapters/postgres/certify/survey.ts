import { hash } from 'node:crypto';
import type { GateCatalog } from '../gate/resolve.ts';
import { SQL } from '../sql.ts';
import { surveyCasts } from './casts.ts';
import { readCatalog, readRows, type SystemCatalog, type TextReader } from './catalog.ts';
import { indexCatalog } from './catalog-index.ts';
import { keepSurveyed, readVersions } from './changes.ts';
import { surveyComparisons, surveyConstantCalls } from './comparisons.ts';
import { surveyDelayed } from './delayed.ts';
import { surveyExpressions } from './expressions.ts';
import { type BoundaryFacts, Outlets, type PostgresSurvey, type SurveyContext } from './facts.ts';
import { surveyExtensions, surveyFunctions } from './functions.ts';
import { surveyEvidenceTables } from './guards.ts';
import { describeGiven, readDangers, surveyListed } from './listed.ts';
import { listUnclosed, readGateCatalog } from './managed.ts';
import { computeReach, reachOf } from './reach.ts';
import { surveySequences } from './sequences.ts';
import { surveyViews } from './views.ts';

/**
 * Every kind of outlet that agent SQL could reach, in the order of the report.
 *
 * To add an outlet:
 * 1. If the catalogue parts do not show it yet, add a statement to `../sql/catalog.sql` and its row
 *    to {@link SystemCatalog} in `catalog.ts`. Add the rows that it reads to `watched` in
 *    `../sql/fingerprint.sql`, or changes to them would go unnoticed.
 * 2. If the server can list the outlets in one query, add a statement to `../sql/outlets.sql`.
 *    Otherwise write a function that calls `outlets.denied`, `outlets.observed` or `outlets.open`
 *    (see {@link Outlets} in `facts.ts`) for each object of the kind. List it here.
 * 3. Add a case to `test/adapters/postgres/certify/openings.ts`, which opens the outlet on a real
 *    server and checks that the `fix` statements close it, and one to `test/escapes/cases`.
 */
const OUTLETS: readonly ((context: SurveyContext) => void | Promise<void>)[] = [
  surveyListed('names'),
  surveyListed('execution_login'),
  surveyListed('trusted_roles'),
  surveyListed('guards'),
  surveyEvidenceTables,
  surveyListed('registered'),
  surveyViews,
  surveySequences,
  surveyExpressions,
  surveyListed('attached'),
  surveyConstantCalls,
  surveyComparisons,
  surveyListed('support_functions'),
  surveyListed('privileges'),
  surveyFunctions,
  surveyListed('lent_rights'),
  surveyListed('builtins'),
  surveyListed('replaced_builtins'),
  surveyListed('foreign_beneath'),
  surveyDelayed,
  surveyListed('lent_code'),
  surveyExtensions,
  surveyListed('server_settings'),
  surveyListed('stored_settings'),
  surveyListed('event_triggers'),
  surveyListed('foreign_servers'),
  surveyListed('replication'),
  surveyCasts,
  surveyListed('operators'),
];

/**
 * Reads the live configuration in one snapshot and classifies every outlet that agent SQL could
 * reach. The caller may keep the result until the configuration's fingerprint changes. Runs no
 * application code.
 */
export async function surveyBoundary(
  control: TextReader,
  facts: BoundaryFacts,
): Promise<PostgresSurvey> {
  return (await surveyWithNames(control, facts)).survey;
}

/** A survey, and with the managed boundary also what names in statements mean. */
interface NamedSurvey {
  readonly survey: PostgresSurvey;
  readonly names?: GateCatalog;
  /** How operations can reach each table, by object id. */
  readonly routes: ReadonlyMap<string, string>;
}

/**
 * Like {@link surveyBoundary}, but also returns what the statement gate needs, from the same
 * snapshot.
 */
export async function surveyWithNames(
  control: TextReader,
  facts: BoundaryFacts,
): Promise<NamedSurvey> {
  await control.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  try {
    await control.query(`SET LOCAL search_path = pg_catalog`);
    const catalog = await readCatalog(control, facts.executor);
    return await classify(control, catalog, facts);
  } finally {
    await control.query('ROLLBACK');
  }
}

async function classify(
  control: TextReader,
  catalog: SystemCatalog,
  facts: BoundaryFacts,
): Promise<NamedSurvey> {
  const { executor, owner, tier = 'server' } = facts;
  const outlets = new Outlets(tier);
  const callable = await readRows<{ oid: number }>(control, SQL.rights.get('callable'), [executor]);
  const index = indexCatalog(catalog, facts, new Set(callable.map(({ oid }) => oid)));
  const reach = computeReach(catalog, facts, index);
  const dangers = await readDangers(control);
  const given = describeGiven({ catalog, facts, index, reach }, dangers);
  const unclosed = listUnclosed(dangers, tier);
  const context = { control, catalog, facts, index, reach, outlets, given, unclosed };
  for (const survey of OUTLETS) await survey(context);
  const ours = [executor, owner, facts.control];
  const roles = closureOf(catalog, [...ours, ...reach.principals.keys()]);
  const listed = Object.freeze(outlets.listed);
  keepSurveyed(listed, {
    catalog,
    roles,
    versions: await readVersions(control, [...roles], tier),
    reachOf: (touched) => reachOf(catalog, facts, index, touched),
  });
  const declared = listDeclared(facts);
  const survey = {
    backend: facts.backend,
    executor,
    outlets: listed,
    problems: outlets.problems,
    declared,
    roles: [...roles],
    configuration: digest(contentOf(catalog, roles)),
    credentials: digest([
      ours,
      catalog.roles.filter(({ name }) => roles.has(name)),
      catalog.memberships.filter(({ member }) => roles.has(member)),
    ]),
    enforcement: digest(declared),
  };
  const reached = [...reach.relations].map(([{ oid }, { by }]) => [String(oid), by] as const);
  const routes = new Map(reached);
  if (tier !== 'managed') return { survey, routes };
  return { survey, routes, names: await readGateCatalog(context) };
}

/** What the deployment declares and the server cannot confirm. */
function listDeclared({ restrictions, reviews = [], trustedCode = [] }: BoundaryFacts) {
  const read = reviews.map((review) => `${review.function} ${review.digest} read by ${review.by}`);
  return [...restrictions, ...read, ...trustedCode.map((name) => `code of ${name}`)];
}

/** These roles and every role that they are a member of, directly or indirectly. */
function closureOf(catalog: SystemCatalog, roles: readonly string[]): ReadonlySet<string> {
  const closure = new Set(roles);
  for (const member of closure) {
    for (const edge of catalog.memberships) if (edge.member === member) closure.add(edge.role);
  }
  return closure;
}

/** Object ids below this belong to the server, and are the same on every server of its version. */
const FIRST_OWN_ID = 16384;

/**
 * The configuration without object ids, which differ between two servers with the same setup, and
 * without the roles of other applications on the server. No other number in it is as large.
 */
function contentOf(catalog: SystemCatalog, roles: ReadonlySet<string>): string {
  const { relations, functions, types } = catalog;
  const names = new Map([...relations, ...functions].map(({ oid, object }) => [oid, object]));
  for (const { oid, name } of types) names.set(oid, name);
  const settings = catalog.settings.filter(({ role }) => role === '' || roles.has(role));
  const left = { ...catalog, settings, roles: [], memberships: [] };
  return JSON.stringify(left, (_, value: unknown) =>
    typeof value === 'number' && value >= FIRST_OWN_ID ? (names.get(value) ?? null) : value,
  );
}

function digest(content: unknown): string {
  return hash('sha256', JSON.stringify(content), 'hex');
}
