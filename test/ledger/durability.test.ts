// Goal: what someone is told of, or what no commit of a backend flushes, is flushed before it
// counts. Method: a ledger whose store notes the durability that it is asked for.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../src/contract/clock.ts';
import { ledgersIn } from '../../src/ledger/ledgers.ts';
import { openStore } from '../../src/ledger/sqlite/open.ts';
import { sqliteStore } from '../../src/ledger/sqlite/store.ts';
import type { Durability, TableStore } from '../../src/ledger/store.ts';
import {
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureDigest,
  fixturePermit,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { temporaryFolder } from './sqlite-store.ts';

test('everything is flushed but leases, and terminals that a marker proves; claims as their store can', async () => {
  await using folder = await temporaryFolder();
  const context = fixtureContext();
  const options = { deadlineMs: 1000, clock: systemClock };
  const store = sqliteStore(context, await openStore(join(folder.path, 'ledger.db'), options));
  let asked: Durability[] = [];
  const noting: TableStore = {
    ...store,
    decide(about, durability, decide) {
      asked.push(durability);
      return store.decide(about, durability, decide);
    },
  };
  const ledgers = ledgersIn(noting);
  const askedBy = async (work: Promise<unknown>) => {
    await work;
    const [durability, ...more] = asked;
    assert.deepEqual(more, []);
    asked = [];
    return durability;
  };
  assert.equal(await askedBy(claimFixture(ledgers, context, 'first')), 'claim');
  const { record: a } = await claimFixture(ledgers, context, 'a');
  const { record: b } = await claimFixture(ledgers, context, 'b');
  asked = [];
  const committed = fixtureTerminal(context, a, 'committed');
  for (const [expected, work] of [
    ['flushed', () => ledgers.announcePlan('task', 2)],
    ['relaxed', () => ledgers.renew(a.occurrence, a.execution, 1000)],
    ['flushed', () => ledgers.consumePermit(fixturePermit(context, a))],
    ['flushed', () => ledgers.voidPermit(b.occurrence, b.execution)],
    ['relaxed', () => ledgers.record(committed, 'relaxed')],
    ['flushed', () => ledgers.record(fixtureTerminal(context, b, 'rejected'), 'flushed')],
    ['flushed', () => ledgers.acknowledge(fixtureAcknowledgement(context, a))],
    ['flushed', () => ledgers.checkpoint()],
    ['flushed', () => ledgers.keep(fixtureDigest('document'), '{}')],
    ['relaxed', () => ledgers.abandon(a.occurrence, a.execution)],
  ] as const)
    assert.equal(await askedBy(work()), expected, String(work));
  await ledgers.close();
});
