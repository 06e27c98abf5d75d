// Execution binding on the public tasks: the candidate is right, but the approval is for another
// execution. Every license names an occurrence, an action and a state. Each of the three bindings is
// removed alone, so that the other two are seen not to stop the fault.

import { join } from 'node:path';
import type { Adapter, AdapterFactory, PromotableAdapter } from '../../../src/contract/adapter.ts';
import { approver } from '../../../src/crypto/approver.ts';
import { quoteName } from '../../../src/postgres/identifier.ts';
import type { StateReading } from '../../../src/protocol/effect.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { overlayAdapter, overlayStages } from '../../../test/world/world.ts';
import { approveState } from '../../approvals/index.ts';
import { applyPatch } from '../../data/patch.ts';
import type { StateTask } from '../../data/state-bench.ts';
import { compareStates } from '../../facts.ts';
import type { DeskData } from '../../state-tools/desk.ts';
import { RESET } from '../../state-tools/tools.ts';
import { temporaryFolder } from '../../temporary.ts';
import { openHeldDatabase } from '../public-outcomes/database-conditions.ts';
import { type DatabaseSite, digestTables, readTables } from '../public-outcomes/database-site.ts';
import { changeEmail } from '../public-outcomes/independent.ts';
import { replayVariant } from '../public-outcomes/replay.ts';
import {
  decisionOf,
  type Execution,
  heldConfig,
  KEYS,
  readSnapshot,
} from '../public-outcomes/state-conditions.ts';
import { approvedEffects, KEY } from '../public-outcomes/state-effects.ts';
import { describeApplication } from '../public-outcomes/state-runs.ts';
import type { Ending, Pair } from './pair.ts';
import type { PreparedTask, StateTasks } from './public-tasks.ts';

export const BINDINGS = ['occurrence', 'action', 'state'] as const;
type Binding = (typeof BINDINGS)[number];

/** Why the full system refuses an approval that is not for this execution. */
const REFUSALS: { readonly [binding in Binding]: string } = {
  occurrence: 'authority: spent',
  action: 'authority: other-action',
  state: 'authority: stale-state',
};

/** Makes every action count as the approved one. */
function anyAction(factory: AdapterFactory): AdapterFactory {
  return overlayAdapter(factory, () => ({ describeAction: () => 'any action' }));
}

/** Keeps returning the first reading of the declared state, even after it changed. */
function firstState(factory: AdapterFactory): AdapterFactory {
  return overlayAdapter(factory, (adapter) => {
    const known = new Map<string, StateReading>();
    const read: Adapter['read'] = async (reads) => {
      const now = await adapter.read(reads);
      return now.map((reading, at) => {
        const name = JSON.stringify(reads[at]);
        const first = known.get(name) ?? reading;
        known.set(name, first);
        return first;
      });
    };
    return { read, ...overlayStages(adapter as PromotableAdapter, () => ({ read })) };
  });
}

type Change = (factory: AdapterFactory) => AdapterFactory;

/** The removal of the occurrence is not in the adapter: the worker does not know the ledger. */
const REMOVALS: { readonly [binding in Binding]: Change } = {
  occurrence: (factory) => factory,
  action: anyAction,
  state: firstState,
};

/** Whether the next attempt fails after its claim and leaves nothing. */
interface Trouble {
  isNear: boolean;
}

function failingOnce(factory: AdapterFactory, trouble: Trouble): AdapterFactory {
  return overlayAdapter(factory, (opened) => {
    const adapter = opened as PromotableAdapter;
    return {
      async stage(...asked) {
        if (!trouble.isNear) return await adapter.stage(...asked);
        trouble.isNear = false;
        return { kind: 'failed', reason: 'interrupted', detail: 'nothing was begun' };
      },
    } satisfies Partial<PromotableAdapter>;
  });
}

/** A public task, with everything that an approval of it can name. */
interface BoundTask extends AsyncDisposable {
  readonly request: Pick<PrepareRequest, 'adapter' | 'effects' | 'watch'> & {
    readonly action: object;
  };
  /** Another action with the same result. */
  readonly otherAction: object;
  /** A worker. One that shares no ledger with the others knows nothing of their claims. */
  open(change: Change, sharesLedger: boolean): Promise<Runtime>;
  /** Changes the state that the approval was based on. */
  changeState(runtime: Runtime): Promise<void>;
  /** Compares what is durable, by code that took no part. */
  look(hasStateChanged: boolean): Promise<ReturnType<typeof compareStates>>;
}

async function approveAt(
  runtime: Runtime,
  request: Omit<PrepareRequest, 'task' | 'planRevision'>,
): Promise<SignedLicense> {
  const proposal = await runtime.prepare({ ...request, task: 'task', planRevision: 1 });
  return approver(KEYS).sign(proposal, { expiresIn: '10m' });
}

interface Side {
  readonly binding: Binding;
  readonly isRemoved: boolean;
  readonly isFault: boolean;
}

/** One execution whose approval is for another one, or, without a fault, for this one. */
async function execute(task: BoundTask, { binding, isRemoved, isFault }: Side) {
  const trouble: Trouble = { isNear: false };
  const change: Change = (factory) => {
    const changed = isRemoved ? REMOVALS[binding](factory) : factory;
    return failingOnce(changed, trouble);
  };
  await using runtime = await task.open(change, true);
  const license = await approveAt(runtime, task.request);
  const { action } = task.request;
  if (isFault && binding === 'occurrence') {
    trouble.isNear = true;
    const spent = await run(runtime, license, action);
    if (spent.why !== 'stage: interrupted') throw new Error(`the attempt ended: ${spent.why}`);
  }
  const isForgetful = isRemoved && binding === 'occurrence';
  await using other = isForgetful ? await task.open(change, false) : undefined;
  const hasStateChanged = isFault && binding === 'state';
  if (hasStateChanged) await task.changeState(runtime);
  const given = isFault && binding === 'action' ? task.otherAction : action;
  const decision = await run(other ?? runtime, license, given);
  return { decision, ...(await task.look(hasStateChanged)) };
}

async function run(runtime: Runtime, license: SignedLicense, action: object) {
  return decisionOf(await runtime.execute(license, action));
}

type NamedTask = { readonly name: string; open(): Promise<BoundTask> };

function pairOf(name: string, binding: Binding, tasks: readonly NamedTask[], paper: number): Pair {
  const play = async (task: NamedTask, isRemoved: boolean, isFault: boolean) => {
    await using opened = await task.open();
    return await execute(opened, { binding, isRemoved, isFault });
  };
  return {
    name: `execution binding, ${name} ${binding}`,
    // The paper removed the occurrence and the state together, so it has one row for both.
    ...(binding === 'occurrence' && { paper }),
    runs: (removed) =>
      tasks.map((task) => ({
        name: task.name,
        run: async (): Promise<Ending> => {
          const { decision, isApproved, isInitial } = await play(task, removed, true);
          if (decision.committed) return isApproved ? 'admitted' : 'neither';
          return isInitial && decision.why === REFUSALS[binding] ? 'stopped' : 'neither';
        },
      })),
    controls: (removed) =>
      tasks.map((task) => ({
        name: task.name,
        run: async () => {
          const { decision, isApproved } = await play(task, removed, false);
          return decision.committed && isApproved;
        },
      })),
  };
}

/** The twelve STATE tasks with our own tools, so that another action can have the same result. */
export function bindingOnState(
  binding: Binding,
  { all, chosen }: StateTasks,
  desk: (task: StateTask) => DeskData,
): Pair {
  const tasks = chosen.map((task) => ({
    name: `${task.packet.domain}/${task.packet.taskId}`,
    open: async () =>
      openState({ task, desk: desk(task), ...describeApplication(task.packet.domain, all) }),
  }));
  return pairOf('STATE', binding, tasks, 36);
}

interface StateCase extends Pick<Execution, 'schema' | 'tools'> {
  readonly task: StateTask;
  readonly desk: DeskData;
}

function openState({ task, desk, schema, tools }: StateCase): BoundTask {
  const { initial, domain, userId } = task.packet;
  const temporary = temporaryFolder();
  const folder = temporary.path;
  const target = approveState(task.packet);
  const changed = applyPatch(initial, changeEmail(task.packet));
  const execution: Execution = {
    ...{ schema, initial },
    tools: [...tools, RESET],
    calls: replayVariant(task, 'clean'),
    approved: approvedEffects(initial, target),
    kit: { desk, reset: changed },
  };
  const calls = execution.calls.map(({ tool, args }) => ({ tool, args }));
  const watched = { target: domain === 'travel' ? 'users' : 'customers', key: { [KEY]: userId } };
  const request = { adapter: 'state', effects: execution.approved, watch: [watched] };
  return {
    request: { ...request, action: { calls } },
    // The first call only reads, and is made twice.
    otherAction: { calls: [...calls.slice(0, 1), ...calls] },
    open(change, sharesLedger) {
      const config = heldConfig(execution, folder, KEYS.publicKey);
      const adapters = { state: change(config.adapters.state) };
      const store = join(folder, sharesLedger ? 'ledger.db' : 'other.db');
      return createRuntime({ ...config, adapters, store });
    },
    async changeState(runtime) {
      const effects = approvedEffects(initial, changed);
      const license = await approveAt(runtime, { adapter: 'state', effects });
      const { committed } = await run(runtime, license, { calls: [{ tool: RESET, args: {} }] });
      if (!committed) throw new Error('the state was not changed');
    },
    async look(hasStateChanged) {
      const durable = readSnapshot(folder);
      if (!hasStateChanged) return compareStates<unknown>({ initial, approved: target, durable });
      const approved = applyPatch(target, changeEmail(task.packet));
      return compareStates<unknown>({ initial: changed, approved, durable });
    },
    [Symbol.asyncDispose]: async () => temporary[Symbol.dispose](),
  };
}

/** The three database tasks. */
export function bindingOnDatabase(
  binding: Binding,
  site: DatabaseSite,
  tasks: readonly PreparedTask[],
): Pair {
  const named = tasks.map((task) => ({ name: task.name, open: () => openDatabase(site, task) }));
  return pairOf('PG', binding, named, 9);
}

/** A relation that all three tasks register but do not change. */
const WATCHED = 'Genre';
const ONE_ROW = `from ${quoteName(WATCHED)} where "${WATCHED}Id" = 1`;

async function openDatabase(site: DatabaseSite, task: PreparedTask): Promise<BoundTask> {
  const { clean, expected, initial } = task;
  const db = await site.open(task.name, undefined);
  const statements = clean.statements.map((sql) => ({ sql }));
  const watch = [{ target: `public.${WATCHED}`, key: { [`${WATCHED}Id`]: 1 } }];
  let former = '';
  const rename = (name: string) =>
    db.run(`update ${quoteName(WATCHED)} set "Name" = $1 where "${WATCHED}Id" = 1`, [name]);
  return {
    request: { adapter: 'chinook', effects: clean.approved, watch, action: { statements } },
    otherAction: { statements: [{ sql: 'select 1' }, ...statements] },
    // Every worker here has a separate ledger.
    open: (change) => openHeldDatabase(clean, db, {}, change),
    async changeState() {
      const [row] = await db.run(`select "Name" as name ${ONE_ROW}`);
      former = String(row?.name);
      await rename('renamed since');
    },
    async look(hasStateChanged) {
      if (hasStateChanged) await rename(former);
      const durable = await readTables(db, clean.keys);
      return compareStates({ initial, approved: expected, durable }, (tables) =>
        digestTables(clean.keys, tables),
      );
    },
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  };
}
