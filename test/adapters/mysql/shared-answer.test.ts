// Goal: callers share an answer only if it was asked for after each of them came. Method: questions
// that the test answers by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedAnswer } from '../../../src/adapters/mysql/shared-answer.ts';

function byHand() {
  const asked: PromiseWithResolvers<number>[] = [];
  const shared = new SharedAnswer(() => {
    const question = Promise.withResolvers<number>();
    asked.push(question);
    return question.promise;
  });
  return { asked, shared };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('callers that come before the question is sent share it; later ones wait for the next', async () => {
  const { asked, shared } = byHand();
  const first = [shared.get(), shared.get()];
  await turn();
  assert.equal(asked.length, 1);
  const second = [shared.get(), shared.get()];
  await turn();
  assert.equal(asked.length, 1, 'the next question waits for the one under way');
  asked[0]?.resolve(1);
  assert.deepEqual(await Promise.all(first), [1, 1]);
  await turn();
  assert.equal(asked.length, 2);
  const third = shared.get();
  asked[1]?.resolve(2);
  assert.deepEqual(await Promise.all(second), [2, 2]);
  await turn();
  asked[2]?.resolve(3);
  assert.equal(await third, 3);
  assert.equal(asked.length, 3);
});

test('an answer that fails, fails for its callers only', async () => {
  const { asked, shared } = byHand();
  const failing = shared.get();
  await turn();
  const next = shared.get();
  asked[0]?.reject(new Error('lost'));
  await assert.rejects(failing, /lost/);
  await turn();
  asked[1]?.resolve(2);
  assert.equal(await next, 2);
});

test('a question that throws at once does not stop the next', async () => {
  let asked = 0;
  const shared = new SharedAnswer(async () => {
    asked += 1;
    if (asked === 1) throw new Error('closed');
    return asked;
  });
  await assert.rejects(shared.get(), /closed/);
  assert.equal(await shared.get(), 2);
});
