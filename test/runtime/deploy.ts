import assert from 'node:assert/strict';
import type { MarkerText } from '../../src/contract/proof.ts';
import type { Step } from '../../src/contract/steps.ts';
import type { SignOptions } from '../../src/crypto/approver.ts';
import { createSealer } from '../../src/crypto/seal.ts';
import { row, update } from '../../src/protocol/draft.ts';
import type { SignedLicense } from '../../src/protocol/license.ts';
import { markerRecord } from '../../src/protocol/marker.ts';
import type { OccurrenceId } from '../../src/protocol/record.ts';
import type { Gate, Terminal, TerminalOf } from '../../src/protocol/terminal.ts';
import type { PrepareRequest } from '../../src/runtime/prepare.ts';
import type { Recovered } from '../../src/runtime/recover.ts';
import { createRuntime, type Runtime, type RuntimeConfig } from '../../src/runtime/runtime.ts';
import { type Fault, type MemoryProcess, World, type WorldOptions } from '../world/world.ts';

export const LEASE_MS = 60_000;

/** Two invoices to pay, at a vendor that must not be blocked. */
export function invoiceWorld(options: WorldOptions = {}): World {
  return new World({
    rows: {
      invoice: [
        { id: 1, status: 'pending', amount: 35 },
        { id: 2, status: 'pending', amount: 70 },
      ],
    },
    ...options,
  });
}

/** The action that pays invoice 1, and what somebody asks to have approved for it. */
export const PAY = {
  writes: [{ op: 'update', target: 'invoice', key: { id: 1 }, set: { status: 'paid' } }],
};
export const PAYMENT: PrepareRequest = {
  adapter: 'books',
  task: 'invoice 1',
  planRevision: 1,
  effects: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })],
  requires: [row('vendor', { id: 1 }, { blocked: false })],
  continuations: ['reconcile'],
};

export interface Deployed extends AsyncDisposable {
  readonly world: World;
  readonly runtime: Runtime;
  readonly process: MemoryProcess;
  /** Prepares and signs. */
  approve(request?: Partial<PrepareRequest>, sign?: Partial<SignOptions>): Promise<SignedLicense>;
}

export interface DeployOptions extends Partial<RuntimeConfig> {
  /** What happens when a step is reached. */
  readonly at?: Partial<Record<Step, () => void>>;
}

/** Starts one process of a world. Closing it is ending the process in good order. */
export async function deploy(world: World, options: DeployOptions = {}): Promise<Deployed> {
  const { at = {}, ...change } = options;
  const { process, config, internals } = world.start();
  const runtime = await createRuntime(
    { leaseMs: LEASE_MS, ...config, ...change },
    {
      ...internals,
      reached(step) {
        internals.reached(step);
        at[step]?.();
      },
    },
  );
  if ('bank' in config.adapters && change.adapters === undefined) await runtime.prove('bank');
  world.arm(process, { kind: 'none' }); // what was traced so far was admission
  return {
    world,
    runtime,
    process,
    async approve(request = {}, sign = {}) {
      const proposal = await runtime.prepare({ ...PAYMENT, ...request });
      return world.approver.sign(proposal, { expiresIn: '10m', ...sign });
    },
    async [Symbol.asyncDispose]() {
      if (process.alive) await runtime.close();
    },
  };
}

/** The terminal, which must be of this kind. */
export function ofKind<K extends Terminal['kind']>(
  kind: K,
  terminal: Terminal | undefined,
): TerminalOf<K> {
  assert.equal(terminal?.kind, kind, JSON.stringify(terminal));
  return terminal as TerminalOf<K>;
}

/** Asserts a rejection at this gate for this reason. */
export function assertRejected(
  terminal: Terminal | undefined,
  at: Gate,
  reason: string,
): TerminalOf<'rejected'> {
  const rejected = ofKind('rejected', terminal);
  assert.deepEqual({ at: rejected.at, reason: rejected.reason }, { at, reason }, rejected.detail);
  return rejected;
}

/** A process that executes a payment, meets its fault, and leaves an occurrence behind. */
export async function interrupt(
  world: World,
  fault: Fault,
  request: Partial<PrepareRequest> = {},
): Promise<{
  readonly license: SignedLicense;
  readonly process: MemoryProcess;
  readonly terminal?: Terminal;
}> {
  const first = await deploy(world);
  const license = await first.approve(request);
  world.arm(first.process, fault);
  const terminal = await first.runtime.execute(license, PAY).catch((error: unknown) => {
    assert.ok(first.process.struck, `only the fault may be thrown: ${String(error)}`);
    return undefined;
  });
  assert.ok(first.process.struck, 'the fault never struck');
  return { license, process: first.process, ...(terminal && { terminal }) };
}

/** The one occurrence that recovery looked at. */
export function onlyOne(recovered: readonly Recovered[]): Recovered {
  assert.equal(recovered.length, 1, JSON.stringify(recovered));
  return recovered[0] as Recovered;
}

/** The one occurrence that is claimed in this runtime's store. */
export async function claimedOccurrence(runtime: Runtime): Promise<OccurrenceId> {
  const claims = (await runtime.ledgers.journal()).filter(({ kind }) => kind === 'claim');
  assert.equal(claims.length, 1);
  return (claims[0] as { readonly record: { readonly occurrence: OccurrenceId } }).record
    .occurrence;
}

/** For `pause`: does the work in front of the first such call, and nothing otherwise. */
export function once(at: string, work: () => Promise<void>): (call: string) => Promise<void> {
  let done = false;
  return async (call) => {
    if (call !== at || done) return;
    done = true;
    await work();
  };
}

/** A committed marker with other content, sealed with the keys of the world. */
export function reseal(world: World, content: unknown): MarkerText {
  const { text, seal } = createSealer(world.start().config.keyring).seal(
    markerRecord,
    markerRecord.parse(content),
  );
  const { occurrence } = content as { readonly occurrence: string };
  return { occurrence, disposition: 'committed', text, sealKey: seal.key, sealMac: seal.mac };
}
