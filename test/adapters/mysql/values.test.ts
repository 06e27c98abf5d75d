// Goal: what is signed, stored and observed of a value agrees on MariaDB, for every type that can be
// registered, and a value that is almost the same is a different one. Method: rows are approved in
// plain JavaScript and written as SQL, through a runtime on a real server.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  approver,
  createRuntime,
  generateApprover,
  generated,
  insert,
  now,
  real,
  type Terminal,
  update,
} from '../../../src/index.ts';
import type { ManifestDraft } from '../../../src/protocol/draft.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';

const KEY = generateApprover('approver');

/** Opens a runtime on a table and returns what approves effects and executes SQL. */
async function openTable(columns: string, settings: { values?: 'digest' } = {}) {
  const place = await protectedMariadb(
    `create table t (id int auto_increment primary key, ${columns}) character set utf8mb4`,
    { relations: ['t'], ...settings },
  );
  const runtime = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
    adapters: { db: place.factory() },
  });
  const approve = async (effects: ManifestDraft['effects']) => {
    const task = { adapter: 'db', task: 'values', planRevision: 1, effects };
    return approver(KEY).sign(await runtime.prepare(task), { expiresIn: '10m' });
  };
  const execute = async (effects: ManifestDraft['effects'], action: unknown): Promise<Terminal> =>
    await runtime.execute(await approve(effects), action);
  const close = async () => {
    await runtime.close();
    await place.db.drop();
  };
  return { place, approve, execute, runtime, [Symbol.asyncDispose]: close };
}

/** A type, what an approver states, how SQL writes the same, and SQL for a value that is not it. */
const AGREE: readonly (readonly [type: string, stated: unknown, same: string, other: string])[] = [
  ['tinyint', -128, '-128', '-127'],
  ['bigint unsigned', 18_446_744_073_709_551_615n, '18446744073709551615', '18446744073709551614'],
  ['bigint', -9_223_372_036_854_775_808n, '-9223372036854775808', '-9223372036854775807'],
  ['int(5) unsigned zerofill', 7, '7', '70'],
  ['decimal(10,2)', 35, '35.00', '35.01'],
  ['decimal(10,2)', '35.5', "'35.50'", '35.49'],
  [
    'decimal(30,10)',
    '12345678901234567890.0123456789',
    '12345678901234567890.0123456789',
    '12345678901234567890.0123456788',
  ],
  ['decimal(6,0) unsigned zerofill', 100, '100', '10'],
  ['float', real(0.1), '0.1', '0.10000001'],
  ['double', real(0.1), '0.1', '0.10000000000000002'],
  ['double(10,2)', real(0.25), '0.25', '0.26'],
  ['bit(1)', true, "b'1'", "b'0'"],
  ['bit(64)', 18_446_744_073_709_551_615n, "x'ffffffffffffffff'", "x'fffffffffffffffe'"],
  ["enum('small','Large')", 'Large', "'large'", "'small'"],
  ["set('a','b','c')", 'a,c', "'c,a'", "'a'"],
  ['year', 2024, '2024', '2023'],
  ['date', '2024-02-29', "'2024-02-29'", "'2024-02-28'"],
  ['date', '0000-00-00', "'0000-00-00'", "'2000-01-01'"],
  ['time(3)', '-12:34:56.789', "'-12:34:56.789'", "'12:34:56.789'"],
  ['datetime', '2024-02-29 01:02:03', "'2024-02-29 01:02:03'", "'2024-02-29 01:02:04'"],
  [
    'datetime(6)',
    '2024-02-29T01:02:03.000001',
    "'2024-02-29 01:02:03.000001'",
    "'2024-02-29 01:02:03.000002'",
  ],
  [
    'timestamp(3) null',
    '2024-02-29T01:02:03.456+00:00',
    "'2024-02-29 01:02:03.456'",
    "'2024-02-29 02:02:03.456'",
  ],
  ['timestamp null', '0000-00-00T00:00:00+00:00', '0', "'1970-01-01 00:00:01'"],
  ['datetime null', '0000-00-00T00:00:00', '0', "'1970-01-01 00:00:01'"],
  ['char(10)', 'ab', "'ab   '", "'ab c'"],
  ['varchar(20)', 'a\u{1f600}\u200b', "'a\u{1f600}\u200b'", "'a\u{1f600}'"],
  ['varchar(20)', 'STRASSE', "'STRASSE'", "'strasse'"],
  ['varchar(20)', 'a', "'a'", "'a '"],
  ['varchar(20) character set latin1', 'caf\u00e9', "'caf\u00e9'", "'cafe'"],
  ['text', 'line\nline', "'line\nline'", "'line\r\nline'"],
  ['varbinary(8)', Buffer.from('00ff', 'hex'), "x'00ff'", "x'00ff00'"],
  ['binary(4)', Buffer.from('01000000', 'hex'), "x'01'", "x'02'"],
  ['longblob', Buffer.alloc(70_000, 7), "repeat(x'07', 70000)", "repeat(x'07', 70001)"],
  ['json', '{"b": 1, "a": 2}', `'{"b": 1, "a": 2}'`, `'{"a": 2, "b": 1}'`],
  [
    'uuid',
    '123e4567-e89b-12d3-a456-426614174000',
    "'123E4567-E89B-12D3-A456-426614174000'",
    "'123e4567-e89b-12d3-a456-426614174001'",
  ],
  ['inet6', '::1', "'0:0:0:0:0:0:0:1'", "'::2'"],
  ['int null', null, 'null', '0'],
  ["varchar(5) null default 'x'", null, 'null', 'default'],
];

describe('MariaDB: values', { skip: skipWithoutMariadb() }, () => {
  test('of every type, the approved value is the stored one, and its neighbour is not', async () => {
    const columns = AGREE.map(([type], index) => `c${index} ${type}`);
    const nullable = columns.map((column) =>
      column.replace(/^(c\d+ (?!.*\bnull\b).*)$/, '$1 null'),
    );
    await using table = await openTable(nullable.join(', '));
    const { execute, place } = table;
    for (const [index, [type, stated, same, other]] of AGREE.entries()) {
      const name = `c${index}`;
      const rest = Object.fromEntries(AGREE.map((_, at) => [`c${at}`, null]));
      const row = { ...rest, id: generated('new'), [name]: stated };
      const run = (sql: string) => {
        const names = AGREE.map((_, at) => `c${at}`);
        const values = names.map((one) => (one === name ? sql : 'null'));
        const text = `insert into t (${names.join(', ')}) values (${values.join(', ')})`;
        return execute([insert('t', row as never)], { sql: text });
      };
      const rejected = await run(other);
      assert.equal(rejected.kind === 'rejected' && rejected.at, 'comparison', `${type} ${other}`);
      const committed = await run(same);
      assert.equal(committed.kind, 'committed', `${type} ${same} ${JSON.stringify(committed)}`);
    }
    const [count] = await place.db.run('select count(*) as n from t');
    assert.equal(count?.n, AGREE.length);
  });

  test('values of parameters arrive exactly', async () => {
    await using table = await openTable(
      'b bigint unsigned, d decimal(30,10), f double, s varchar(40), x varbinary(8), n int',
    );
    const { execute, place } = table;
    const row = {
      ...{ id: generated('new'), b: 18_446_744_073_709_551_615n, d: '0.1000000001', f: real(1e-7) },
      ...{ s: "'; commit -- \u{1f600}", x: Buffer.from('00ff', 'hex'), n: null },
    };
    const terminal = await execute([insert('t', row)], {
      sql: 'insert into t (b, d, f, s, x, n) values (?, ?, ?, ?, ?, ?)',
      values: [row.b, { $dec: '0.1000000001' }, 1e-7, row.s, row.x, null],
    });
    assert.equal(terminal.kind, 'committed');
    const [stored] = await place.db.run('select b, d, hex(x) as x, s from t');
    assert.deepEqual(stored, {
      ...{ b: '18446744073709551615', d: '0.1000000001', x: '00FF', s: row.s },
    });
  });

  test('defaults are filled in, the clock is compared, and generated columns are left out', async () => {
    await using table = await openTable(
      `status varchar(10) not null default 'new', at timestamp not null default current_timestamp,
        n int not null default 3, twice int as (n * 2) virtual`,
    );
    const { execute } = table;
    const row = { id: generated('new'), at: now({ within: '5s' }) };
    const committed = await execute([insert('t', row)], { sql: 'insert into t () values ()' });
    assert.equal(committed.kind, 'committed', JSON.stringify(committed));
    const late = { sql: "insert into t (at) values ('2001-01-01 00:00:00')" };
    assert.equal((await execute([insert('t', row)], late)).kind, 'rejected');
  });

  test('a counter that a rejected or failed attempt moved is reported', async () => {
    await using table = await openTable('v int unique');
    const { execute } = table;
    const effects = [insert('t', { id: generated('new'), v: 1 })];
    const rejected = await execute(effects, { sql: 'insert into t (v) values (2)' });
    const residue = { kind: 'sequence', name: 't.id' };
    assert.deepEqual(rejected.kind === 'rejected' && rejected.residue, [
      { ...residue, from: null, to: '1' },
    ]);
    const failed = await execute(effects, { sql: 'insert into t (v) values (3), (3)' });
    assert.equal(failed.kind === 'rejected' && failed.at, 'stage');
    assert.deepEqual(failed.kind === 'rejected' && failed.residue, [
      { ...residue, from: '1', to: '3' },
    ]);
    const task = await table.runtime.open(await table.approve(effects));
    assert.ok(task.kind === 'open');
    assert.equal((await task.call({ sql: 'insert into t (v) values (1)' })).kind, 'done');
    const discarded = await task.discard();
    assert.deepEqual(discarded.kind === 'rejected' && discarded.residue, [
      { ...residue, from: '3', to: '4' },
    ]);
  });

  test('values that a column does not take are refused when they are approved', async () => {
    await using table = await openTable(
      "n tinyint unsigned, s varchar(3), d date, e enum('a','b'), j blob",
    );
    const { runtime } = table;
    const wrong = [
      { n: 256 },
      { n: -1 },
      { n: 'x' },
      { s: 'long' },
      { d: '2024-13-01' },
      { e: 'c' },
    ];
    for (const row of wrong) {
      const effects = [update('t', { id: 1 }, row as never)];
      const task = { adapter: 'db', task: 'values', planRevision: 1, effects };
      await assert.rejects(runtime.prepare(task), { code: 'ERR_EM_MANIFEST_INVALID' });
    }
  });

  test('a statement under another time zone, mode or character set cannot be submitted', async () => {
    await using table = await openTable('at timestamp null');
    const { execute } = table;
    const row = { id: generated('new'), at: '2024-01-01T00:00:00+00:00' };
    const sql = "set time_zone = '+05:00'";
    const terminal = await execute([insert('t', row)], { statements: [{ sql }] });
    assert.equal(terminal.kind === 'rejected' && terminal.reason, 'denied');
  });

  test('where values are private, a failure does not quote them', async () => {
    await using table = await openTable('s varchar(3) unique', { values: 'digest' });
    const { execute } = table;
    const terminal = await execute([insert('t', { id: generated('new'), s: 'xyz' })], {
      sql: "insert into t (s) values ('xyz'), ('xyz')",
    });
    assert.equal(terminal.kind === 'rejected' && terminal.reason, 'constraint');
    assert.ok(!JSON.stringify(terminal).includes('xyz'));
  });
});
