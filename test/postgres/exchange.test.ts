// Goal: statements of one message mean what they would mean alone, and an error ends the message
// and nothing else. Method: values and messages of all sizes through a real server, compared with
// what was sent.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { Connection, sqlState } from '../../src/postgres/connection.ts';
import { freshDatabase, type TestDatabase } from './server.ts';

let database: TestDatabase;
let connection: Connection;
before(async () => {
  database = await freshDatabase();
  connection = await Connection.open(database.url(), 'test');
});
after(async () => {
  await connection.close();
  await database.drop();
});

const text = fc
  .string({ unit: 'binary', maxLength: 3000 })
  .filter((value) => !value.includes('\0'));
const bound = fc.record({
  plain: fc.option(text),
  list: fc.array(fc.option(text), { maxLength: 5 }),
  bytes: fc.uint8Array({ maxLength: 3000 }),
});

test('values arrive as they were sent, however many statements and bytes a message has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(bound, { minLength: 1, maxLength: 4 }), async (sent) => {
      const { replies, failure } = await connection.run(
        sent.map(({ plain, list, bytes }) => ({
          text: "select $1::text, to_json($2::text[]), encode($3::bytea, 'hex')",
          values: [plain, list, bytes],
        })),
      );
      assert.equal(failure, undefined);
      const arrived = replies.map(({ rows: [row] }) => [
        row?.[0],
        JSON.parse(row?.[1] ?? ''),
        row?.[2],
      ]);
      const expected = sent.map(({ plain, list, bytes }) => [
        plain,
        list,
        Buffer.from(bytes).toString('hex'),
      ]);
      assert.deepEqual(arrived, expected);
    }),
    { numRuns: 60 },
  );
});

test('messages of any size sent together do not overwrite each other', async () => {
  const sent = [3, 70_000, 5, 2_000_000, 7].map((length) => 'ä€😀a'.repeat(length));
  const asked = connection.together(() =>
    sent.map((value) => connection.query('select md5($1::text)', [value])),
  );
  const found = (await Promise.all(asked)).map(({ rows }) => rows[0]?.[0]);
  assert.deepEqual(
    found,
    sent.map((value) => hash('md5', value)),
  );
});

test('an error ends its message: what was before it has its answer, what is after it did not run', async () => {
  const numbered = (number: number) => ({
    text: 'select $1::integer / ($1::integer - 2)',
    values: [String(number)],
  });
  const [first, second] = await Promise.all([
    connection.run([numbered(1), numbered(2), { text: 'create table never (a integer)' }]),
    connection.run([numbered(3), { text: '' }, { text: "select to_regclass('never')" }]),
  ]);
  assert.deepEqual(
    first.replies.map(({ rows }) => rows),
    [[['-1']]],
  );
  assert.equal(sqlState(first.failure?.error), '22012');
  assert.equal(second.failure, undefined);
  assert.deepEqual(
    second.replies.map(({ command, rows }) => [command, rows]),
    [
      ['SELECT', [['3']]],
      ['', []],
      ['SELECT', [[null]]],
    ],
  );
});

test('a prepared statement runs by its name, and two statements in one text are refused', async () => {
  await connection.prepare({ doubled: 'select 2 * $1::integer', greeting: "select 'hello'" });
  const { replies } = await connection.run([
    { prepared: 'doubled', values: ['21'] },
    { prepared: 'greeting' },
  ]);
  assert.deepEqual(
    replies.map(({ rows }) => rows[0]?.[0]),
    ['42', 'hello'],
  );
  const { failure } = await connection.run([{ prepared: 'nobody' }]);
  assert.equal(sqlState(failure?.error), '26000');
  await assert.rejects(
    connection.query('select 1; select 2'),
    (error) => sqlState(error) === '42601',
  );
  await assert.rejects(
    connection.prepare({ wrong: 'selec' }),
    (error) => sqlState(error) === '42601',
  );
});

test('copying is refused, and the session goes on', async () => {
  await connection.query('create table copied (a integer)');
  await assert.rejects(
    connection.query('copy copied from stdin'),
    (error) => sqlState(error) === '57014',
  );
  assert.deepEqual((await connection.query('select count(*) from copied')).rows, [['0']]);
});

test('a session is cut if a message has no answer in time, and only then', async () => {
  await using other = await Connection.open(database.url(), 'test', 500);
  for (const _ of Array.from({ length: 8 })) await other.query('select pg_sleep(0.1)');
  const quick = other.run([{ text: 'select 1' }]);
  const slow = other.run([{ text: 'select pg_sleep(60)' }]);
  const behind = other.run([{ text: 'select 1' }]);
  assert.equal((await quick).failure, undefined);
  assert.match(String((await slow).failure?.error), /timeout/);
  assert.ok((await behind).failure !== undefined);
  assert.equal(other.isAlive, false);
});

test('whoever waits for an answer hears that the connection is lost', async () => {
  const other = await Connection.open(database.url(), 'test');
  const asked = other.run([{ text: 'select pg_sleep(60)' }]);
  other.destroy();
  assert.ok((await asked).failure !== undefined);
  assert.ok((await other.run([{ text: 'select 1' }])).failure !== undefined);
  assert.equal(other.isAlive, false);
});
