// Goal: the SQLite ledger reads only the rows of an occurrence when it is asked for one, forwards
// and backwards. Method: rows of two occurrences, interleaved; every page is compared with what a
// filter over all rows gives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimFixture, fixtureReplay, fixtureTerminal } from '../../src/testing/ledger/fixtures.ts';
import { openBench } from '../../src/testing/ledger/kit.ts';
import { sqliteKit } from './sqlite-store.ts';

test('a page of one occurrence holds its rows and no others', async () => {
  await using bench = await openBench(sqliteKit);
  const { context, ledgers } = bench;
  const { record: one } = await claimFixture(ledgers, context, 'one');
  const { record: two } = await claimFixture(ledgers, context, 'two');
  for (const claim of [one, two])
    await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'relaxed');
  for (const claim of [one, two])
    await ledgers.record(fixtureReplay(context, claim, 'replay'), 'flushed');
  const all = await ledgers.journal();
  assert.equal(all.length, 6);
  for (const { occurrence } of [one, two]) {
    const own = all.filter(({ record }) => record.occurrence === occurrence);
    assert.equal(own.length, 3);
    assert.deepEqual(await ledgers.journal({ occurrence }), own);
    assert.deepEqual(await ledgers.journal({ occurrence, limit: 2 }), own.slice(0, 2));
    assert.deepEqual(
      await ledgers.journal({ occurrence, afterSeq: own[0]?.seq ?? 0 }),
      own.slice(1),
    );
    assert.deepEqual(await ledgers.journal({ occurrence, last: true, limit: 1 }), own.slice(2));
  }
});
