import { createHash } from 'node:crypto';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import type { Clock, IdSource } from '../../src/contract/clock.ts';
import type { LedgersFactory } from '../../src/contract/ledgers.ts';
import type { Reached } from '../../src/contract/steps.ts';
import { type Approver, approver, generateApprover } from '../../src/crypto/approver.ts';
import { Keyring } from '../../src/crypto/keyring.ts';
import type { Target } from '../../src/protocol/registration.ts';
import type { Row } from '../../src/protocol/value.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { type MemoryOptions, memoryAdapter, PROBE_TARGET } from './adapter.ts';
import { type Logic, MemoryBackend } from './backend.ts';
import type { Fault } from './faults.ts';
import { MemoryProcess } from './process.ts';
import { MemoryRemote, remoteAdapter } from './remote.ts';

export type { MemoryAction } from './action.ts';
export { MEMORY_CHANNELS, memoryAdapter, PROBE_TARGET } from './adapter.ts';
export { type Logic, MemoryBackend, type Write } from './backend.ts';
export {
  CALLS,
  type Call,
  type Ending,
  everyFault,
  type Fault,
  type Network,
} from './faults.ts';
export {
  alterEvidence,
  overlay,
  overlayAdapter,
  overlayStages,
  silence,
  withoutChannel,
} from './overlay.ts';
export { FaultStruck, type MemoryProcess } from './process.ts';
export { MemoryRemote, REMOTE_CHANNELS, remoteAdapter } from './remote.ts';

/**
 * The tables of every world: what operations write, what server logic writes, and what approvals
 * depend on.
 */
export const WORLD_TARGETS: readonly Target[] = [
  { name: 'invoice', columns: ['id', 'status', 'amount'], key: ['id'], volatile: [] },
  { name: 'audit', columns: ['id', 'text'], key: ['id'], volatile: [] },
  { name: 'vendor', columns: ['id', 'blocked'], key: ['id'], volatile: [] },
];

const START_MS = Date.UTC(2026, 0, 1, 10);
const ISSUER = 'ap-team';
const keyring = new Keyring([
  { id: 'world', secret: createHash('sha256').update('effectmatch/world').digest() },
]);
const key = generateApprover(ISSUER);

/** What a world consists of: its rows, and whether its backend is remote. */
export interface WorldOptions extends MemoryOptions {
  /** Where its processes keep their records; a SQLite file unless said otherwise. */
  readonly ledgers?: (clock: Clock) => LedgersFactory & Partial<Disposable>;
  readonly rows?: Readonly<Record<string, readonly Row[]>>;
  readonly remote?: 'MEDIATED' | 'OPAQUE';
  /**
   * Called before every step outside the process; a test that awaits something here decides the
   * order.
   */
  readonly pause?: (call: string) => Promise<void>;
}

/** What `createRuntime` takes to run as one process of a world. */
export interface Started {
  readonly process: MemoryProcess;
  readonly config: {
    readonly store: LedgersFactory;
    readonly keyring: Keyring;
    readonly issuers: Readonly<
      Record<string, { readonly key: string; readonly may: readonly string[] }>
    >;
    readonly adapters: Readonly<Record<string, AdapterFactory>>;
    readonly recoverAtStart: boolean;
  };
  readonly internals: { readonly clock: Clock; readonly ids: IdSource; readonly reached: Reached };
}

/**
 * A deployment in memory: an adapter `books` that holds candidates, an adapter `bank` that sends
 * requests, ledgers, keys, a clock, and processes that come and go. One chosen fault strikes one
 * process; what is durable afterwards can be compared with what was recorded about it.
 */
export class World implements Disposable {
  readonly books: MemoryBackend;
  readonly bank: MemoryRemote;
  readonly approver: Approver;
  readonly clock: Clock = { now: () => this.#nowMs, monotonic: () => this.#nowMs };
  #nowMs = START_MS;
  #ids = 0;
  readonly #options: WorldOptions;
  /** Where every process of this world keeps its records; survives them. */
  readonly #store: LedgersFactory & Partial<Disposable>;

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    const rows = { vendor: [{ id: 1, blocked: false }], ...options.rows };
    const targets = [...WORLD_TARGETS, PROBE_TARGET];
    this.books = new MemoryBackend('books-1', targets, rows);
    this.bank = new MemoryRemote(new MemoryBackend('bank-1', targets, rows));
    this.#store = (options.ledgers ?? temporaryLedgers)(this.clock);
    this.approver = approver({
      issuer: ISSUER,
      privateKey: key.privateKey,
      clock: this.clock,
      ids: this.#idSource(),
    });
  }

  /** A process on this world's store and backends. Its fault, if any, is armed later. */
  start(): Started {
    const process = new MemoryProcess({
      remote: this.bank,
      pause: this.#options.pause ?? (async () => {}),
      disturb: (kind) => this.disturb(kind),
      stepClock: (byMs) => this.advance(byMs),
    });
    const { remote: capability = 'MEDIATED', values = 'plain' } = this.#options;
    return {
      process,
      config: {
        store: process.ledgers(this.#store),
        keyring,
        issuers: { [ISSUER]: { key: key.publicKey, may: ['books', 'bank'] } },
        adapters: {
          books: process.adapter(memoryAdapter(this.books, { values })),
          bank: process.adapter(remoteAdapter(this.bank, { capability, values })),
        },
        recoverAtStart: false,
      },
      internals: { clock: this.clock, ids: this.#idSource(), reached: process.reached },
    };
  }

  /** Arms a process's fault; what the fault does to the backends happens at once. */
  arm(process: MemoryProcess, fault: Fault): void {
    process.arm(fault);
    if (fault.kind !== 'logic') return;
    const { how } = fault;
    for (const backend of [this.books, this.bank.backend]) backend.logic = interfere(how, process);
  }

  /** Ends the world: its ledger is removed. Tests that make few worlds leave that to their end. */
  [Symbol.dispose](): void {
    this.#store[Symbol.dispose]?.();
  }

  advance(byMs: number): void {
    this.#nowMs += byMs;
  }

  /** Somebody else blocks the vendor, or changes the schema, in both backends. */
  disturb(kind: 'state' | 'schema'): void {
    for (const backend of [this.books, this.bank.backend]) {
      if (kind === 'schema') backend.schema += 1;
      else
        backend.write({ op: 'update', target: 'vendor', key: { id: 1 }, set: { blocked: true } });
    }
  }

  #idSource(): IdSource {
    return {
      hex: (bytes) => {
        this.#ids += 1;
        return createHash('sha512')
          .update(`${this.#ids}`)
          .digest('hex')
          .slice(0, bytes * 2);
      },
    };
  }
}

/**
 * Server logic that adds to the first write of an operation, drops it, or writes something else in
 * its place.
 */
function interfere(how: 'add' | 'remove' | 'alter', process: MemoryProcess): Logic {
  let writes = 0;
  return (write) => {
    if (write.target === PROBE_TARGET.name) return [write];
    writes += 1;
    if (writes > 1) return [write];
    process.noteStruck();
    if (how === 'remove') return [];
    if (how === 'add')
      return [write, { op: 'insert', target: 'audit', row: { id: 'server', text: 'logic' } }];
    if (write.op === 'insert')
      return [{ ...write, row: { ...write.row, ...alteration(write.target) } }];
    return write.op === 'update'
      ? [{ ...write, set: { ...write.set, ...alteration(write.target) } }]
      : [];
  };
}

function alteration(target: string): Row {
  return target === 'invoice' ? { status: 'altered by logic' } : { text: 'altered by logic' };
}
