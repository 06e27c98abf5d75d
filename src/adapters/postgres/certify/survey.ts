import { hash } from 'node:crypto';
import { type Catalog, readCatalog, type TextReader } from './catalog.ts';
import { keepSurveyed, readVersions } from './changes.ts';
import { surveyComparisons, surveySupport } from './comparisons.ts';
import { surveyConstantCalls } from './constant-calls.ts';
import { surveyDelayed } from './delayed.ts';
import { type BoundaryFacts, Outlets, type PostgresSurvey } from './facts.ts';
import { surveyForeignBeneath } from './foreign.ts';
import { readUsable, surveyFunctions, surveyLentCode } from './functions.ts';
import { surveyGuards, surveyStrangers } from './guards.ts';
import { surveyObjects, surveySettings } from './objects.ts';
import { surveyPrivileges } from './privileges.ts';
import { computeReach, type Index } from './reach.ts';
import { surveyReplaced } from './replaced.ts';
import { surveyExecutor, surveyRights, surveyTrustedRoles } from './roles.ts';
import { surveySequences } from './sequences.ts';
import { surveyAttached, surveyRegistered } from './tables.ts';
import { surveyViews } from './views.ts';

/**
 * Reads the live configuration in one snapshot and classifies every outlet that agent SQL could
 * reach. The caller may keep the result as long as {@link readFingerprint} returns the same text.
 * Runs no application code.
 */
export async function surveyBoundary(
  control: TextReader,
  facts: BoundaryFacts,
): Promise<PostgresSurvey> {
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
  catalog: Catalog,
  facts: BoundaryFacts,
): Promise<PostgresSurvey> {
  const outlets = new Outlets();
  const isKnown = catalog.roles.some(({ name }) => name === facts.executor);
  const callable = isKnown ? await readUsable(control, [facts.executor]) : [];
  const index: Index = {
    relation: new Map(catalog.relations.map((row) => [row.oid, row])),
    function: new Map(catalog.functions.map((row) => [row.oid, row])),
    registered: new Set(
      facts.relations.flatMap(({ oid, leaves }) => [oid, ...leaves.map((leaf) => leaf.oid)]),
    ),
    views: new Set((facts.views ?? []).map(({ oid }) => oid)),
    executable: new Set(callable.filter(({ kind }) => kind === 'function').map(({ oid }) => oid)),
  };
  const reach = computeReach(catalog, facts, index);
  surveyExecutor(catalog, facts, outlets);
  surveyTrustedRoles(catalog, facts, outlets);
  surveyGuards(catalog, facts, outlets);
  surveyStrangers(catalog, index, outlets);
  surveyRegistered(catalog, facts, index, outlets);
  surveyViews(catalog, facts, index, outlets);
  await surveySequences(control, facts, outlets);
  surveyAttached(catalog, facts, index, reach, outlets);
  surveyConstantCalls(catalog, facts, index, outlets);
  surveyComparisons(catalog, facts, index, outlets);
  await surveySupport(control, outlets);
  surveyPrivileges(catalog, facts, index, outlets);
  surveyFunctions(catalog, facts, index, reach, outlets);
  await surveyRights(control, { catalog, facts, reach, outlets });
  const callers = [facts.executor, facts.control, facts.owner, ...reach.principals.keys()];
  await surveyReplaced(control, callers, outlets);
  const lent = await readUsable(control, [...reach.principals.keys()]);
  await surveyForeignBeneath(control, { facts, index, reach, outlets });
  await surveyDelayed(control, { catalog, facts, index, reach }, outlets);
  surveyLentCode({ catalog, facts, index, reach, outlets }, [...callable, ...lent]);
  surveySettings(catalog, facts, reach, outlets);
  surveyObjects(catalog, facts, index, outlets);
  const reviews = (facts.reviews ?? []).map(
    (review) => `${review.function} ${review.digest} read by ${review.by}`,
  );
  const declared = [
    ...facts.restrictions,
    ...reviews,
    ...(facts.trustedCode ?? []).map((name) => `code of ${name}`),
  ];
  const roles = closureOf(catalog, [
    facts.executor,
    facts.owner,
    facts.control,
    ...reach.principals.keys(),
  ]);
  const listed = Object.freeze(outlets.listed);
  keepSurveyed(listed, { catalog, roles, versions: await readVersions(control, [...roles]) });
  return {
    backend: facts.backend,
    executor: facts.executor,
    outlets: listed,
    problems: outlets.problems,
    declared,
    roles: [...roles],
    configuration: digest(contentOf(catalog, roles)),
    credentials: digest([
      [facts.executor, facts.owner, facts.control],
      catalog.roles.filter(({ name }) => roles.has(name)),
      catalog.memberships.filter(({ member }) => roles.has(member)),
    ]),
    enforcement: digest(declared),
  };
}

/** These roles and every role that they are a member of, directly or not. */
function closureOf(catalog: Catalog, roles: readonly string[]): ReadonlySet<string> {
  const closure = new Set(roles);
  for (const member of closure) {
    for (const edge of catalog.memberships) if (edge.member === member) closure.add(edge.role);
  }
  return closure;
}

/**
 * The configuration without object ids, which differ between two servers that are set up alike, and
 * without the roles of other applications on the server.
 */
function contentOf(catalog: Catalog, roles: ReadonlySet<string>): unknown {
  const names = new Map<number, string>();
  for (const { oid, object } of [...catalog.relations, ...catalog.functions])
    names.set(oid, object);
  for (const { oid, name } of catalog.types) names.set(oid, name);
  const {
    roles: _roles,
    memberships: _memberships,
    largeObjects: _largeObjects,
    ...parts
  } = catalog;
  const settings = parts.settings.filter(({ role }) => role === '' || roles.has(role));
  return JSON.parse(
    JSON.stringify({ ...parts, settings }, (key, value: unknown) => {
      if (key === 'oid' || (key === 'object' && typeof value === 'number')) return undefined;
      if (OID_KEYS.has(key) && typeof value === 'number')
        return names.get(value) ?? (value < 16384 ? value : null);
      const lists = (key === 'parents' || key === 'types') && Array.isArray(value);
      return lists && value.every((oid) => typeof oid === 'number')
        ? value.map((oid) => names.get(oid))
        : value;
    }),
  );
}

const OID_KEYS: ReadonlySet<string> = new Set([
  'relation',
  'function',
  'type',
  'typeOid',
  'referenced',
  'sourceOid',
  'targetOid',
  'base',
  'element',
]);

function digest(content: unknown): string {
  return hash('sha256', JSON.stringify(content), 'hex');
}
