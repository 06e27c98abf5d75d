// Goal: the digest of E depends on everything that is compared and on nothing else. Method:
// observations that differ in volatile columns, in touches of rows, and in what is compared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Effect } from '../../src/protocol/effect.ts';
import { observedLines } from '../../src/protocol/outcome.ts';
import type { Registration } from '../../src/protocol/registration.ts';
import { comparedEffects } from '../../src/protocol/volatile.ts';

const registration: Registration = {
  profile: 'row-event',
  values: 'plain',
  targets: [
    { name: 't', columns: ['id', 'a', 'v'], key: ['id'], volatile: ['v', 'id'] },
    { name: 'bare', columns: ['a', 'v'], key: [], volatile: ['v'] },
    { name: 'plain', columns: ['id', 'v'], key: ['id'], volatile: [] },
  ],
};
const textOf = (...effects: readonly Effect[]) =>
  [...observedLines(comparedEffects(registration, effects))].join('');
const inserted = (id: number, a: number, v: number): Effect => ({
  op: 'insert',
  target: 't',
  key: { id },
  after: { a, v },
});
const touch = (id: number, v: number): Effect => ({
  op: 'update',
  target: 't',
  key: { id },
  before: { v },
  after: { v: v + 1 },
});

test('volatile columns do not count, and all others do, key columns and other targets included', () => {
  assert.equal(textOf(inserted(1, 1, 1)), textOf(inserted(1, 1, 2)));
  assert.notEqual(textOf(inserted(1, 1, 1)), textOf(inserted(1, 2, 1)));
  assert.notEqual(textOf(inserted(1, 1, 1)), textOf(inserted(2, 1, 1)));
  const plain = (v: number): Effect => ({
    op: 'insert',
    target: 'plain',
    key: { id: 1 },
    after: { v },
  });
  assert.notEqual(textOf(plain(1)), textOf(plain(2)));
  const elsewhere = (v: number): Effect => ({
    op: 'insert',
    target: 'unregistered',
    key: { id: 1 },
    after: { v },
  });
  assert.notEqual(textOf(elsewhere(1)), textOf(elsewhere(2)));
});

test('a touch of a row counts once where nothing else names the row, and not at all where something does', () => {
  assert.equal(textOf(inserted(1, 1, 1)), textOf(touch(1, 5), inserted(1, 1, 1), touch(1, 6)));
  assert.notEqual(textOf(inserted(1, 1, 1)), textOf(inserted(1, 1, 1), touch(2, 5)));
  assert.equal(textOf(touch(2, 5)), textOf(touch(2, 6), touch(2, 7)));
  assert.notEqual(textOf(), textOf(touch(2, 5)));
  const nameless: Effect = { op: 'update', target: 'bare', before: { v: 1 }, after: { v: 2 } };
  assert.notEqual(textOf(nameless), textOf(nameless, nameless));
});

test('without volatile columns E is taken as it is', () => {
  const effects = [inserted(1, 1, 1)];
  const none = {
    ...registration,
    targets: registration.targets.map((target) => ({ ...target, volatile: [] })),
  };
  assert.equal(comparedEffects(none, effects), effects);
});
