// Goal: our own business tools do what the benchmark's tools did, in every recorded call.
// Method: all calls of the 300 tasks, as recorded, with one left out and with one repeated; every
// answer and state is compared with what was recorded. Nothing here reads an expected answer but
// the comparison; policy texts come from the recorded answers of other tasks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { findData } from '../../bench/data/folder.ts';
import { applyPatch } from '../../bench/data/patch.ts';
import {
  loadStateTasks,
  STATE_FILES,
  type StateTask,
  type VariantName,
} from '../../bench/data/state-bench.ts';
import {
  gatherPolicies,
  loadAnswers,
  NATIVE_FILES,
  type PolicyBook,
} from '../../bench/data/state-native.ts';
import { type Arguments, deskFor, policyKey } from '../../bench/state-tools/desk.ts';
import { BusinessTools, errorOf } from '../../bench/state-tools/tools.ts';
import { replayVariant } from '../../bench/studies/public-outcomes/replay.ts';
import { NotRun } from '../../bench/study.ts';

const data = whereData();
const skip = data instanceof NotRun ? `no public task data: ${data.message}` : false;
const folder = data instanceof NotRun ? '' : data;
const tasks = data instanceof NotRun ? [] : loadStateTasks(folder);
const recorded = data instanceof NotRun ? new Map<string, never>() : loadAnswers(folder);
const books = new Map<string, PolicyBook>();

function whereData(): string | NotRun {
  try {
    return findData(undefined, [...STATE_FILES, ...NATIVE_FILES]);
  } catch (error) {
    if (error instanceof NotRun) return error;
    throw error;
  }
}

function nameOf({ packet }: StateTask): string {
  return `${packet.domain}/${packet.taskId}`;
}

function bookOf({ packet }: StateTask): PolicyBook {
  const book = books.get(packet.domain) ?? gatherPolicies(tasks, recorded, packet.domain);
  books.set(packet.domain, book);
  return book;
}

type State = Parameters<BusinessTools['call']>[0];

/** What differs first in one variant of a task; nothing where all of it is the same. */
function findDifference(
  task: StateTask,
  name: VariantName,
  arrange: (state: State) => State = (state) => state,
): string | undefined {
  const answers = recorded.get(nameOf(task))?.[name];
  const variant = task.variants[name];
  if (answers === undefined || variant === undefined) return 'nothing was recorded';
  const calls = replayVariant(task, name);
  if (calls.length !== answers.length) return 'another number of calls was recorded';
  const tools = new BusinessTools({ desk: deskFor(task.packet, bookOf(task)) });
  const state = arrange(structuredClone(task.packet.initial) as State);
  let expected = task.packet.initial;
  for (const [index, { tool, args, error }] of calls.entries()) {
    const answer = tools.call(state, tool, args);
    const where = `call ${index + 1}, ${tool}`;
    const answered = JSON.parse(JSON.stringify(answer));
    if (!isDeepStrictEqual(answered, answers[index])) return `${where}: the answer`;
    if (errorOf(answer) !== error) return `${where}: the error`;
    if (name !== 'clean') continue;
    expected = applyPatch(expected, task.calls[index]?.diff ?? []);
    if (!isDeepStrictEqual(state, expected)) return `${where}: the state`;
  }
  return isDeepStrictEqual(state, variant.final) ? undefined : 'the final state';
}

test('every recorded answer and state of all 300 tasks is reproduced', { skip }, (t) => {
  const wrong = tasks.flatMap((task) => {
    const difference = findDifference(task, 'clean');
    return difference === undefined ? [] : [`${nameOf(task)}: ${difference}`];
  });
  const calls = tasks.reduce((sum, task) => sum + task.calls.length, 0);
  const right = tasks.length - wrong.length;
  t.diagnostic(`${right} of ${tasks.length} tasks reproduced, ${calls} calls`);
  assert.deepEqual(wrong, []);
  assert.equal(tasks.length, 300);
  assert.equal(calls, 2842);
});

test('so are all variants with a call left out or repeated', { skip }, (t) => {
  const ran = tasks.flatMap((task) =>
    (Object.keys(recorded.get(nameOf(task)) ?? {}) as VariantName[])
      .filter((name) => name !== 'clean')
      .map((name) => ({ task: `${nameOf(task)}, ${name}`, why: findDifference(task, name) })),
  );
  t.diagnostic(`${ran.length} variants`);
  assert.deepEqual(
    ran.filter(({ why }) => why !== undefined),
    [],
  );
  assert.equal(ran.length, 848);
});

test('the six live, twelve approved and eighteen timing tasks are among them', { skip }, () => {
  for (const [flag, count] of [
    ['liveAgent6', 6],
    ['approved12', 12],
    ['timing18', 18],
  ] as const) {
    const own = tasks.filter((task) => task[flag]);
    assert.equal(own.length, count, flag);
    for (const task of own) assert.equal(findDifference(task, 'clean'), undefined, nameOf(task));
  }
});

test('answers do not depend on the order in which a store keeps the records', { skip }, () => {
  const turn = (state: State): State =>
    Object.fromEntries(
      Object.entries(state).map(([namespace, rows]) => [
        namespace,
        Object.fromEntries(Object.entries(rows).reverse()),
      ]),
    );
  for (const task of tasks)
    assert.equal(findDifference(task, 'clean', turn), undefined, nameOf(task));
});

test('policy texts depend on nothing but what is asked', { skip }, (t) => {
  let asked = 0;
  let known = 0;
  for (const task of tasks) {
    const others = gatherPolicies(tasks, recorded, task.packet.domain, task.packet.taskId);
    for (const [index, call] of task.calls.entries()) {
      if (call.tool !== 'get_policies') continue;
      asked += 1;
      const text = others[policyKey(call.arguments as Arguments)];
      if (text === undefined) continue;
      known += 1;
      assert.deepEqual(text, recorded.get(nameOf(task))?.clean?.[index], nameOf(task));
    }
  }
  t.diagnostic(`${known} of ${asked} policy texts are known from another task`);
  assert.ok(known > asked * 0.8, `${known} of ${asked}`);
});

test('a tool that miscalculates is noticed', { skip }, () => {
  const task = tasks.find(({ packet }) => packet.taskId === '10-loyalty_points_on_discount');
  assert.ok(task);
  const reference = {
    ...task.packet.reference,
    promotions: (task.packet.reference.promotions ?? []).map((one) => ({
      ...one,
      discount_value: 11,
    })),
  };
  const broken = { ...task, packet: { ...task.packet, reference } };
  assert.match(String(findDifference(broken, 'clean')), /the answer/);
});
