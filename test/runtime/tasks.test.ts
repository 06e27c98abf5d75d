// Goal: a task makes many calls on one private candidate, and what becomes durable is exactly what
// was approved or nothing. Method: real SQLite files; every way in which a task can end.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { systemClock } from '../../src/contract/clock.ts';
import {
  approver,
  generateApprover,
  generated,
  insert,
  type Task,
  type TaskOptions,
  update,
} from '../../src/index.ts';
import type { SignedLicense } from '../../src/protocol/license.ts';
import type { PrepareRequest } from '../../src/runtime/prepare.ts';
import { createRuntime, type Internals, type Runtime } from '../../src/runtime/runtime.ts';
import { testKeyring } from '../keyring.ts';
import { assertRejected, ofKind } from './deploy.ts';

const SCHEMA = `create table invoice (id integer primary key, status text not null);
  create table line (id integer primary key autoincrement, invoice integer not null, item text);
  create table log (id integer primary key, text text);
  create trigger strict before insert on invoice when new.id = 13
    begin select raise(rollback, 'thirteen'); end;
  insert into invoice values (1, 'pending'), (2, 'pending')`;

const PAY = { sql: "update invoice set status = 'paid' where id = 1" };
const LATE = { sql: "update invoice set status = 'late' where id = 2" };
const PAID = [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })];

interface Desk extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly start: () => Promise<Runtime>;
  approve(request?: Partial<PrepareRequest>): Promise<SignedLicense>;
  open(license: unknown, options?: TaskOptions): Promise<Task>;
  statuses(): readonly unknown[];
}

async function openDesk(internals: Internals = {}): Promise<Desk> {
  const folder = mkdtempSync(join(tmpdir(), 'tasks-'));
  const file = join(folder, 'books.db');
  const key = generateApprover('team');
  const keyring = testKeyring();
  using db = new DatabaseSync(file);
  db.exec(SCHEMA);
  const start = () =>
    createRuntime(
      {
        store: join(folder, 'effectmatch.db'),
        keyring,
        restageMs: 0,
        issuers: {
          team: { key: key.publicKey, may: ['books'], sources: ['manifest', 'rehearsed'] },
        },
        adapters: {
          books: sqlite({ file, relations: ['invoice', 'line'], busyTimeoutMs: 100 }),
        },
      },
      internals,
    );
  const runtime = await start();
  return {
    runtime,
    start,
    async approve(request = {}) {
      const asked = { adapter: 'books', task: 'pay', planRevision: 1, effects: PAID, ...request };
      return approver(key).sign(await runtime.prepare(asked), { expiresIn: '10m' });
    },
    async open(license, options) {
      const task = await runtime.open(license, options);
      assert.equal(task.kind, 'open', JSON.stringify(task));
      return task as Task;
    },
    statuses() {
      using other = new DatabaseSync(file);
      return other
        .prepare('select status from invoice order by id')
        .all()
        .map(({ status }) => status);
    },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test('a task that does what was approved commits when it is finished', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve());
  const before = await task.call({ sql: 'select status from invoice where id = 1' });
  assert.deepEqual(before, {
    kind: 'done',
    results: [{ rows: [{ status: 'pending' }], omitted: 0 }],
  });
  assert.deepEqual(await task.call(PAY), { kind: 'done' });
  const seen = await task.call({ sql: 'select status from invoice where id = 1' });
  assert.deepEqual(seen, { kind: 'done', results: [{ rows: [{ status: 'paid' }], omitted: 0 }] });
  assert.deepEqual(desk.statuses(), ['pending', 'pending'], 'nothing is durable before the end');
  const terminal = ofKind('committed', await task.finish());
  assert.equal(terminal.occurrence, task.occurrence);
  assert.deepEqual(desk.statuses(), ['paid', 'pending']);
  assert.deepEqual(await task.finish(), terminal, 'a second finish has the same answer');
  assert.deepEqual(await task.discard(), terminal, 'and a discard comes too late');
});

test('a failed call leaves nothing, and the task goes on', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve());
  const half = { statements: [LATE, { sql: "insert into invoice values (1, 'twice')" }] };
  const failed = await task.call(half);
  assert.equal(failed.kind === 'failed' && failed.reason, 'action-failed');
  const denied = await task.call({ sql: 'delete from log' });
  assert.equal(denied.kind === 'failed' && denied.reason, 'outlet-denied');
  const unread = await task.call({ sql: 'select 1', typo: true });
  assert.equal(unread.kind === 'failed' && unread.reason, 'action-invalid');
  assert.equal((await task.call(PAY)).kind, 'done');
  ofKind('committed', await task.finish());
  assert.deepEqual(desk.statuses(), ['paid', 'pending']);
});

test('an error that rolls everything back ends the task', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve());
  await task.call(PAY);
  const lost = await task.call({ sql: "insert into invoice values (13, 'x')" });
  assert.equal(lost.kind === 'failed' && lost.isLost, true, JSON.stringify(lost));
  const late = await task.call(PAY);
  assert.equal(late.kind === 'failed' && late.reason, 'task-over');
  assertRejected(await task.finish(), 'stage', 'action-failed');
  assert.deepEqual(desk.statuses(), ['pending', 'pending']);
});

test('a task that does more, less or nothing is rejected with its diff', async () => {
  await using desk = await openDesk();
  for (const calls of [[PAY, LATE], [LATE], []]) {
    const task = await desk.open(await desk.approve());
    for (const call of calls) assert.equal((await task.call(call)).kind, 'done');
    const rejected = assertRejected(await task.finish(), 'comparison', 'diverged');
    assert.equal(rejected.outcome?.kind, 'DIVERGED');
    assert.deepEqual(desk.statuses(), ['pending', 'pending']);
  }
});

test('what one call writes and a later one takes back is not part of the result', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve());
  await task.call(LATE);
  await task.call(PAY);
  await task.call({ sql: "update invoice set status = 'pending' where id = 2" });
  ofKind('committed', await task.finish());
  assert.deepEqual(desk.statuses(), ['paid', 'pending']);
});

test('generated identifiers are told apart across calls, and a failed call costs none', async () => {
  await using desk = await openDesk();
  const effects = [
    insert('line', { id: generated('first'), invoice: 1, item: 'pen' }),
    insert('line', { id: generated('second'), invoice: 1, item: 'ink' }),
  ];
  const task = await desk.open(await desk.approve({ effects }));
  await task.call({ sql: "insert into line (invoice, item) values (1, 'pen')" });
  await task.call({
    statements: [
      { sql: "insert into line (invoice, item) values (1, 'oil')" },
      { sql: 'insert into line (invoice, item) values (null, null)' },
    ],
  });
  await task.call({ sql: "insert into line (invoice, item) values (1, 'ink')" });
  const { generated: values } = ofKind('committed', await task.finish());
  assert.deepEqual(values, { first: 1, second: 2 });
});

test('the deadline discards a task that nothing finishes, and frees its lock', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve(), { deadlineMs: 60 });
  await task.call(PAY);
  assertRejected(await task.ended, 'stage', 'task-timeout');
  assert.deepEqual(desk.statuses(), ['pending', 'pending']);
  ofKind('committed', await desk.runtime.execute(await desk.approve(), PAY));
});

test('one call more than the budget discards the task', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve(), { maxCalls: 2 });
  await task.call(PAY);
  await task.call({ sql: 'select 1' });
  const last = await task.call({ sql: 'select 1' });
  assert.equal(last.kind === 'failed' && last.reason, 'task-over');
  assertRejected(await task.finish(), 'stage', 'task-budget');
  assert.deepEqual(desk.statuses(), ['pending', 'pending']);
});

test('a helper finishes what returns, and discards what throws, hangs or is interrupted', async () => {
  await using desk = await openDesk();
  const { runtime } = desk;
  const work = async (task: Task) => void (await task.call(PAY));
  ofKind('committed', await runtime.task(await desk.approve(), work));
  assert.deepEqual(desk.statuses(), ['paid', 'pending']);

  const effects = [update('invoice', { id: 2 }, { status: ['pending', 'late'] })];
  const fail = async (task: Task) => {
    await task.call(LATE);
    throw new Error('the model is gone');
  };
  const license = await desk.approve({ effects });
  await assert.rejects(runtime.task(license, fail), /the model is gone/);
  const [occurrence] = (await runtime.ledgers.journal())
    .filter(({ kind }) => kind === 'claim')
    .map(({ record }) => (record as { readonly occurrence: Task['occurrence'] }).occurrence)
    .slice(-1);
  assert.ok(occurrence);
  assertRejected(await runtime.terminal(occurrence), 'stage', 'task-discarded');

  const hang = (task: Task) => task.call(LATE).then(() => sleep(5000, undefined, { ref: false }));
  const hanging = runtime.task(await desk.approve({ effects }), hang, { deadlineMs: 60 });
  assertRejected(await hanging, 'stage', 'task-timeout');

  const stop = new AbortController();
  const abort = async (task: Task) => {
    await task.call(LATE);
    stop.abort();
  };
  const { signal } = stop;
  assertRejected(
    await runtime.task(await desk.approve({ effects }), abort, { signal }),
    'stage',
    'task-interrupted',
  );
  assert.deepEqual(desk.statuses(), ['paid', 'pending']);
});

test('closing the runtime ends its tasks with a record', async () => {
  await using desk = await openDesk();
  const other = await desk.start();
  const task = await other.open(await desk.approve());
  assert.ok(task.kind === 'open');
  await task.call(PAY);
  await other.close();
  assertRejected(await task.ended, 'stage', 'task-interrupted');
  assert.deepEqual(desk.statuses(), ['pending', 'pending']);
});

test('a license that is spent, or bound to one action, opens no task', async () => {
  await using desk = await openDesk();
  const license = await desk.approve();
  ofKind('committed', await desk.runtime.execute(license, PAY));
  const spent = await desk.runtime.open(license);
  assert.equal(spent.kind === 'rejected' && spent.at, 'authority', JSON.stringify(spent));

  const effects = [update('invoice', { id: 2 }, { status: ['pending', 'late'] })];
  const bound = await desk.approve({ effects, action: LATE });
  const refused = await desk.runtime.open(bound);
  assert.ok(refused.kind !== 'open');
  assertRejected(refused, 'authority', 'other-action');
  ofKind('committed', await desk.runtime.execute(bound, LATE));
});

test('calls that arrive together run one after another, and finish waits for them', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve());
  const [first, second, end] = await Promise.all([
    task.call(PAY),
    task.call({ sql: 'select status from invoice where id = 1' }),
    task.finish(),
  ]);
  assert.equal(first.kind, 'done');
  assert.deepEqual(second, { kind: 'done', results: [{ rows: [{ status: 'paid' }], omitted: 0 }] });
  ofKind('committed', end);
});

test('a license that expires while its task is open makes nothing durable', async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  await using desk = await openDesk({ clock });
  const task = await desk.open(await desk.approve(), { deadlineMs: 15 * 60_000 });
  await task.call(PAY);
  aheadMs = 11 * 60_000;
  assertRejected(await task.finish(), 'final-gate', 'expired');
  assert.deepEqual(desk.statuses(), ['pending', 'pending']);
});

test('no statement outlives its call: transaction, settings and schema are not the agent’s', async () => {
  await using desk = await openDesk();
  const task = await desk.open(await desk.approve());
  const reaching = [
    ...['commit', 'rollback', 'begin', 'end', 'explain commit', 'select 1; commit'],
    ...['savepoint effectmatch_call', 'release effectmatch_call', 'rollback to effectmatch_call'],
    ...['pragma foreign_keys = off', 'pragma writable_schema = on', 'pragma journal_mode = off'],
    ...["attach ':memory:' as other", 'create temp table invoice (id)', 'vacuum', 'reindex'],
    'create temp trigger more after update on invoice begin delete from line; end',
  ];
  for (const sql of reaching) {
    const answer = await task.call({ sql });
    assert.equal(answer.kind, 'failed', sql);
    assert.notEqual(answer.kind === 'failed' && answer.isLost, true, sql);
  }
  assert.equal((await task.call(PAY)).kind, 'done');
  ofKind('committed', await task.finish());
  assert.deepEqual(desk.statuses(), ['paid', 'pending']);
});

test('limits outside their range are refused before anything happens', async () => {
  await using desk = await openDesk();
  const license = await desk.approve();
  for (const limits of [{ deadlineMs: 0 }, { maxCalls: 1.5 }, { deadlineMs: 3_600_000 }])
    await assert.rejects(desk.runtime.open(license, limits), { code: 'ERR_EM_USAGE' });
  ofKind('committed', await desk.runtime.execute(license, PAY));
});
