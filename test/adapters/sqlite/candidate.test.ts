// Goal: a connection that holds one candidate after another holds each as if it were its first.
// Method: real files; the adapter's connections are caught where their sessions are made, to count
// and to disturb them.
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { probeAction } from '../../../src/adapters/sqlite/action.ts';
import type { Evidence } from '../../../src/contract/adapter.ts';
import type { Certificate, Claim } from '../../../src/contract/proof.ts';
import {
  change,
  copyOf,
  freshFile,
  freshOccurrence,
  gapsOf,
  held,
  look,
  observe,
  open,
  permit,
  promote,
  type SqliteAdapter,
  stage,
} from './database.ts';

const caught: DatabaseSync[] = [];
const { createSession } = DatabaseSync.prototype;
DatabaseSync.prototype.createSession = function (this: DatabaseSync, ...options) {
  caught.push(this);
  return createSession.apply(this, options);
};
after(() => {
  DatabaseSync.prototype.createSession = createSession;
});

/** The connection of the stage that was opened last. */
function lastConnection(): DatabaseSync {
  return caught.at(-1) ?? assert.fail('no stage was opened');
}

const SCHEMA = `
  create table t (id integer primary key, v);
  create table log (id integer primary key, t integer, what text);
  create table word (w text primary key not null, n integer);
  create table hidden (id integer primary key);
  create trigger noted after insert on t begin insert into log (t, what) values (new.id, 'new'); end;
  insert into t values (1, 'one'), (2, 'two');
`;
const RELATIONS = ['t', 'log', 'word'];
const INSERT = { sql: 'insert into t (v) values (?)', values: ['x'] };

async function commit(adapter: SqliteAdapter, action: unknown): Promise<void> {
  const occurrence = freshOccurrence();
  await using candidate = await held(adapter, action, occurrence);
  assert.deepEqual(gapsOf(adapter, await candidate.observe()), []);
  assert.deepEqual(await promote(candidate, occurrence), { kind: 'confirmed' });
}

test('a connection serves again after a commit and after a rollback, and after nothing else', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  await commit(adapter, INSERT);
  const first = lastConnection();
  await commit(adapter, INSERT);
  await observe(adapter, INSERT);
  await commit(adapter, INSERT);
  assert.equal(lastConnection(), first);

  const isNext = async (action: unknown = INSERT): Promise<boolean> => {
    const before = lastConnection();
    await commit(adapter, action);
    assert.equal(before.isOpen, before === lastConnection(), 'what does not serve again is closed');
    return before === lastConnection();
  };
  assert.equal((await stage(adapter, { sql: 'delete from hidden' })).kind, 'failed');
  assert.equal(await isNext(), false, 'after a denial');
  assert.equal(await isNext(), true);
  assert.equal((await stage(adapter, { sql: 'selec' })).kind, 'failed');
  assert.equal(await isNext(), false, 'after an action that failed');
  await (await held(adapter, INSERT)).discard();
  assert.equal(await isNext(), false, 'after a candidate that nobody observed');
  const decided = freshOccurrence();
  const once = await held(adapter, INSERT, decided);
  await once.observe();
  await promote(once, decided);
  assert.equal((await stage(adapter, INSERT, decided)).kind, 'failed');
  assert.equal(await isNext(), true, 'after a stage in which no action ran');
  change(file, 'create table other (a)');
  assert.equal(await isNext(), false, 'after a change of the schema');
  change(file, 'pragma journal_mode = wal');
  assert.equal(await isNext(), false, 'after a change of the journal');
  await adapter.close();
  assert.equal(lastConnection().isOpen, false);
});

test('a stage that is over has no hold on the connection that another one uses by then', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const occurrence = freshOccurrence();
  const first = await held(adapter, INSERT, occurrence);
  await first.observe();
  await promote(first, occurrence);
  await using second = await held(adapter, INSERT);
  assert.equal(caught.at(-1), caught.at(-2), 'it is the same connection');
  await first.discard();
  assert.equal((await second.observe()).records.length, 2);
});

test('property: on a connection that was used an action leaves the evidence that it leaves on a new one', async () => {
  const value = fc.oneof(
    fc.integer({ min: -3, max: 3 }),
    fc.constantFrom(null, 'a', 0.5, 2n ** 60n, 2n ** 53n),
  );
  const statement = fc.oneof(
    fc.record({ sql: fc.constant('insert into t (v) values (?)'), values: fc.tuple(value) }),
    fc.record({
      sql: fc.constant('update t set v = :v where id = :id'),
      values: fc.record({ v: value, id: value }),
    }),
    fc.record({ sql: fc.constant('delete from t where id = ?'), values: fc.tuple(value) }),
    fc.record({
      sql: fc.constant('insert or replace into word values (?, ?)'),
      values: fc.tuple(fc.constantFrom('a', 'b'), fc.nat(3)),
    }),
    fc.constant({ sql: 'update word set n = n + 1 returning n' }),
    fc.constant({ sql: 'insert into hidden values (1)' }),
    fc.constant({ sql: 'select * from t, log' }),
  );
  const action = fc.record({ statements: fc.array(statement, { minLength: 1, maxLength: 4 }) });
  const file = freshFile(SCHEMA);
  await using used = await open({ file, relations: RELATIONS });
  const told = async (adapter: SqliteAdapter, statements: unknown): Promise<unknown> => {
    const staged = await stage(adapter, statements);
    if (staged.kind === 'failed') return staged;
    await using held = staged.stage;
    const { candidate, evidence, window, channels, ...rest }: Evidence = await held.observe();
    assert.deepEqual(await held.recheck(), { candidate, evidence });
    return {
      ...rest,
      channels: channels.filter((report) => report.channel !== 'transaction'),
      gaps: gapsOf(adapter, { candidate, evidence, window, channels, ...rest }),
    };
  };
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 4 }), async (actions) => {
      for (const statements of actions) {
        await using fresh = await open({ file, relations: RELATIONS });
        assert.deepEqual(await told(used, statements), await told(fresh, statements));
      }
    }),
    { numRuns: 40 },
  );
});

test('what is done to a held candidate is denied, changes its evidence, and keeps it from being promoted', async () => {
  const statements = [
    'rollback',
    'pragma synchronous = off',
    "update t set v = 'z'",
    'create temp table x (a)',
  ];
  for (const [sql, isRechecked] of statements.flatMap((sql) => [
    [sql, true] as const,
    [sql, false] as const,
  ])) {
    const file = freshFile(SCHEMA);
    await using adapter = await open({ file, relations: RELATIONS });
    const occurrence = freshOccurrence();
    await using candidate = await held(adapter, INSERT, occurrence);
    const facts = await candidate.observe();
    assert.throws(() => lastConnection().exec(sql), /not authorized/, sql);
    if (isRechecked) assert.notEqual((await candidate.recheck()).evidence, facts.evidence, sql);
    const promotion = await candidate.promote(permit(occurrence, facts));
    const reason = isRechecked ? 'permit-mismatch' : 'candidate-changed';
    assert.equal(promotion.kind === 'refused' && promotion.reason, reason, sql);
    assert.deepEqual(look(file, 'select count(*) as n from t'), [{ n: 2 }]);
  }
});

test('a setting that an action moved behind the fence is a gap, and the connection does not serve again', async () => {
  const file = freshFile(SCHEMA);
  for (const sql of [
    'pragma recursive_triggers = on',
    'create temp trigger spy after insert on t begin select 1; end',
  ]) {
    await using adapter = await open({ file, relations: RELATIONS });
    const occurrence = freshOccurrence();
    await using candidate = await held(adapter, INSERT, occurrence);
    const connection = lastConnection();
    connection.setAuthorizer(null);
    connection.exec(sql);
    assert.match(gapsOf(adapter, await candidate.observe()).join(), /"settings" changed/, sql);
    const promotion = await promote(candidate, occurrence);
    assert.equal(promotion.kind === 'refused' && promotion.reason, 'candidate-changed', sql);
    await commit(adapter, INSERT);
    assert.notEqual(lastConnection(), connection);

    const unseen = freshOccurrence();
    await using unobserved = await held(adapter, INSERT, unseen);
    lastConnection().setAuthorizer(null);
    lastConnection().exec(sql);
    const refused = await unobserved.promote(
      permit(unseen, { candidate: unobserved.candidate, evidence: '' }),
    );
    assert.equal(refused.kind === 'refused' && refused.reason, 'permit-mismatch', sql);
  }
});

test('a schema that was edited without its counter is what runs only after all of it was read', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  await commit(adapter, INSERT);
  const certified = await adapter.survey();
  {
    using editor = new DatabaseSync(file, { defensive: false });
    editor.exec(`pragma writable_schema = on;
      update sqlite_schema set sql = replace(sql, '''new''', '''neu''') where name = 'noted'`);
  }
  assert.equal(await adapter.survey(), certified, 'no open connection runs the edited schema');
  const records = [...(await observe(adapter, INSERT)).records].map(({ after }) => after?.what);
  assert.ok(records.includes('new') && !records.includes('neu'));

  assert.equal((await stage(adapter, { sql: 'selec' })).kind, 'failed');
  const staged = await stage(adapter, INSERT);
  assert.equal(
    staged.kind === 'failed' && staged.reason,
    'boundary-changed',
    'a new connection would run it',
  );
  assert.notEqual(
    (await adapter.survey()).configuration,
    certified.configuration,
    'and the next survey says so',
  );
  const now = [...(await observe(adapter, INSERT)).records].map(({ after }) => after?.what);
  assert.ok(now.includes('neu'));
});

test('what the admission probe may write is not compiled for an action that says the same', async () => {
  const file = copyOf(freshFile(SCHEMA));
  await using adapter = await open({ file, relations: RELATIONS });
  await adapter.survey();
  const action = probeAction('token');
  const claim = { sealed: { record: { occurrence: freshOccurrence() } } } as unknown as Claim;
  const probed = await adapter.stage(claim, {} as unknown as Certificate, action);
  await using candidate = probed.kind === 'held' ? probed.stage : assert.fail();
  assert.equal((await candidate.observe()).records.length, 1);
  await candidate.discard();
  const [{ sql } = assert.fail()] = action.statements;
  const staged = await stage(adapter, { sql, values: ['token'] });
  assert.match(staged.kind === 'failed' ? staged.detail : '', /belongs to EffectMatch/);
});
