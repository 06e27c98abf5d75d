import type { Outlet, Survey } from '../../../protocol/boundary.ts';
import type { BoundaryTier } from '../options.ts';
import { SQL } from '../sql.ts';
import { readRows, type SystemCatalog, type TextReader } from './catalog.ts';
import { compareFingerprints, withWatched } from './fingerprint.ts';
import type { Touched } from './reach.ts';

/** Row versions of the configuration, by row. The fingerprint is computed from them. */
export type Versions = ReadonlyMap<string, string>;

/** What a survey was made from. */
interface Surveyed {
  readonly catalog: SystemCatalog;
  readonly roles: ReadonlySet<string>;
  readonly versions: Versions;
  readonly reachOf: (touched: Touched) => ReadonlySet<string> | undefined;
}

/**
 * Keyed by the list of outlets, which all copies of a survey share. An entry is collected with the
 * last certificate that refers to it.
 */
const surveyed = new WeakMap<readonly Outlet[], Surveyed>();

/** Remembers what a survey was made from, so that a later one can be compared with it. */
export function keepSurveyed(outlets: readonly Outlet[], facts: Surveyed): void {
  surveyed.set(outlets, facts);
}

/** What an operation can reach under a survey; undefined if that is not known. */
export function reachUnder(
  { outlets }: Pick<Survey, 'outlets'>,
  touched: Touched,
): ReadonlySet<string> | undefined {
  return surveyed.get(outlets)?.reachOf(touched);
}

/**
 * What an administrator needs to know about two surveys that differ: every object that reads
 * differently, with both readings; rows that were written, even if they read as before; and if
 * there is neither, which counters moved.
 */
export async function explainChange(
  control: TextReader,
  before: Survey,
  after: Survey,
): Promise<readonly string[]> {
  const [was, is] = [surveyed.get(before.outlets), surveyed.get(after.outlets)];
  if (was === undefined || is === undefined) return [];
  const roles = was.roles.union(is.roles);
  const content = compareFacts(listFacts(was.catalog, roles), listFacts(is.catalog, roles));
  const written = await describeVersions(control, was.versions, is.versions);
  const found = [...content, ...written];
  return found.length > 0
    ? found
    : compareFingerprints(fingerprintOf(before), fingerprintOf(after));
}

/** The configuration of a bound survey is its digest, a space, and the fingerprint. */
function fingerprintOf({ configuration }: Survey): string {
  return configuration.slice(configuration.indexOf(' ') + 1);
}

type Fact = Readonly<Record<string, unknown>>;

/**
 * The unique name of a row in each part of the catalogue. A number stands for the object with that
 * id; what follows `|` stands for an empty field. The parts that best explain a change come first.
 */
const NAMES: Readonly<Partial<Record<keyof SystemCatalog, string>>> = {
  server: 'the database',
  extensions: 'extension {name}',
  roles: 'role {name}',
  memberships: 'membership of {member} in {role} granted by {grantor}',
  schemas: 'schema {object}',
  relations: 'relation {object}',
  columns: 'column {name} of {relation}',
  constraints: 'constraint {object} on {domain}{relation}',
  indexes: 'index {object}',
  statistics: 'statistics {object}',
  triggers: 'trigger {object} on {relation}',
  rules: 'rule {object} on {relation}',
  policies: 'policy {object} on {relation}',
  functions: 'function {object}',
  settings: 'setting {name} of {role|all roles} in {database|all databases}',
  server_settings: 'setting {name}',
  eventTriggers: 'event trigger {object}',
  languages: 'language {name}',
  servers: 'foreign server {object}',
  wrappers: 'foreign data wrapper {object}',
  mappings: 'user mapping of {user} on {server}',
  publications: 'publication {object}',
  subscriptions: 'subscription {object}',
  casts: '{description}',
  operators: '{description}',
  types: 'type {name}',
  defaultAcls: 'default privileges of {role} in {schema|all schemas} ({kind})',
  grants: '{privilege} ON {kind} {object} for {grantee|PUBLIC} granted by {grantor}',
  owned: 'ownership of {description}',
};

/** The field that holds a row's role, if it belongs to one. */
const ROLE_IN: Readonly<Partial<Record<keyof SystemCatalog, string>>> = {
  roles: 'name',
  memberships: 'member',
  settings: 'role',
};

/**
 * The facts of a catalogue by name. Facts about unrelated roles are left out, because those are not
 * part of the configuration.
 */
function listFacts(catalog: SystemCatalog, roles: ReadonlySet<string>): ReadonlyMap<string, Fact> {
  const names = new Map<unknown, string>();
  for (const { oid, object } of [...catalog.relations, ...catalog.functions])
    names.set(oid, object);
  const facts = new Map<string, Fact>();
  for (const [part, name] of Object.entries(NAMES) as [keyof SystemCatalog, string][]) {
    for (const row of catalog[part] as readonly Fact[]) {
      const role = row[ROLE_IN[part] ?? ''] ?? '';
      const fill = (_: string, field: string, otherwise = '') => {
        const value = row[field];
        return (typeof value === 'number' ? names.get(value) : String(value ?? '')) || otherwise;
      };
      if (role === '' || roles.has(String(role)))
        facts.set(name.replace(/\{(\w+)\|?([^}]*)\}/g, fill), row);
    }
  }
  return facts;
}

function compareFacts(
  before: ReadonlyMap<string, Fact>,
  after: ReadonlyMap<string, Fact>,
): readonly string[] {
  const changes: string[] = [];
  for (const [name, row] of after) {
    const old = before.get(name);
    if (old === undefined) changes.push(`${name}: not there → there`);
    else {
      const fields = Object.keys(row).filter(
        (field) => field !== 'oid' && show(row[field]) !== show(old[field]),
      );
      for (const field of fields)
        changes.push(`${name}: ${field} ${show(old[field])} → ${show(row[field])}`);
    }
  }
  for (const name of before.keys()) if (!after.has(name)) changes.push(`${name}: there → gone`);
  return changes;
}

const SHOWN_MAX = 120;

/** A value on one line, truncated if it is long, like a function body. */
function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

/**
 * Reads the row versions that the fingerprint summarises. A survey keeps them, so that later
 * changes can be found by comparison.
 */
export async function readVersions(
  control: TextReader,
  roles: readonly string[],
  tier: BoundaryTier,
): Promise<Versions> {
  const { fingerprint } = SQL;
  const watched = await readRows<{ oid: number }>(control, fingerprint.get('roles'), [roles]);
  const found = await readRows<{ object: string; version: string }>(
    control,
    `${withWatched(tier)} ${fingerprint.get('versions')}`,
    [`{${watched.map(({ oid }) => oid).join(',')}}`],
  );
  return new Map(found.map(({ object, version }) => [object, version]));
}

/**
 * Which rows have a different version, are new, or are gone, with the server's description of their
 * objects.
 */
async function describeVersions(
  control: TextReader,
  before: Versions,
  after: Versions,
): Promise<readonly string[]> {
  const isBoth = (key: string) => before.has(key) && after.has(key);
  // The survey determines which roles matter, so a role that is on one side only need not be new or
  // gone.
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => before.get(key) !== after.get(key) && (isBoth(key) || !key.startsWith('pg_authid:')),
  );
  const described: string[] = [];
  for (const key of changed.slice(0, DESCRIBED_MAX)) {
    const [, catalog = '', kind = '', oid = '', part = '', detail = ''] = ROW_KEY.exec(key) ?? [];
    const { rows } = await control.query(SQL.fingerprint.get('describe'), [
      `pg_catalog.${kind}`,
      oid,
      part,
    ]);
    const what = after.has(key) ? (before.has(key) ? 'was written' : 'is new') : 'is gone';
    described.push(`${rows[0]?.[0]}${detail && `, ${detail}`}: its row in ${catalog} ${what}`);
  }
  if (changed.length > DESCRIBED_MAX)
    described.push(`and ${changed.length - DESCRIBED_MAX} more rows`);
  return described;
}

const DESCRIBED_MAX = 10;
const ROW_KEY = /^(\w+):(\w+) (\d+) (-?\d+) ?(.*)$/s;
