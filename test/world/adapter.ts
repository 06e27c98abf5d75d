import {
  type Backend,
  type Candidate,
  refusedPromotion,
  stageFailed,
} from '../../src/backend/candidate.ts';
import { plainSchema } from '../../src/backend/manifest-schema.ts';
import { normaliseManifest } from '../../src/backend/normalise.ts';
import { promotable } from '../../src/backend/promotable.ts';
import type {
  AdapterContext,
  AdapterFactory,
  Evidence,
  Markers,
  PromotableAdapter,
} from '../../src/contract/adapter.ts';
import { codeIdentity } from '../../src/crypto/code-identity.ts';
import { digestValueOf } from '../../src/crypto/digest.ts';
import type { StateRead, StateReading } from '../../src/protocol/effect.ts';
import type { Registration, Target } from '../../src/protocol/registration.ts';
import { type MemoryAction, parseMemoryAction } from './action.ts';
import type { MemoryBackend, MemoryCandidate } from './backend.ts';
import { memoryOutlets } from './boundary.ts';

/**
 * The adapter's own control object. It is not registered, so no action and no manifest reaches it.
 */
export const PROBE_TARGET: Target = {
  name: 'em-probe',
  columns: ['token'],
  key: ['token'],
  volatile: [],
};

/**
 * One channel of every kind: recorded events, a second count of them, where they were, and what
 * must not change.
 */
export const MEMORY_CHANNELS = ['log', 'tally', 'touched', 'schema'] as const;

/** What may be chosen for {@link memoryAdapter}. */
export interface MemoryOptions {
  readonly values?: Registration['values'];
}

/** A PROMOTABLE adapter for a backend in memory; also a short example of what the port asks for. */
export function memoryAdapter(
  backend: MemoryBackend,
  options: MemoryOptions = {},
): AdapterFactory<MemoryAction> {
  return { open: async (context) => openAdapter(backend, options, context) };
}

function openAdapter(
  backend: MemoryBackend,
  { values = 'plain' }: MemoryOptions,
  context: AdapterContext,
): PromotableAdapter<MemoryAction> {
  const targets = backend.targets.filter((target) => target !== PROBE_TARGET);
  const registration: Registration = { profile: 'row-event', values, targets };
  const code = codeIdentity(new URL('.', import.meta.url));
  const port: Backend<MemoryAction> = {
    identity: { kind: 'memory', backend: backend.id, code },
    registration,
    profiles: ['row-event'],
    channels: MEMORY_CHANNELS,
    markers: memoryMarkers(backend, context),
    probe: {
      target: PROBE_TARGET.name,
      action: (token) => ({
        writes: [{ op: 'insert', target: PROBE_TARGET.name, row: { token } }],
      }),
      durable: async (token) => backend.find(PROBE_TARGET.name, { token }) !== undefined,
    },
    normalise: async (manifest) => normaliseManifest(plainSchema(registration), manifest),
    read: async (reads) => readRows(backend, reads),
    readsMany: true,
    parseAction: (input) => parseMemoryAction(targets, input),
    describeAction: ({ writes }) => ({ writes: writes.map((write) => ({ ...write })) }),
    survey: async () => memoryOutlets(backend, targets),
    async hold() {
      const candidate = backend.open();
      if (candidate === undefined) return stageFailed('busy', 'another candidate is held');
      // Markers are left to the commit, so that worlds show that the commit itself refuses.
      const held = holdCandidate(backend, context, candidate);
      return { kind: 'open', candidate: held, marker: undefined };
    },
    close: async () => {},
  };
  return promotable(port, context);
}

/**
 * Declared state as it is outside every candidate. The one writer's lock keeps it from changing
 * meanwhile.
 */
export function readRows(
  backend: Pick<MemoryBackend, 'find'>,
  reads: readonly StateRead[],
): readonly StateReading[] {
  return reads.map(({ target, key, columns }) => {
    const row = backend.find(target, key);
    const chosen =
      row && Object.entries(row).filter(([column]) => columns?.includes(column) ?? true);
    return { target, key, row: chosen ? Object.fromEntries(chosen) : null };
  });
}

function holdCandidate(
  backend: MemoryBackend,
  context: AdapterContext,
  candidate: MemoryCandidate,
): Candidate<MemoryAction> {
  const fingerprint = () =>
    digestValueOf('effectmatch/testing-evidence/v1', [
      candidate.log,
      [...candidate.tally.values()],
    ]);
  return {
    id: candidate.id,
    async apply({ writes }) {
      try {
        for (const write of writes) candidate.run(write);
        return { kind: 'done' };
      } catch (error) {
        return stageFailed('action-failed', String(error));
      }
    },
    read: async (reads) => readRows(backend, reads),
    observe: async () => ({ evidence: fingerprint(), ...evidenceOf(backend, candidate) }),
    recheck: async () => fingerprint(),
    async commit(marker) {
      context.reached('adapter:marker-written');
      if (!backend.commit(candidate, marker))
        return refusedPromotion('marker-exists', 'the occurrence is already decided');
      context.reached('adapter:commit-returned');
      return { kind: 'confirmed' };
    },
    end: async () => backend.drop(candidate),
  };
}

function evidenceOf(
  backend: MemoryBackend,
  { log, tally, touched, schemaBefore }: MemoryCandidate,
): Pick<Evidence, 'records' | 'channels' | 'unattributed' | 'assigned'> {
  return {
    records: [...log],
    channels: [
      { channel: 'log', kind: 'records', count: log.length },
      {
        channel: 'tally',
        kind: 'counts',
        counts: [...tally.values()].map((count) => ({ ...count })),
      },
      { channel: 'touched', kind: 'touched', targets: [...touched] },
      {
        channel: 'schema',
        kind: 'stable',
        before: String(schemaBefore),
        after: String(backend.schema),
      },
    ],
    unattributed: 0,
    assigned: [],
  };
}

function memoryMarkers(backend: MemoryBackend, context: AdapterContext): Markers {
  return {
    find: async (occurrence) => backend.markers.get(occurrence),
    async void(marker) {
      const found = backend.markers.get(marker.occurrence);
      if (found !== undefined) return { kind: 'conflict', marker: found };
      if (backend.writer !== undefined) return { kind: 'busy', why: 'a candidate is held' };
      context.reached('adapter:void-written');
      backend.markers.set(marker.occurrence, marker);
      context.reached('adapter:void-committed');
      return { kind: 'inserted' };
    },
    async forget(occurrence) {
      backend.markers.delete(occurrence);
    },
  };
}
