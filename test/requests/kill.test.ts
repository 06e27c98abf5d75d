// Goal: wherever a host is killed between a question and its verdict, nothing happens that was not
// signed, and after a restart every request has a true state. Method: one process per point of a
// whole request, killed there with SIGKILL; a new host looks, and goes on.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { createDesk, type Desk, openDesk, PAY, sign } from '../agents/desk.ts';

const POINTS = await allPoints();

/** What one run passes, in order. */
async function allPoints(): Promise<readonly string[]> {
  using desk = createDesk();
  const child = run(desk);
  const [points] = (await once(child, 'message')) as [string[]];
  await once(child, 'exit');
  return points;
}

function run({ facts, key }: Desk, at?: number) {
  const order = JSON.stringify({ facts, alice: key, at });
  const script = join(import.meta.dirname, 'kill-child.ts');
  return fork(script, [order], { execArgv: ['--no-warnings'] });
}

test('a whole request passes every step of an execution', () => {
  for (const step of ['before insert', 'after change', 'path:claimed', 'adapter:marker-written'])
    assert.ok(POINTS.includes(step), `${step} of ${POINTS}`);
});

test('killed at any point, a request has a true state and at most one effect', {
  concurrency: 4,
}, async (t) => {
  const each = POINTS.slice(POINTS.indexOf('ask')).map((point, index) => {
    const at = POINTS.indexOf('ask') + index;
    return t.test(`${at}: ${point}`, async () => {
      using desk = createDesk();
      const child = run(desk, at);
      const [, signal] = await once(child, 'exit');
      assert.equal(signal, 'SIGKILL');
      await lookAndGoOn(desk, POINTS.slice(0, at + 1));
    });
  });
  await Promise.all(each);
});

async function lookAndGoOn(desk: Desk, passed: readonly string[]): Promise<void> {
  await using host = await openDesk(desk.facts);
  const found = await host.requests.list();
  if (!passed.includes('before insert')) assert.deepEqual(found, []);
  if (passed.includes('after insert')) assert.equal(found.length, 1);
  const paid = desk.payments();
  for (const { state, terminal } of found) {
    if (state === 'pending' || state === 'approved') assert.equal(paid, 0, state);
    if (state === 'committed') assert.equal(paid, 1);
    if (terminal !== undefined) assert.equal(state, terminal.kind);
    if (paid === 1) assert.ok(['running', 'committed'].includes(state), state);
  }
  if (paid === 1) assert.ok(passed.includes('answered'), 'nothing is durable that was not signed');
  const [tool] = host.tools;
  let answer = await tool?.call(PAY.input);
  if (answer?.status === 'approval-required') {
    assert.equal(desk.payments(), 0);
    await sign(desk, host);
    answer = await tool?.call(PAY.input);
  }
  const { state, terminal, occurrence } = await host.only();
  assert.equal(answer?.status, state);
  assert.equal(state, terminal?.kind);
  assert.ok(state === 'committed' || state === 'rejected', state);
  assert.equal(desk.payments(), state === 'committed' ? 1 : 0);
  assert.deepEqual(occurrence && (await host.runtime.terminal(occurrence)), terminal);
  assert.deepEqual(await host.runtime.ledgers.unsettled(), []);
}
