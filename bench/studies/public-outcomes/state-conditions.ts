// The ways to run one sequence of native calls. Each decides by the evidence that it may read and
// by nothing else.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { snapshot } from '../../../src/adapters/snapshot/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
import { createRuntime, type Internals, type Runtime } from '../../../src/runtime/runtime.ts';
import type { Snapshot } from '../../data/state-bench.ts';
import { keepReceipt, keepVerdict } from '../../facts.ts';
import type { ToolKit } from '../../state-tools/tools.ts';
import { type ReplayedCall, runnerFor } from './replay.ts';
import { KEY, type Schema } from './state-effects.ts';
import type { ToolSource } from './state-tools.ts';

/** One execution to be. Which fault it carries, if any, is not in it. */
export interface Execution {
  readonly initial: Snapshot;
  readonly schema: Schema;
  readonly calls: readonly ReplayedCall[];
  /** Tools that the application has. */
  readonly tools: readonly string[];
  /** For our own tools; without it, the recorded consequences of the calls are applied. */
  readonly kit?: ToolKit | undefined;
  /** What was approved; only EffectMatch reads it. */
  readonly approved: readonly ApprovedEffect[];
}

/** What a condition says about its own decision; the state itself is read back by others. */
export interface Decision {
  readonly committed: boolean;
  readonly why?: string;
}

export interface Condition {
  readonly name: 'direct' | 'error-reject' | 'EffectMatch' | 'no comparison';
  /** Runs it in an empty folder and leaves the durable state there. */
  run(execution: Execution, folder: string): Promise<Decision>;
  /** The durable state there, read over a separate connection. */
  readBack(folder: string): unknown;
}

/** Every tool works on the durable state, and its answer is trusted. */
const direct: Condition = {
  name: 'direct',
  async run({ initial, calls, kit }, folder) {
    using store = openPlain(folder, initial);
    const runner = runnerFor({ calls, kit });
    for (const { tool, args } of calls) {
      const state = store.load();
      runner.run(state, tool, args);
      store.save(state);
    }
    return { committed: true };
  },
  readBack: readPlain,
};

/** The tools work on a private copy, which is discarded when one of them reports an error. */
const errorReject: Condition = {
  name: 'error-reject',
  async run({ initial, calls, kit }, folder) {
    using store = openPlain(folder, initial);
    const runner = runnerFor({ calls, kit });
    const copy = store.load();
    for (const { tool, args } of calls) {
      const error = runner.run(copy, tool, args);
      if (error !== undefined) return { committed: false, why: `${tool}: ${error}` };
    }
    store.save(copy);
    return { committed: true };
  },
  readBack: readPlain,
};

/**
 * The whole runtime: license, claim, held candidate, comparison, permit, promotion; ledger and
 * state on disk.
 */
const effectMatch: Condition = {
  name: 'EffectMatch',
  run: (execution, folder) => runHeld(execution, folder, {}),
  readBack: readSnapshot,
};

/** The ablation of the comparison: a complete observation counts as the approved one. */
export const withoutComparison: Internals = {
  classify: (_, observation) =>
    observation.kind === 'complete'
      ? { kind: 'EXACT', effects: observation.effects }
      : { kind: 'INDETERMINATE', gaps: observation.gaps },
};

/** The same runtime with the comparison switched off, and nothing else. */
const noComparison: Condition = {
  name: 'no comparison',
  run: (execution, folder) => runHeld(execution, folder, withoutComparison),
  readBack: readSnapshot,
};

export const CONDITIONS = { direct, errorReject, effectMatch, noComparison } as const;

/** The approver of this process. */
export const KEYS = generateApprover('study');
const HELD_FILE = 'state.db';
const PLAIN_FILE = 'plain.db';

/**
 * A runtime in front of the durable state in this folder. `change` is for ablations of the adapter.
 */
export async function openHeld(
  execution: Execution,
  folder: string,
  internals: Internals = {},
  change: (factory: AdapterFactory) => AdapterFactory = (factory) => factory,
): Promise<Runtime> {
  const { adapters, ...config } = heldConfig(execution, folder, KEYS.publicKey);
  return await createRuntime({ ...config, adapters: { state: change(adapters.state) } }, internals);
}

/**
 * The deployment in this folder: the same in every process that knows the approver's public key.
 */
export function heldConfig(
  { initial, schema, calls, tools, kit }: Execution,
  folder: string,
  publicKey: string,
) {
  const collections = [...schema].map(([namespace, fields]) => [
    namespace,
    { path: `/${namespace}`, key: KEY, map: true, fields },
  ]);
  const factory = snapshot({
    file: join(folder, HELD_FILE),
    initial,
    collections: Object.fromEntries(collections),
    tools: new URL('./state-tools.ts', import.meta.url),
    toolData: { calls, tools, kit } satisfies ToolSource,
  });
  return {
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { study: { key: publicKey, may: ['state'] } },
    adapters: { state: factory as AdapterFactory },
  };
}

/** The approver's license for what the execution has to leave, asked for at this runtime. */
export async function approveHeld(
  runtime: Runtime,
  { approved }: Execution,
  continuations: readonly string[] = [],
): Promise<SignedLicense> {
  const proposal = await runtime.prepare({
    adapter: 'state',
    task: 'task',
    planRevision: 1,
    effects: approved,
    continuations,
  });
  return approver(KEYS).sign(proposal, { expiresIn: '10m' });
}

/** Runs the calls under a license. */
export async function executeHeld(
  runtime: Runtime,
  license: SignedLicense,
  { calls }: Execution,
): Promise<Decision> {
  return decisionOf(
    await runtime.execute(license, { calls: calls.map(({ tool, args }) => ({ tool, args })) }),
  );
}

/**
 * A backend that holds candidates commits them or does not; anything else would be another study.
 */
export function decisionOf(terminal: Terminal): Decision {
  keepVerdict(terminal);
  if (terminal.kind === 'committed') return { committed: true };
  if (terminal.kind === 'rejected')
    return { committed: false, why: `${terminal.at}: ${terminal.reason}` };
  throw new Error(`a promotable backend ended ${terminal.kind}`);
}

async function runHeld(
  execution: Execution,
  folder: string,
  internals: Internals,
): Promise<Decision> {
  await using runtime = await openHeld(execution, folder, internals);
  const license = await approveHeld(runtime, execution);
  const decision = await executeHeld(runtime, license, execution);
  await keepReceipt(runtime, lineagesOf(license)[0].occurrence);
  return decision;
}

/** The durable state behind a runtime, read over a separate connection. */
export function readSnapshot(folder: string): unknown {
  using db = new DatabaseSync(join(folder, HELD_FILE), { readOnly: true });
  const row = db.prepare('select text from effectmatch_state').get();
  return JSON.parse(String(row?.text));
}

/** A durable state as an application would keep it that has no EffectMatch. */
export function openPlain(folder: string, initial: Snapshot) {
  const db = new DatabaseSync(join(folder, PLAIN_FILE));
  db.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table state (text text not null)',
  );
  db.prepare('insert into state values (?)').run(JSON.stringify(initial));
  const select = db.prepare('select text from state');
  const update = db.prepare('update state set text = ?');
  return {
    load: () => JSON.parse(String(select.get()?.text)) as { [namespace: string]: unknown },
    save(state: object): void {
      const text = JSON.stringify(state);
      if (text !== select.get()?.text) update.run(text);
    },
    /** One durable write, whether the text is another one or not. */
    write(text: string): void {
      update.run(text);
    },
    [Symbol.dispose]: () => db.close(),
  };
}

/** What a plain store holds, read over a separate connection. */
export function readPlain(folder: string): unknown {
  using db = new DatabaseSync(join(folder, PLAIN_FILE), { readOnly: true });
  return JSON.parse(String(db.prepare('select text from state').get()?.text));
}
