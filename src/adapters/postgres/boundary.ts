import { EffectMatchError } from '../../errors.ts';
import type { Connection } from '../../postgres/connection.ts';
import { type RelationInspection, readRelations } from './catalog.ts';
import type { PostgresSurvey, RegisteredRelation } from './certify/facts.ts';
import { bindFingerprint } from './certify/fingerprint.ts';
import { surveyBoundary } from './certify/survey.ts';
import { readDeferrable } from './constraints.ts';
import type { Control } from './control.ts';
import { demandEntries, type EntryRoutine } from './entry.ts';
import { type RandomColumn, randomColumns } from './fresh.ts';
import { type Recorders, readRecorders } from './intact.ts';
import type { AssignedColumn } from './observation.ts';
import { type RegisteredName, refused, type Settings } from './options.ts';
import { PROBE_TABLE } from './provision/provision.ts';
import type { PostgresRelation } from './relation.ts';
import {
  type DrawableSequence,
  drawableSequences,
  listSequences,
  type ReadableSequence,
} from './residue.ts';
import type { RoutineName } from './routine-name.ts';
import { markUnreadable } from './row-security.ts';
import { demandViews, type RegisteredView } from './view.ts';
import { listWatched, mapLeaves, type Watched } from './watched.ts';

/**
 * Everything that was read from the catalogue at one moment and holds as long as its fingerprint
 * does.
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
  readonly forceConstraints: string;
  readonly recorders: Recorders;
  readonly sequences: readonly AssignedColumn[];
  readonly randomColumns: readonly RandomColumn[];
  /** All whose position can be read. */
  readonly readableSequences: readonly ReadableSequence[];
  /** Of these, the ones that are there for columns of registered relations. */
  readonly drawableSequences: readonly DrawableSequence[];
  /** Their object ids as an array literal. */
  readonly sequenceOids: string;
  readonly survey: PostgresSurvey;
}

/** Whose boundary it is: the database, and the roles as the server calls them. */
export interface BoundaryRoles {
  readonly backend: string;
  readonly executor: string;
  readonly owner: string;
  readonly control: string;
}

const READS_MAX = 5;

/**
 * The boundary as it is now. `known` is returned as it is while its fingerprint is the fresh one:
 * configuration is classified once and looked at again before every use. What is new is read until
 * nothing changed while it was read.
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
    // The roles that matter are known only now; their rows are part of the fingerprint from here
    // on.
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
  settings: Settings,
  roles: BoundaryRoles,
  fingerprint: string,
): Promise<PostgresBoundary> {
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
  const facts = { ...roles, relations, views, entryPoints, restrictions, reviews, trustedCode };
  const survey = await surveyBoundary(connection, facts);
  const sequences = relations.flatMap(assignedColumns);
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
    forceConstraints: await readDeferrable(connection, roles.executor),
    recorders: await readRecorders(connection, [...mapLeaves([...relations, probe]).keys()]),
    randomColumns: relations.flatMap(randomColumns),
    sequences,
    readableSequences,
    sequenceOids: `{${readableSequences.map(({ oid }) => oid).join(',')}}`,
    drawableSequences: drawableSequences(relations, readableSequences),
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

function assignedColumns({ target, columns }: PostgresRelation): readonly AssignedColumn[] {
  return columns.flatMap(({ name, sequence }) => {
    if (sequence === undefined) return [];
    const { oid, start, increment } = sequence;
    return [{ target, column: name, oid, start: BigInt(start), increment: BigInt(increment) }];
  });
}
