import { plainSchema } from '../../src/backend/manifest-schema.ts';
import { normaliseManifest } from '../../src/backend/normalise.ts';
import type {
  AdapterContext,
  AdapterFactory,
  Approval,
  Evidence,
  RemoteAdapter,
} from '../../src/contract/adapter.ts';
import { codeIdentity } from '../../src/crypto/code-identity.ts';
import { digestValueOf } from '../../src/crypto/digest.ts';
import { invariant } from '../../src/errors.ts';
import { canonical } from '../../src/protocol/canon.ts';
import type { ApprovedEffect, CellRow, ChangeRecord } from '../../src/protocol/effect.ts';
import type { Registration } from '../../src/protocol/registration.ts';
import type { Row, Value } from '../../src/protocol/value.ts';
import { type MemoryAction, parseMemoryAction } from './action.ts';
import { type MemoryOptions, PROBE_TARGET, readRows } from './adapter.ts';
import type { MemoryBackend, Write } from './backend.ts';
import { memoryOutlets } from './boundary.ts';

/**
 * What a read-back of a request in memory must hear from: the receipt under its key, and the audit
 * trail.
 */
export const REMOTE_CHANNELS = ['receipt', 'audit'] as const;

const CREDENTIAL = 'credential of the gateway';

/**
 * A service in memory: it changes its backend once per idempotency key, and remembers what each
 * request did.
 */
export class MemoryRemote {
  readonly backend: MemoryBackend;
  readonly #receipts = new Map<string, readonly ChangeRecord[]>();
  /** Requests that have left and not arrived. */
  readonly #travelling: (() => void)[] = [];

  constructor(backend: MemoryBackend) {
    this.backend = backend;
  }

  /** One request. A repeated key changes nothing; a wrong credential is refused. */
  send(key: string, credential: string, writes: readonly Write[]): 'done' | 'repeated' | 'refused' {
    if (credential !== CREDENTIAL) return 'refused';
    if (this.#receipts.has(key)) return 'repeated';
    const candidate = this.backend.open();
    invariant(candidate !== undefined, 'the service in memory does one request at a time');
    try {
      for (const write of writes) candidate.run(write);
      this.backend.commit(candidate);
      this.#receipts.set(key, candidate.log);
      return 'done';
    } finally {
      this.backend.drop(candidate);
    }
  }

  /** Sends later: the request is on its way until {@link deliver}. */
  post(key: string, writes: readonly Write[]): void {
    this.#travelling.push(() => this.send(key, CREDENTIAL, writes));
  }

  /** Everything on its way arrives. */
  deliver(): void {
    for (const arrive of this.#travelling.splice(0)) arrive();
  }

  receipt(key: string): readonly ChangeRecord[] | undefined {
    return this.#receipts.get(key);
  }
}

/**
 * A MEDIATED adapter for a service in memory, or an OPAQUE one, which sends what the action says.
 */
export function remoteAdapter(
  remote: MemoryRemote,
  options: MemoryOptions & { readonly capability?: 'MEDIATED' | 'OPAQUE' } = {},
): AdapterFactory<MemoryAction> {
  const { capability = 'MEDIATED', values = 'plain' } = options;
  return { open: async (context) => openRemote(remote, { capability, values }, context) };
}

function openRemote(
  remote: MemoryRemote,
  {
    capability,
    values,
  }: { readonly capability: 'MEDIATED' | 'OPAQUE'; readonly values: 'plain' | 'digest' },
  { clock, reached }: AdapterContext,
): RemoteAdapter<MemoryAction> {
  const { backend } = remote;
  const targets = backend.targets.filter((target) => target !== PROBE_TARGET);
  const registration: Registration = { profile: 'row-event', values, targets, capability };
  return {
    capability,
    identity: {
      kind: 'memory-remote',
      backend: backend.id,
      code: codeIdentity(new URL('.', import.meta.url)),
    },
    registration,
    profiles: ['row-event'],
    channels: REMOTE_CHANNELS,
    normalise: async (manifest) => normaliseManifest(plainSchema(registration), manifest),
    read: async (reads) => readRows(backend, reads),
    parseAction: (input) => parseMemoryAction(targets, input),
    describeAction: ({ writes }) => ({ writes: writes.map((write) => ({ ...write })) }),
    survey: async () => memoryOutlets(backend, targets),
    buildRequest(approved, action) {
      const approvedWrites = () =>
        approved.effects
          .toSorted((a, b) => (canonical(a) < canonical(b) ? -1 : 1))
          .flatMap(writesOf);
      const writes = capability === 'OPAQUE' ? action.writes : approvedWrites();
      return { content: { writes: writes.map((write) => ({ ...write })) } };
    },
    async dispatch(permit, request) {
      reached('adapter:connected');
      remote.send(permit.record.occurrence, CREDENTIAL, requestedWrites(request.content));
      reached('adapter:response-read');
      return { mayHaveSent: true };
    },
    readBack: async (occurrence) => readReceipt(remote, occurrence, clock.now()),
    probe: {
      fingerprint: (digest) => `${backend.id} ${digest(CREDENTIAL)}`,
      samples: () => [sampleApproval({ profile: 'row-event', values, targets, capability })],
      exclusiveCredential: async () =>
        remote.send('probe of the credential', 'none', probeWrites('x')) === 'refused',
      async idempotent() {
        const key = `probe of the key ${clock.now()}`;
        const first = remote.send(key, CREDENTIAL, []);
        return first !== 'refused' && remote.send(key, CREDENTIAL, probeWrites(key)) === 'repeated';
      },
    },
    close: async () => {},
  };
}

/** An outcome that nobody approved, for the probe of how requests are built. */
function sampleApproval(registration: Registration): Approval {
  const effects = registration.targets.map(({ name, columns }) => ({
    op: 'insert' as const,
    target: name,
    key: {},
    after: Object.fromEntries(columns.map((column) => [column, { is: column }])),
    count: 1,
  }));
  return {
    version: 1,
    adapter: 'bank',
    registration,
    effects,
    requires: [],
    watch: [],
    salt: '0'.repeat(32),
  };
}

const probeWrites = (token: string): readonly Write[] => [
  { op: 'insert', target: PROBE_TARGET.name, row: { token } },
];

/** The writes that a request carries. */
export function requestedWrites(content: Value): readonly Write[] {
  return (content as unknown as { readonly writes: readonly Write[] }).writes;
}

/**
 * "Not found" proves nothing, because the request may still be on its way: then no channel answers.
 */
function readReceipt(remote: MemoryRemote, occurrence: string, nowMs: number): Evidence {
  const records = remote.receipt(occurrence);
  const facts = { candidate: `request ${occurrence}`, unattributed: 0, assigned: [] };
  const window = { fromMs: nowMs, toMs: nowMs };
  if (records === undefined) {
    const why = 'the service knows no request with this key, which may still be on its way';
    const channels = REMOTE_CHANNELS.map((channel) => ({ channel, kind: 'silent' as const, why }));
    return { ...facts, evidence: 'none', records: [], channels, window };
  }
  const evidence = digestValueOf('effectmatch/testing-evidence/v1', records);
  const counts = records.map(({ op, target }) => ({ op, target, count: 1 }));
  return {
    ...facts,
    evidence,
    records,
    channels: [
      { channel: 'receipt', kind: 'records', count: records.length },
      { channel: 'audit', kind: 'counts', counts },
    ],
    window,
  };
}

/** The request is derived from what was approved alone, so every cell has to be an exact value. */
function writesOf(effect: ApprovedEffect): Write[] {
  const { op, target, count } = effect;
  const key = exactRow(effect.key);
  const write: Write =
    op === 'insert'
      ? { op, target, row: { ...key, ...exactRow(effect.after) } }
      : op === 'update'
        ? { op, target, key, set: exactRow(effect.after) }
        : { op, target, key };
  return Array.from({ length: count }, () => write);
}

function exactRow(cells: CellRow | undefined): Row {
  return Object.fromEntries(
    Object.entries(cells ?? {}).map(([column, cell]) => [column, 'is' in cell ? cell.is : null]),
  );
}
