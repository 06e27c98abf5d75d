import { plainSchema } from '../../src/backend/manifest-schema.ts';
import { normaliseManifest } from '../../src/backend/normalise.ts';
import { PermitCheck, type StagedUnder } from '../../src/backend/permit-check.ts';
import type {
  AdapterContext,
  AdapterFactory,
  Evidence,
  Markers,
  PromotableAdapter,
  Promotion,
  Stage,
  Staged,
} from '../../src/contract/adapter.ts';
import type { ConsumedPermit } from '../../src/contract/proof.ts';
import { codeIdentity } from '../../src/crypto/code-identity.ts';
import { digestValueOf } from '../../src/crypto/digest.ts';
import { EffectMatchError } from '../../src/errors.ts';
import type { StateRead, StateReading } from '../../src/protocol/effect.ts';
import type { Registration, Target } from '../../src/protocol/registration.ts';
import { type MemoryAction, parseMemoryAction } from './action.ts';
import type { Candidate, MemoryBackend } from './backend.ts';
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
  const held = new Set<Candidate>();
  let closed = false;
  const use = (): MemoryBackend => {
    if (closed)
      throw new EffectMatchError(
        'ERR_EM_ADAPTER_UNAVAILABLE',
        'the adapter is closed; open it again',
      );
    return backend;
  };
  return {
    capability: 'PROMOTABLE',
    identity: {
      kind: 'memory',
      backend: backend.id,
      code: codeIdentity(new URL('.', import.meta.url)),
    },
    registration,
    profiles: ['row-event'],
    channels: MEMORY_CHANNELS,
    normalise: async (manifest) => normaliseManifest(plainSchema(registration), manifest),
    read: async (reads) => readRows(use(), reads),
    parseAction: (input) => parseMemoryAction(targets, input),
    describeAction: ({ writes }) => ({ writes: writes.map((write) => ({ ...write })) }),
    survey: async () => memoryOutlets(use(), targets),
    stage: async (claim, certificate, action) =>
      stageAction(use(), context, held, { under: { claim, certificate }, action }),
    markers: memoryMarkers(use, context),
    probe: {
      target: PROBE_TARGET.name,
      action: (token) => ({
        writes: [{ op: 'insert', target: PROBE_TARGET.name, row: { token } }],
      }),
      durable: async (token) => use().find(PROBE_TARGET.name, { token }) !== undefined,
    },
    async close() {
      closed = true;
      for (const candidate of held) backend.drop(candidate);
      held.clear();
    },
  };
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

function stageAction(
  backend: MemoryBackend,
  context: AdapterContext,
  held: Set<Candidate>,
  { under, action }: { readonly under: StagedUnder; readonly action: MemoryAction },
): Staged {
  const fromMs = context.clock.now();
  const candidate = backend.open();
  if (candidate === undefined)
    return { kind: 'failed', reason: 'busy', detail: 'another candidate is held' };
  held.add(candidate);
  const drop = (): void => {
    held.delete(candidate);
    backend.drop(candidate);
  };
  try {
    context.reached('adapter:stage-opened');
    const failure = runAction(candidate, action);
    if (failure !== undefined) {
      drop();
      return { kind: 'failed', reason: 'action-failed', detail: failure };
    }
    context.reached('adapter:action-done');
  } catch (error) {
    drop();
    throw error;
  }
  const check = new PermitCheck(under, candidate.id);
  return { kind: 'held', stage: holdStage({ backend, context, candidate, drop, check }, fromMs) };
}

function runAction(candidate: Candidate, action: MemoryAction): string | undefined {
  try {
    for (const write of action.writes) candidate.run(write);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

interface Holding {
  readonly backend: MemoryBackend;
  readonly context: AdapterContext;
  readonly candidate: Candidate;
  readonly drop: () => void;
  readonly check: PermitCheck;
}

function holdStage(holding: Holding, fromMs: number): Stage {
  const { backend, context, candidate, drop, check } = holding;
  const facts = () => ({
    candidate: candidate.id,
    evidence: digestValueOf('effectmatch/testing-evidence/v1', [
      candidate.log,
      [...candidate.tally.values()],
    ]),
  });
  return {
    candidate: candidate.id,
    read: async (reads) => readRows(backend, reads),
    async observe() {
      const seen = facts();
      check.observed(seen.evidence);
      return {
        ...seen,
        ...evidenceOf(backend, candidate),
        window: { fromMs, toMs: context.clock.now() },
      };
    },
    async recheck() {
      const seen = facts();
      check.rechecked(seen.evidence);
      return seen;
    },
    promote: async (permit) => promoteCandidate(holding, permit),
    discard: async () => drop(),
    [Symbol.asyncDispose]: async () => drop(),
  };
}

function evidenceOf(
  backend: MemoryBackend,
  { log, tally, touched, schemaBefore }: Candidate,
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

function promoteCandidate(
  { backend, context, candidate, drop, check }: Holding,
  permit: ConsumedPermit,
): Promotion {
  try {
    if (backend.writer !== candidate)
      return { kind: 'refused', reason: 'stage-ended', detail: 'nothing is held' };
    const mismatch = check.refusalOf(permit);
    if (mismatch !== undefined) return mismatch;
    context.reached('adapter:marker-written');
    if (!backend.commit(candidate, permit.marker)) {
      return {
        kind: 'refused',
        reason: 'marker-exists',
        detail: 'the occurrence is already decided',
      };
    }
    context.reached('adapter:commit-returned');
    return { kind: 'confirmed' };
  } finally {
    drop();
  }
}

function memoryMarkers(use: () => MemoryBackend, context: AdapterContext): Markers {
  return {
    find: async (occurrence) => use().markers.get(occurrence),
    async void(marker) {
      const backend = use();
      const found = backend.markers.get(marker.occurrence);
      if (found !== undefined) return { kind: 'conflict', marker: found };
      if (backend.writer !== undefined) return { kind: 'busy', why: 'a candidate is held' };
      context.reached('adapter:void-written');
      backend.markers.set(marker.occurrence, marker);
      context.reached('adapter:void-committed');
      return { kind: 'inserted' };
    },
    async forget(occurrence) {
      use().markers.delete(occurrence);
    },
  };
}
