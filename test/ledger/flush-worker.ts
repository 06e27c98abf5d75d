import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import {
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixtureLicense,
  fixturePermit,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';

/**
 * Runs every operation of the SQLite ledgers once and says on stderr which one comes next; run
 * under strace.
 */
const begin = (operation: string): number => writeSync(2, `operation: ${operation}\n`);
const context = fixtureContext();

begin('open');
const ledgers = await sqliteLedgers(join(process.argv[2] ?? '', 'ledger.db')).open(context);
const { record: a } = await claimFixture(ledgers, context, 'a');
const { record: b } = await claimFixture(ledgers, context, 'b');
const { record: c } = await claimFixture(ledgers, context, 'c');
begin('claim');
await claimFixture(ledgers, context, 'd');
begin('claim refused');
await ledgers.claim(fixtureRequest(context, fixtureLicense('a'), fixtureExecution('again')));
begin('renew lease');
await ledgers.renew(a.occurrence, a.execution, 120_000);
begin('consume permit');
await ledgers.consumePermit(fixturePermit(context, a));
begin('void permit');
await ledgers.voidPermit(b.occurrence, b.execution);
begin('relaxed terminal');
await ledgers.record(fixtureTerminal(context, a, 'committed'), 'relaxed');
begin('agreement, relaxed');
await ledgers.record(fixtureTerminal(context, a, 'committed'), 'relaxed');
begin('agreement, flushed');
await ledgers.record(fixtureTerminal(context, a, 'committed'), 'flushed');
begin('flushed terminal');
await ledgers.record(fixtureTerminal(context, c, 'rejected'), 'flushed');
begin('acknowledgement');
await ledgers.acknowledge(fixtureAcknowledgement(context, a));
begin('acknowledgement refused');
await ledgers.acknowledge(fixtureAcknowledgement(context, a));
begin('plan revision');
await ledgers.announcePlan('task', 2);
begin('checkpoint');
await ledgers.checkpoint();
begin('document, first time');
await ledgers.keep(fixtureDigest('document'), '{}');
begin('document, again');
await ledgers.keep(fixtureDigest('document'), '{}');
begin('reading');
await ledgers.holder(a.occurrence);
await ledgers.unsettled({ includeLeased: true });
await ledgers.verify();
begin('close');
await ledgers.close();
