import { invalid } from '../../backend/manifest-schema.ts';
import {
  checkLabels,
  normaliseEffects,
  normaliseRead,
  normaliseState,
  normaliseManifest as normaliseStated,
} from '../../backend/normalise.ts';
import type { Connection } from '../../postgres/connection.ts';
import type { QualifiedName } from '../../postgres/identifier.ts';
import type { ApprovedEffect, StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import { CastBatch } from './cast.ts';
import type { Relations } from './reading.ts';
import { PostgresSchema } from './schema.ts';

/** What normalising needs: table shapes, the registration, and the database through both logins. */
export interface NormaliseTools {
  readonly registration: Registration;
  /** The registered relations, and those that the manifest may read. */
  readonly relations: Relations;
  readonly isolation: 'read committed' | 'serializable';
  /** Registered views. A manifest cannot state effects on them. */
  readonly views?: readonly QualifiedName[];
  /** Lends a session of the execution login for casts. */
  readonly withExecution: (use: (session: Connection) => Promise<void>) => Promise<void>;
  /** Reads rows with the control login. */
  readonly read: (reads: readonly StateRead[]) => Promise<readonly StateReading[]>;
}

/**
 * The manifest with every value as its column stores it. Values are cast in one round trip, or in
 * several if there are many effects.
 */
export async function normaliseManifest(
  tools: NormaliseTools,
  manifest: Manifest,
): Promise<Manifest> {
  if (tools.isolation === 'read committed') refuseRequiredAbsence(manifest);
  return await refuseUnlockable(tools, await normaliseInParts(tools, manifest));
}

/**
 * The maximum number of effects per batch of casts. The bookkeeping for a cast takes more memory
 * than its value.
 */
const EFFECTS_AT_ONCE = 5000;

async function normaliseInParts(tools: NormaliseTools, manifest: Manifest): Promise<Manifest> {
  const { effects } = manifest;
  if (effects.length <= EFFECTS_AT_ONCE)
    return await castTwice(tools, (schema) => normaliseStated(schema, manifest));
  const all: ApprovedEffect[] = [];
  for (let at = 0; at < effects.length; at += EFFECTS_AT_ONCE) {
    const part = effects.slice(at, at + EFFECTS_AT_ONCE);
    const normalised = await castTwice(tools, (schema) => normaliseEffects(schema, part, at));
    for (const effect of normalised) all.push(effect);
  }
  return await castTwice(tools, (schema) => {
    checkLabels(schema, all);
    return normaliseState(schema, { ...manifest, effects: all });
  });
}

/** Reads with keys as the key columns store them, for reads that are not part of a manifest. */
export async function normaliseReads(
  tools: Pick<NormaliseTools, 'relations' | 'withExecution'>,
  reads: readonly StateRead[],
): Promise<readonly StateRead[]> {
  const registration = { profile: 'net-state', values: 'plain', targets: [] } as const;
  return await castTwice({ ...tools, registration }, (schema) =>
    reads.map((read, index) =>
      normaliseRead(schema, read, `read ${index + 1} of "${read.target}"`),
    ),
  );
}

/**
 * Normalises once to collect what to cast, lets the database cast it, and normalises again with the
 * results.
 */
async function castTwice<T>(
  tools: Pick<NormaliseTools, 'registration' | 'relations' | 'withExecution' | 'views'>,
  normalise: (schema: PostgresSchema) => T,
): Promise<T> {
  const casts = new CastBatch();
  const schema = new PostgresSchema(tools, casts);
  const stated = normalise(schema);
  if (casts.isEmpty) return stated;
  await tools.withExecution((session) => casts.run(session));
  return normalise(schema);
}

function refuseRequiredAbsence({ requires }: Manifest): void {
  const index = requires.findIndex(({ row }) => row === null);
  if (index >= 0) throw invalid(`requires[${index}] (${requires[index]?.target})`, UNLOCKABLE);
}

const UNLOCKABLE =
  'a row that does not exist cannot be locked, so under read committed another session could insert it after the check;' +
  " open the adapter with isolation: 'serializable', or depend on a row that exists";

/** Under read committed, row locks protect watched rows, and only existing rows can be locked. */
async function refuseUnlockable(tools: NormaliseTools, manifest: Manifest): Promise<Manifest> {
  if (tools.isolation === 'serializable' || manifest.watch.length === 0) return manifest;
  const readings = await tools.read(manifest.watch);
  const index = readings.findIndex(({ row }) => row === null);
  if (index >= 0) throw invalid(`watch[${index}] (${manifest.watch[index]?.target})`, UNLOCKABLE);
  return manifest;
}
