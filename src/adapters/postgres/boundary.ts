import type { ForeignKeyColumn } from '../../backend/foreign-keys.ts';
import { checkVolatile } from '../../backend/setup.ts';
import { EffectMatchError } from '../../errors.ts';
import type { Connection } from '../../postgres/connection.ts';
import {
  nameTarget,
  type QualifiedName,
  quoteName,
  quoteQualified,
} from '../../postgres/identifier.ts';
import { UNUSED } from '../../protocol/drawn.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { type RelationInspection, readRelations, resolveNames } from './catalog.ts';
import { readRows, type TextReader } from './certify/catalog.ts';
import type { PostgresSurvey, RegisteredRelation } from './certify/facts.ts';
import { bindFingerprint } from './certify/fingerprint.ts';
import { surveyWithNames } from './certify/survey.ts';
import type { Control } from './control.ts';
import { demandEntries, type EntryRoutine } from './entry.ts';
import type { GateCatalog } from './gate/resolve.ts';
import { type RegisteredName, refused, type Settings } from './options.ts';
import { PROBE_TABLE } from './provision/provision.ts';
import { listForeignKeys, type PostgresRelation } from './relation.ts';
import {
  type DrawableSequence,
  drawableSequences,
  listSequences,
  type ReadableSequence,
} from './residue.ts';
import type { RoutineName } from './routine-name.ts';
import { SQL } from './sql.ts';
import { demandViews, type RegisteredView } from './view.ts';

/**
 * Everything read from the catalogue at one moment. Valid as long as the fingerprint is unchanged.
 */
export interface PostgresBoundary {
  readonly fingerprint: string;
  readonly relations: readonly RegisteredRelation[];
  /** Relations that state may be read from, by target. */
  readonly readable: ReadonlyMap<string, PostgresRelation>;
  readonly probe: PostgresRelation;
  readonly views: readonly RegisteredView[];
  /** Registered entry points, by target. */
  readonly entries: ReadonlyMap<string, EntryRoutine>;
  readonly watched: Watched;
  /** The physical tables of the registered relations, by object id. */
  readonly leaves: ReadonlyMap<string, PostgresRelation>;
  /** The foreign keys of the registered relations. */
  readonly foreignKeys: readonly ForeignKeyColumn[];
  readonly forceConstraints: string;
  readonly recorders: Recorders;
  /** All sequences whose position can be read. */
  readonly readableSequences: readonly ReadableSequence[];
  /** Those of them that belong to columns of registered relations. */
  readonly drawableSequences: readonly DrawableSequence[];
  /** The object ids of `readableSequences`, as an array literal. */
  readonly sequenceOids: string;
  readonly survey: PostgresSurvey;
  /** How operations can reach each table, by object id. */
  readonly routes: ReadonlyMap<string, string>;
  /** What names in statements mean. Present with the managed boundary. */
  readonly names?: GateCatalog | undefined;
}

/** The database, and the roles by their names on the server. */
export interface BoundaryRoles {
  readonly backend: string;
  readonly executor: string;
  readonly owner: string;
  readonly control: string;
  /** The schemas that execution sessions search. */
  readonly path?: readonly string[];
}

const READS_MAX = 5;

/**
 * Reads the boundary as it is now. Returns `known` if its fingerprint is still current: the
 * configuration is classified once, and only its fingerprint is checked before every use. A new
 * boundary is read again until nothing changes during the read.
 */
export async function readBoundary(
  control: Control,
  settings: Settings,
  roles: BoundaryRoles,
  known?: PostgresBoundary,
): Promise<PostgresBoundary> {
  let fingerprint = await control.fingerprint();
  if (known?.fingerprint === fingerprint) return known;
  for (let tries = 0; tries < READS_MAX; tries += 1) {
    const boundary = await control.withConnection((connection) =>
      readOnce(connection, settings, roles, fingerprint),
    );
    // Only now is it known which roles matter. From here on the fingerprint covers their rows.
    control.watchRoles(boundary.survey.roles);
    const now = await control.fingerprint();
    if (now === fingerprint) return boundary;
    fingerprint = now;
  }
  throw new EffectMatchError(
    'ERR_EM_ADAPTER_UNAVAILABLE',
    'postgres: the configuration keeps changing; try later',
  );
}

async function readOnce(
  connection: Connection,
  stated: Settings,
  roles: BoundaryRoles,
  fingerprint: string,
): Promise<PostgresBoundary> {
  const settings = await resolveNames(connection, stated);
  const names = [...settings.relations, ...settings.reads, PROBE_TABLE];
  const described = await readRelations(connection, names, settings.trustedCode);
  const found = await markUnreadable(connection, roles, described.map(usable));
  const relations = settings.relations.map((option, index) => withOptions(found[index], option));
  const probe = found.at(-1);
  if (probe === undefined)
    throw refused('the probe table is missing; provision the database again');
  const readable = found.slice(0, -1).filter((relation) => relation.key.length > 0);
  const entries = await readEntryPoints(connection, settings.entryPoints);
  const entryPoints = [...entries].map(([name, { oid }]) => ({ name, oid }));
  const { declared: restrictions, reviews, trustedCode } = settings;
  const views = await demandViews(connection, settings.views);
  const declared = { restrictions, reviews, trustedCode, tier: settings.boundary };
  const facts = { ...roles, relations, views, entryPoints, ...declared };
  const { survey, routes, names: gateNames } = await surveyWithNames(connection, facts);
  const readableSequences = await listSequences(connection, roles.owner);
  return {
    fingerprint,
    relations,
    readable: new Map(readable.map((relation) => [relation.target, relation])),
    probe,
    views,
    entries,
    watched: await listWatched(connection),
    leaves: mapLeaves(relations),
    foreignKeys: listForeignKeys(relations),
    forceConstraints: await forceConstraints(connection, roles.executor),
    recorders: await readRecorders(connection, [...mapLeaves([...relations, probe]).keys()]),
    readableSequences,
    sequenceOids: writeOids(readableSequences),
    drawableSequences: drawableSequences(relations, readableSequences),
    routes,
    names: gateNames,
    survey: { ...bindFingerprint(survey, fingerprint), remedies: survey.problems },
  };
}

function usable(inspection: RelationInspection): PostgresRelation {
  if (inspection.kind === 'usable') return inspection.relation;
  throw refused(`relation "${inspection.target}" cannot be registered: ${inspection.why}`);
}

function withOptions(
  relation: PostgresRelation | undefined,
  { bulk, volatile }: RegisteredName,
): RegisteredRelation {
  if (relation === undefined) throw refused('a relation is missing');
  return { ...relation, bulk, volatile };
}

async function readEntryPoints(
  connection: Connection,
  names: readonly RoutineName[],
): Promise<ReadonlyMap<string, EntryRoutine>> {
  const entries = await demandEntries(connection, names);
  return new Map(entries.map((entry) => [entry.target, entry]));
}

/**
 * Every table and materialized view, catalogues included. The server's counters are read for all of
 * them.
 */
export interface Watched {
  /** An array literal, built once. */
  readonly oids: string;
  readonly names: ReadonlyMap<string, string>;
  readonly recordOid: string;
}

interface NamedObject extends QualifiedName {
  readonly oid: number;
}

async function listWatched(control: TextReader): Promise<Watched> {
  const rows = await readRows<NamedObject>(control, SQL.registered.get('watched'));
  const names = new Map(rows.map((row) => [String(row.oid), nameTarget(row)]));
  const record = rows.find(({ schema, name }) => schema === 'effectmatch' && name === 'record');
  return { oids: writeOids(rows), names, recordOid: String(record?.oid) };
}

function writeOids(objects: readonly { readonly oid: number }[]): string {
  return `{${objects.map(({ oid }) => oid).join(',')}}`;
}

/** Maps the object id of every physical table to its relation. */
export function mapLeaves(
  relations: readonly PostgresRelation[],
): ReadonlyMap<string, PostgresRelation> {
  const leaves = new Map<string, PostgresRelation>();
  for (const relation of relations)
    for (const { oid } of relation.leaves) leaves.set(String(oid), relation);
  return leaves;
}

/**
 * The statement that makes every deferrable constraint of the database fire now, except our own
 * guards, which must wait for COMMIT. It runs as the execution login, because triggers run with the
 * rights of the role that fires them. It therefore names only constraints in schemas that this
 * login may use. Registered tables are in such schemas, and partitions follow their table.
 */
async function forceConstraints(control: TextReader, executor: string): Promise<string> {
  const query = SQL.registered.get('deferrable');
  const names = (await readRows<QualifiedName>(control, query, [executor])).map(quoteQualified);
  return names.length === 0 ? '' : `set constraints ${names.join(', ')} immediate`;
}

/**
 * The row versions of the recorders of each physical table, triggers and functions, by object id.
 */
type Recorders = ReadonlyMap<string, string>;

/**
 * Reads the recorders of these tables. A table is left out if it lacks a recorder or has one that
 * does not always fire. A row version never comes back after a change, so two equal readings prove
 * that nothing changed in between. Changes by a transaction that is still open are not visible
 * here, but they write to catalogues, which the counters show.
 */
export async function readRecorders(
  control: TextReader,
  oids: readonly string[],
): Promise<Recorders> {
  const query = SQL.registered.get('recorders');
  const rows = await readRows<{ oid: string; versions: string }>(control, query, [oids]);
  return new Map(rows.map(({ oid, versions }) => [oid, versions]));
}

/**
 * Marks the relations that the control login or the owner of the records could read only through
 * policies. Both read with row security off, because policies are application code. The server then
 * refuses such a read.
 */
export async function markUnreadable(
  connection: TextReader,
  { control, owner }: { readonly control: string; readonly owner: string },
  relations: readonly PostgresRelation[],
): Promise<readonly PostgresRelation[]> {
  const oids = relations.map(({ oid }) => String(oid));
  const query = SQL.registered.get('unreadable');
  const values = [oids, [control, owner]];
  const rows = await readRows<{ oid: number; role: string }>(connection, query, values);
  const readers = Map.groupBy(rows, ({ oid }) => oid);
  return relations.map((relation) => {
    const hidden = readers.get(relation.oid);
    if (hidden === undefined) return relation;
    const rights = hidden.map(({ role }) => `ALTER ROLE ${quoteName(role)} BYPASSRLS`).join('; ');
    const remedy = `have a superuser run ${rights}; \`effectmatch provision\` does it too`;
    return { ...relation, unreadable: `${HIDDEN}: ${remedy}` };
  });
}

const HIDDEN =
  'has row security, and trusted logins run no policies, which are code of the application';

/**
 * The registration for the frame. Refuses the first relation that cannot be protected, with a
 * remedy. A sequence is compared by the numbers drawn from it that no row has.
 */
export function admitRegistration(
  { profile, values, boundary }: Pick<Settings, 'profile' | 'values' | 'boundary'>,
  relations: readonly RegisteredRelation[],
  sequences: readonly ReadableSequence[],
): Registration {
  const drawn = sequences.map(({ name }) => ({ name, columns: [UNUSED], key: [], volatile: [] }));
  const targets = [...relations.map(admitRelation), ...drawn];
  return { profile, values, targets, ...(boundary === 'managed' && { boundary }) };
}

function admitRelation(relation: RegisteredRelation): Target {
  const { target, key, volatile } = relation;
  const columns = relation.columns.map(({ name }) => name);
  const admitted = { name: target, columns, key: [...key], volatile: [...volatile] };
  checkVolatile(admitted, refused);
  if (key.length === 0 && volatile.length > 0)
    throw refused(
      `relation "${target}" has no primary key, so its rows compare whole; it cannot have volatile columns`,
    );
  if (relation.bulk && relation.partitioned)
    throw refused(
      `relation "${target}" is partitioned, where statement recorders miss rows that move; leave bulk out`,
    );
  return admitted;
}
