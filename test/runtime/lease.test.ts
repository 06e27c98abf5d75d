// Goal: recovery leaves an attempt alone for as long as it is under way here, and no longer.
// Method: a ledger that counts renewals, and timers that the test moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ledgers } from '../../src/contract/ledgers.ts';
import type { AttemptFacts } from '../../src/runtime/attempt.ts';
import { openLeases } from '../../src/runtime/lease.ts';

const NEVER = { atMs: Number.POSITIVE_INFINITY, monotonicMs: Number.POSITIVE_INFINITY };
let nowMs = 0;
const clock = { now: () => nowMs, monotonic: () => nowMs };

test('every attempt under way is renewed three times per lease, until it ends or the runtime closes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const renewed: string[] = [];
  const renew = async (occurrence: string, execution: string, leaseMs: number) => {
    renewed.push(`${occurrence} ${execution} ${leaseMs}`);
    if (occurrence === 'a') throw new Error('the store is busy');
    return true;
  };
  const leases = openLeases({ renew } as unknown as Ledgers, 3000, clock);
  const attempt = (occurrence: string) =>
    ({ occurrence, execution: `of ${occurrence}` }) as unknown as AttemptFacts;
  const pass = (ms: number) => {
    t.mock.timers.tick(ms);
    return renewed.splice(0);
  };

  const first = leases.keep(attempt('a'), NEVER);
  const second = leases.keep(attempt('b'), NEVER);
  assert.deepEqual(pass(999), []);
  assert.deepEqual(pass(1), ['a of a 3000', 'b of b 3000']);
  assert.equal(pass(2000).length, 4, 'a renewal that failed is tried again');
  first[Symbol.dispose]();
  assert.deepEqual(pass(1000), ['b of b 3000']);
  second[Symbol.dispose]();
  assert.deepEqual(pass(3000), []);
  leases.keep(attempt('c'), NEVER);
  leases.close();
  assert.deepEqual(pass(3000), []);
});

test('a lease lasts from when a renewal was asked for, and a renewal that failed gives no time', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  nowMs = 0;
  let answer: (held: boolean) => void = () => {};
  const renew = () => new Promise<boolean>((resolve) => (answer = resolve));
  const leases = openLeases({ renew } as unknown as Ledgers, 3000, clock);
  const attempt = { occurrence: 'o', execution: 'e' } as unknown as AttemptFacts;
  const until = () => leases.deadline(attempt)?.monotonicMs;
  assert.equal(until(), undefined);
  const kept = leases.keep(attempt, { atMs: 3000, monotonicMs: 3000 });
  nowMs = 1000;
  t.mock.timers.tick(1000);
  nowMs = 2500; // asleep before the answer
  answer(true);
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(until(), 4000);
  t.mock.timers.tick(1000);
  answer(false);
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(until(), 4000);
  kept[Symbol.dispose]();
  assert.equal(until(), undefined);
  leases.close();
});
