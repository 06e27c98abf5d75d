// Goal: recovery leaves an attempt alone for as long as it is under way here, and no longer.
// Method: a ledger that counts renewals, and timers that the test moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ledgers } from '../../src/contract/ledgers.ts';
import type { AttemptFacts } from '../../src/runtime/attempt.ts';
import { openLeases } from '../../src/runtime/lease.ts';

test('every attempt under way is renewed three times per lease, until it ends or the runtime closes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const renewed: string[] = [];
  const renew = async (occurrence: string, execution: string, leaseMs: number) => {
    renewed.push(`${occurrence} ${execution} ${leaseMs}`);
    if (occurrence === 'a') throw new Error('the store is busy');
    return true;
  };
  const leases = openLeases({ renew } as unknown as Ledgers, 3000);
  const attempt = (occurrence: string) => ({ occurrence, execution: 'e' }) as AttemptFacts;
  const pass = (ms: number) => {
    t.mock.timers.tick(ms);
    return renewed.splice(0);
  };

  const first = leases.keep(attempt('a'));
  const second = leases.keep(attempt('b'));
  assert.deepEqual(pass(999), []);
  assert.deepEqual(pass(1), ['a e 3000', 'b e 3000']);
  assert.equal(pass(2000).length, 4, 'a renewal that failed is tried again');
  first[Symbol.dispose]();
  assert.deepEqual(pass(1000), ['b e 3000']);
  second[Symbol.dispose]();
  assert.deepEqual(pass(3000), []);
  leases.keep(attempt('c'));
  leases.close();
  assert.deepEqual(pass(3000), []);
});
