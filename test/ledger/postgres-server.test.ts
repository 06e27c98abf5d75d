// Goal: whatever happens to the server or to the line to it, no claim that was reported is lost,
// none is made twice, and the ledger goes on without being opened again. Method: a server that is
// killed under load, a line that is cut around COMMIT, a pooler in transaction mode.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledgers } from '../../src/contract/ledgers.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { COMMIT_LOG } from '../../src/postgres/commit-log.ts';
import type { OccurrenceId } from '../../src/protocol/record.ts';
import {
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureExecution,
  fixtureLicense,
  fixtureReplay,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { freshDatabase, startServer, type TestDatabase } from '../postgres/server.ts';
import { findMissing, startPgBouncer } from './pgbouncer.ts';
import { startCuttingLine, startTransactionPooler } from './wire.ts';

const context = fixtureContext();

/** Prepares a ledger in a database; returns the address of its login. */
async function prepare(db: TestDatabase): Promise<string> {
  const url = db.url(db.role('ledger'));
  const provisioning = await postgresLedgers(url).provisioning(db.url(), 'provision');
  await provisioning.apply();
  return url;
}

function through(url: string, port: number): string {
  const other = new URL(url);
  other.port = String(port);
  return other.href;
}

function claim(ledgers: Ledgers, name: string) {
  const request = fixtureRequest(context, fixtureLicense(name), fixtureExecution(name));
  return ledgers.claim(request);
}

test('a server that is killed under load loses no claim that was reported and doubles none', async () => {
  await using server = await startServer();
  const db = await server.createDatabase();
  const ledgers = await postgresLedgers(await prepare(db)).open(context);
  const reported: string[] = [];
  let isOver = false;
  const work = async (worker: number) => {
    for (let turn = 0; !isOver; turn += 1) {
      const name = `worker ${worker} turn ${turn}`;
      const result = await claim(ledgers, name);
      assert.equal(result.kind, 'claimed', name);
      if (result.kind !== 'claimed') continue;
      reported.push(result.claim.record.occurrence);
      const terminal = fixtureTerminal(context, result.claim.record, 'committed');
      await ledgers.record(terminal, 'relaxed');
    }
  };
  const workers = Promise.all([0, 1, 2, 3].map(work));
  for (let kills = 0; kills < 4; kills += 1) {
    const before = reported.length;
    while (reported.length < before + 20) await sleep(5);
    await server.kill();
    await server.restart();
  }
  isOver = true;
  await workers;
  const rows: { readonly kind: string; readonly record: { readonly occurrence: string } }[] = [];
  for (let after = 0; ; after += 1000) {
    const page = await ledgers.journal({ afterSeq: after, limit: 1000 });
    rows.push(...page);
    if (page.length < 1000) break;
  }
  const claims = rows.filter(({ kind }) => kind === 'claim').map(({ record }) => record.occurrence);
  assert.equal(new Set(claims).size, claims.length, 'none is claimed twice');
  assert.deepEqual(claims.toSorted(), reported.toSorted());
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
});

test('what counts only once it is flushed survives a crash that follows at once', async () => {
  // The server flushes nothing by itself in this time.
  await using server = await startServer({ settings: { wal_writer_delay: '10s' } });
  const db = await server.createDatabase();
  const ledgers = await postgresLedgers(await prepare(db)).open(context);
  const crash = async () => {
    await server.kill();
    await server.restart();
  };
  const { record } = await claimFixture(ledgers, context, 'claimed');
  await crash();
  assert.deepEqual((await ledgers.holder(record.occurrence))?.claim.record, record);
  await ledgers.record(fixtureTerminal(context, record, 'rejected'), 'flushed');
  await crash();
  assert.equal((await ledgers.terminal(record.occurrence))?.kind, 'rejected');

  const { record: second } = await claimFixture(ledgers, context, 'second');
  const committed = fixtureTerminal(context, second, 'committed');
  await ledgers.record(committed, 'relaxed');
  await ledgers.record(committed, 'flushed');
  await crash();
  assert.equal((await ledgers.terminal(second.occurrence))?.kind, 'committed', 'agreement');
  assert.equal(await ledgers.acknowledge(fixtureAcknowledgement(context, second)), true);
  await crash();
  assert.equal(await ledgers.acknowledge(fixtureAcknowledgement(context, second)), false);

  const { record: third } = await claimFixture(ledgers, context, 'third');
  await ledgers.record(fixtureTerminal(context, third, 'committed'), 'relaxed');
  await crash();
  assert.equal(await ledgers.terminal(third.occurrence), undefined, 'what is relaxed may be lost');
  assert.equal((await ledgers.unsettled({ includeLeased: true })).length, 1);
  await ledgers.record(fixtureTerminal(context, third, 'committed'), 'flushed');
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
});

test('a claim is flushed unless its effects are committed to the log that the ledger writes to', async () => {
  await using server = await startServer({ settings: { wal_writer_delay: '10s' } });
  const db = await server.createDatabase();
  const ledgers = await postgresLedgers(await prepare(db)).open(context);
  const noted: string[] = [];
  const logOf = (name: string) => ({ name, note: (id: string) => void noted.push(id) });
  const readLog = async () => String((await db.run(`select (${COMMIT_LOG}) as log`))[0]?.log);
  const claimIn = async (name: string, log: string, by = ledgers) => {
    const request = fixtureRequest(context, fixtureLicense(name), fixtureExecution(name));
    const result = await by.claim({ ...request, log: logOf(log) });
    assert.ok(result.kind === 'claimed');
    return result.claim.record;
  };
  const isHeld = async ({ occurrence }: { readonly occurrence: OccurrenceId }) =>
    (await ledgers.holder(occurrence)) !== undefined;
  const crash = async () => {
    await server.kill();
    await server.restart();
  };
  const log = await readLog();
  await claimIn('first', log);
  const elsewhere = await claimIn('elsewhere', `${log}0`);
  assert.equal(noted.length, 1);
  const relaxed = await claimIn('relaxed', log);
  assert.equal(noted.length, 2);
  const [status] = await db.run('select pg_xact_status($1::xid8) as status', [noted[1]]);
  assert.equal(status?.status, 'committed', 'the log is told of the transaction');
  assert.equal(await isHeld(relaxed), true, 'it is visible at once');
  await crash();
  assert.deepEqual([await isHeld(elsewhere), await isHeld(relaxed)], [true, false]);
  const rejected = { claim: context.digest('any', 'claim') };
  const late = ledgers.record(fixtureTerminal(context, relaxed, 'rejected', rejected), 'flushed');
  await assert.rejects(late, { code: 'ERR_EM_CLAIM_LOST' });

  // The server was started since: what names the log of before is flushed.
  const old = await claimIn('old', log);
  const again = await claimIn('relaxed', await readLog());
  const refusal = fixtureReplay(context, again, 'a refusal that depends on the claim');
  await ledgers.record(refusal, 'flushed');
  await crash();
  assert.deepEqual([await isHeld(old), await isHeld(again)], [true, true]);

  const sound = await readLog();
  await db.run('revoke execute on function pg_control_system() from public');
  const unnamed = await postgresLedgers(db.url(db.role('ledger'))).open(context);
  const other = fixtureRequest(context, fixtureLicense('x'), fixtureExecution('x'));
  const count = noted.length;
  assert.equal((await unnamed.claim({ ...other, log: logOf(sound) })).kind, 'claimed');
  assert.equal(noted.length, count, 'a login that may not ask flushes');
  await unnamed.close();
  await db.run('grant execute on function pg_control_system() to public');

  // A session that knows its log is not asked for the name again, and still compares the settings.
  const warm = await postgresLedgers(db.url(db.role('ledger'))).open(context);
  for (const name of ['cold', 'asked', 'known']) await claimIn(name, sound, warm);
  await db.run('alter system set full_page_writes = off');
  await db.run('select pg_reload_conf()');
  while ((await readLog()) !== 'null') await sleep(20);
  const torn = await claimIn('torn', sound, warm);
  await crash();
  await warm.close();
  assert.equal(await isHeld(torn), true);
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
});

test('a line that is cut before COMMIT or before its answer leaves one claim, and its caller learns of it', async () => {
  await using db = await freshDatabase();
  const url = await prepare(db);
  await using line = await startCuttingLine(Number(new URL(url).port));
  const ledgers = await postgresLedgers(through(url, line.port)).open(context);
  for (const [index, cut] of (['before', 'after', 'before', 'after'] as const).entries()) {
    line.cutNext(cut);
    const result = await claim(ledgers, `cut ${index}`);
    assert.equal(result.kind, 'claimed', cut);
    assert.equal((await claim(ledgers, `cut ${index}`)).kind, 'refused', 'it is spent');
  }
  assert.equal(line.cuts(), 4);
  assert.equal((await ledgers.journal()).length, 4);
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
});

test('a process that decides alone needs one message for each claim and each verdict', async () => {
  await using db = await freshDatabase();
  const url = await prepare(db);
  await using line = await startCuttingLine(Number(new URL(url).port));
  const ledgers = await postgresLedgers(through(url, line.port)).open(context);
  await ledgers.announcePlan('shared task', 3);
  const license = { task: 'shared task', planRevision: 3 };
  const { record: first } = await claimFixture(ledgers, context, 'first', { license });
  const before = line.messages();
  await ledgers.record(fixtureTerminal(context, first, 'committed'), 'relaxed');
  for (const name of ['a', 'b', 'c']) {
    const { record } = await claimFixture(ledgers, context, name, { license });
    assert.equal(await ledgers.renew(record.occurrence, record.execution, 60_000), true);
    await ledgers.record(fixtureTerminal(context, record, 'rejected'), 'flushed');
  }
  assert.equal(line.messages() - before, 10);
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
});

test('what a process believes is compared with the tables before it counts', async () => {
  await using db = await freshDatabase();
  const factory = postgresLedgers(await prepare(db));
  const [one, two] = [await factory.open(context), await factory.open(context)];
  const license = { task: 'task' };
  const { record } = await claimFixture(one, context, 'held', { license });
  await two.announcePlan('task', 9);
  const old = fixtureRequest(context, fixtureLicense('old', license), fixtureExecution('old'));
  const superseded = await one.claim(old);
  assert.ok(superseded.kind === 'refused' && superseded.reason === 'plan-superseded');
  await claimFixture(one, context, 'warm');
  await claimFixture(two, context, 'taken');
  const taken = await claim(one, 'taken');
  assert.ok(taken.kind === 'refused' && taken.reason === 'spent');
  await claimFixture(one, context, 'warm again');
  await two.record(fixtureTerminal(context, record, 'rejected'), 'flushed');
  const late = one.record(fixtureTerminal(context, record, 'committed'), 'flushed');
  await assert.rejects(late, { code: 'ERR_EM_TERMINAL_CONFLICT' });
  const voided = await one.voidPermit(record.occurrence, record.execution);
  assert.equal(voided.kind, 'void');
  assert.equal((await one.verify()).kind, 'intact');
  await one.close();
  await two.close();
});

test('a nonce that another process used is refused as reused, whether or not anything is issued', async () => {
  await using db = await freshDatabase();
  const factory = postgresLedgers(await prepare(db));
  const [one, two] = [await factory.open(context), await factory.open(context)];
  await claimFixture(two, context, 'used');
  const other = { ...fixtureLicense('used'), task: 'another task' };
  const request = fixtureRequest(context, other, fixtureExecution('other'));
  const { occurrence: only } = (await claimFixture(two, context, 'elsewhere')).record;
  for (const asked of [{ ...request, only }, request]) {
    // Now it knows the last position, and nothing of that nonce.
    await claimFixture(one, context, `warm ${'only' in asked}`);
    const refused = await one.claim(asked);
    assert.ok(refused.kind === 'refused');
    assert.equal(refused.reason, 'nonce-reused');
  }
  assert.equal((await one.verify()).kind, 'intact');
  await one.close();
  await two.close();
});

test('each of a group of decisions has its result although the answer to their COMMIT was lost', async () => {
  await using db = await freshDatabase();
  const url = await prepare(db);
  await using line = await startCuttingLine(Number(new URL(url).port));
  const ledgers = await postgresLedgers(through(url, line.port)).open(context);
  await claim(ledgers, 'first');
  line.cutNext('after');
  const names = ['a', 'b', 'b', 'c'];
  const alone = claim(ledgers, 'alone');
  const results = await Promise.all(names.map((name) => claim(ledgers, name)));
  assert.equal((await alone).kind, 'claimed');
  assert.deepEqual(
    results.map(({ kind }) => kind),
    ['claimed', 'claimed', 'refused', 'claimed'],
  );
  assert.equal((await ledgers.journal()).length, 5);
  await ledgers.close();
});

test('behind a pooler that changes sessions between transactions everything works as without it', async () => {
  await using db = await freshDatabase();
  const url = await prepare(db);
  await using pooler = await startTransactionPooler(Number(new URL(url).port));
  await workThrough(through(url, pooler.port));
  assert.ok(pooler.handedOver() > 10, 'transactions went to different sessions');
});

test('behind PgBouncer in transaction mode everything works as without it', async (context) => {
  const missing = findMissing();
  if (missing !== undefined) return context.skip(missing);
  await using db = await freshDatabase();
  const url = await prepare(db);
  const { port, username } = new URL(url);
  await using pooler = await startPgBouncer(Number(port), [username]);
  await workThrough(through(url, pooler.port));
});

/** Two processes decide about the same occurrences, and one ends what the other claimed. */
async function workThrough(url: string): Promise<void> {
  const factory = postgresLedgers(url);
  const [one, two] = [await factory.open(context), await factory.open(context)];
  const claims = Array.from({ length: 20 }, (_, index) => [
    claim(one, `pooled ${index}`),
    claim(two, `pooled ${index}`),
  ]).flat();
  const kinds = (await Promise.all(claims)).map(({ kind }) => kind);
  assert.equal(kinds.filter((kind) => kind === 'claimed').length, 20);
  for (const turn of [1, 2, 3]) {
    const { record } = await claimFixture(one, context, `settled ${turn}`);
    await two.record(fixtureTerminal(context, record, 'committed'), 'flushed');
    assert.equal((await one.terminal(record.occurrence))?.kind, 'committed');
  }
  assert.equal((await one.verify()).kind, 'intact');
  await one.close();
  await two.close();
}

test('who waits for a verdict hears of it from another process, and otherwise waits as long as told', async () => {
  await using db = await freshDatabase();
  const factory = postgresLedgers(await prepare(db));
  const [one, two] = [await factory.open(context), await factory.open(context)];
  const { record } = await claimFixture(one, context, 'awaited');
  const { record: other } = await claimFixture(one, context, 'another');
  const wait = async (ms: number, signal?: AbortSignal) => {
    const begin = performance.now();
    await one.changed?.(record.occurrence, ms, signal);
    return performance.now() - begin;
  };
  assert.ok((await wait(500)) > 490, 'nothing happened');
  const aborting = new AbortController();
  const aborted = wait(60_000, aborting.signal);
  aborting.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  let hasHeard = false;
  const hearing = wait(60_000).then(() => {
    hasHeard = true;
  });
  await two.record(fixtureTerminal(context, other, 'committed'), 'flushed');
  await two.announcePlan('task', 1);
  assert.equal(hasHeard, false, 'a verdict about another occurrence');
  await two.record(fixtureTerminal(context, record, 'committed'), 'relaxed');
  await hearing;
  await db.run(
    // The server is shared: the sessions of other tests are not ours to end.
    `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'effectmatch ledger' and datname = current_database()`,
  );
  assert.ok((await wait(300)) > 290, 'a lost connection only means that nothing is heard');
  await one.close();
  await two.close();
});

test('a process that stands still while it decides holds up the others for a bounded time', async () => {
  await using db = await freshDatabase();
  const url = await prepare(db);
  const ledgers = await postgresLedgers(url, { deadlineMs: 300 }).open(context);
  const blocker = db.run(
    'begin; select from effectmatch_ledger.turn for update; select pg_sleep(1); commit',
  );
  await sleep(200);
  await assert.rejects(claim(ledgers, 'late'), { code: 'ERR_EM_STORE_BUSY' });
  await blocker;
  assert.equal((await claim(ledgers, 'late')).kind, 'claimed');
  await ledgers.close();
  await assert.rejects(claim(ledgers, 'closed'), { code: 'ERR_EM_STORE_UNAVAILABLE' });
});

test('a place that was not prepared, or where a commit can be lost, is refused with what to do', async () => {
  await using server = await startServer({ settings: { full_page_writes: 'off' } });
  const db = await server.createDatabase();
  const url = await prepare(db);
  const refusal = { code: 'ERR_EM_STORE_UNAVAILABLE', message: /full_page_writes/ };
  await assert.rejects(postgresLedgers(url).open(context), refusal);
  const unprepared = postgresLedgers(url, { schema: 'elsewhere' }).open(context);
  await assert.rejects(unprepared, { message: /effectmatch provision --ledger/ });
  await assert.rejects(postgresLedgers(url).provisioning(url, 'provision'), {
    code: 'ERR_EM_CONFIG_INVALID',
  });
  await db.run('update effectmatch_ledger.head set version = 2');
  await db.run('alter system set full_page_writes = on');
  await db.run('select pg_reload_conf()');
  await sleep(200);
  await assert.rejects(postgresLedgers(url).open(context), { code: 'ERR_EM_STORE_NEWER' });
});
