// Execution binding on the public tasks: the candidate is right, but the approval is for another
// execution. Each of the three bindings is removed alone: the occurrence, which can be spent once;
// the action, if the license names one; and the state that the approval was based on.

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
  type Decision,
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

function removalOf(binding: Binding, removed: boolean) {
  const same = (factory: AdapterFactory) => factory;
  if (!removed) return same;
  if (binding === 'action') return anyAction;
  return binding === 'state' ? firstState : same;
}

async function approveAt(
  runtime: Runtime,
  request: Omit<PrepareRequest, 'task' | 'planRevision'>,
): Promise<SignedLicense> {
  const proposal = await runtime.prepare({ ...request, task: 'task', planRevision: 1 });
  return approver(KEYS).sign(proposal, { expiresIn: '10m' });
}

function judge(
  binding: Binding,
  decision: Decision,
  { isApproved, isInitial }: ReturnType<typeof compareStates>,
): Ending {
  if (decision.committed) return isApproved ? 'admitted' : 'neither';
  return isInitial && decision.why === REFUSALS[binding] ? 'stopped' : 'neither';
}

/** The twelve STATE tasks with our own tools, so that another action can have the same result. */
export function bindingOnState(
  binding: Binding,
  { all, chosen }: StateTasks,
  desk: (task: StateTask) => DeskData,
): Pair {
  const application = (task: StateTask) => describeApplication(task.packet.domain, all);
  return {
    name: `execution binding, STATE ${binding}`,
    // The paper removed the occurrence and the state together, so it has one row for both.
    ...(binding === 'occurrence' && { paper: 36 }),
    runs: (removed) =>
      chosen.map((task) => ({
        name: `${task.packet.domain}/${task.packet.taskId}`,
        run: () => runState(binding, removed, { task, desk: desk(task), ...application(task) }),
      })),
  };
}

interface StateCase extends Pick<Execution, 'schema' | 'tools'> {
  readonly task: StateTask;
  readonly desk: DeskData;
}

async function runState(binding: Binding, removed: boolean, given: StateCase): Promise<Ending> {
  const { task, desk, schema, tools } = given;
  const { initial } = task.packet;
  using temporary = temporaryFolder();
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
  const open = (store: string) => {
    const config = heldConfig(execution, folder, KEYS.publicKey);
    const adapters = { state: removalOf(binding, removed)(config.adapters.state) };
    return createRuntime({ ...config, adapters, store: join(folder, store) });
  };
  const calls = execution.calls.map(({ tool, args }) => ({ tool, args }));
  const [first = { tool: '', args: {} }] = calls;
  const effects = execution.approved;
  await using runtime = await open('ledger.db');
  if (binding === 'action') {
    const license = await approveAt(runtime, { adapter: 'state', effects, action: { calls } });
    // Other calls with the same result: the first call, which only reads, is made twice.
    const decision = await run(runtime, license, [first, ...calls]);
    return judge(binding, decision, look(folder, target, initial));
  }
  if (binding === 'occurrence') {
    const license = await approveAt(runtime, { adapter: 'state', effects });
    const spent = await run(runtime, license, [first]);
    if (spent.why !== 'comparison: diverged') return 'neither';
    // Use a worker that knows nothing of the first execution. That memory is what was removed.
    await using other = removed ? await open('other.db') : undefined;
    const decision = await run(other ?? runtime, license, calls);
    return judge(binding, decision, look(folder, target, initial));
  }
  const { domain, userId } = task.packet;
  const watch = [{ target: domain === 'travel' ? 'users' : 'customers', key: { [KEY]: userId } }];
  const license = await approveAt(runtime, { adapter: 'state', effects, watch });
  const moved = approvedEffects(initial, changed);
  const move = await approveAt(runtime, { adapter: 'state', effects: moved });
  const meanwhile = await run(runtime, move, [{ tool: RESET, args: {} }]);
  if (!meanwhile.committed) return 'neither';
  const decision = await run(runtime, license, calls);
  const right = applyPatch(target, changeEmail(task.packet));
  return judge(binding, decision, look(folder, right, changed));
}

async function run(runtime: Runtime, license: SignedLicense, calls: readonly object[]) {
  return decisionOf(await runtime.execute(license, { calls }));
}

function look(folder: string, approved: unknown, initial: unknown) {
  return compareStates({ initial, approved, durable: readSnapshot(folder) });
}

/** The three database tasks. */
export function bindingOnDatabase(
  binding: Binding,
  site: DatabaseSite,
  tasks: readonly PreparedTask[],
): Pair {
  return {
    name: `execution binding, PG ${binding}`,
    ...(binding === 'occurrence' && { paper: 9 }),
    runs: (removed) =>
      tasks.map((task) => ({
        name: task.name,
        run: () => runDatabase(binding, removed, { site, task }),
      })),
  };
}

async function runDatabase(
  binding: Binding,
  removed: boolean,
  { site, task }: { readonly site: DatabaseSite; readonly task: PreparedTask },
): Promise<Ending> {
  const { clean, expected, initial } = task;
  await using db = await site.open(task.name, undefined);
  const open = () => openHeldDatabase(clean, db, {}, removalOf(binding, removed));
  const action = { statements: clean.statements.map((sql) => ({ sql })) };
  const effects = clean.approved;
  const execute = async (runtime: Runtime, license: SignedLicense, given: object) =>
    decisionOf(await runtime.execute(license, given));
  const lookAt = async () => {
    const durable = await readTables(db, clean.keys);
    return compareStates({ initial, approved: expected, durable }, (tables) =>
      digestTables(clean.keys, tables),
    );
  };
  await using runtime = await open();
  if (binding === 'action') {
    const license = await approveAt(runtime, { adapter: 'chinook', effects, action });
    const other = { statements: [{ sql: 'select 1' }, ...action.statements] };
    const decision = await execute(runtime, license, other);
    return judge(binding, decision, await lookAt());
  }
  if (binding === 'occurrence') {
    const license = await approveAt(runtime, { adapter: 'chinook', effects });
    const spent = await execute(runtime, license, { statements: [{ sql: 'select 1' }] });
    if (spent.why !== 'comparison: diverged') return 'neither';
    await using other = removed ? await open() : undefined;
    const decision = await execute(other ?? runtime, license, action);
    return judge(binding, decision, await lookAt());
  }
  const target = `public.${WATCHED}`;
  const watch = [{ target, key: { [`${WATCHED}Id`]: 1 } }];
  const license = await approveAt(runtime, { adapter: 'chinook', effects, watch });
  const rename = (name: string) =>
    db.run(`update ${quoteName(WATCHED)} set "Name" = $1 where "${WATCHED}Id" = 1`, [name]);
  const [{ name = '' } = {}] = await db.run(
    `select "Name" as name from ${quoteName(WATCHED)} where "${WATCHED}Id" = 1`,
  );
  await rename('renamed since');
  const decision = await execute(runtime, license, action);
  await rename(String(name));
  return judge(binding, decision, await lookAt());
}

/** A relation that all three tasks register but do not change. */
const WATCHED = 'Genre';
