// Goal: on MariaDB, too, a committed change returns generated values and rows, what cannot succeed is
// refused early, locks of others spend no license, and rehearsals follow foreign keys. Method: a real
// server; outside sessions hold rows; sixteen writers change the same rows in opposite orders.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { between, generated, insert, remove, to, update } from '../../../src/index.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { openMariadbOffice } from '../../mysql/office.ts';
import { startServer } from '../../mysql/server.ts';

const SHOP = `
  create table customer (id int primary key);
  create table invoice (
    id bigint auto_increment primary key, customer int not null, total decimal(10, 2) not null,
    constraint invoice_customer foreign key (customer) references customer (id)
  ) auto_increment = 413;
  create table line (
    invoice bigint not null, number int not null, quantity int not null, primary key (invoice, number),
    constraint line_invoice foreign key (invoice) references invoice (id)
  );
  create table log (id int auto_increment primary key, about int not null);
  insert into customer values (1)`;
const openShop = () =>
  openMariadbOffice(SHOP, { relations: ['customer', 'invoice', 'line', 'log'] });

const BANK = `create table account (id int primary key, balance int not null);
  insert into account values (1, 0), (2, 0)`;
const openBank = () =>
  openMariadbOffice(BANK, { relations: ['account'], lockTimeoutMs: 1000, reads: [] });

const add = (id: number) => ({ sql: `update account set balance = balance + 1 where id = ${id}` });
const ANYTHING = [1, 2].map((id) =>
  update('account', { id }, { balance: [between(0, 1000), between(0, 1000)] }),
);

describe('MariaDB', { skip: skipWithoutMariadb() }, () => {
  test('generated values, RETURNING, last_insert_id() and rows come back as plain data', async () => {
    await using shop = await openShop();
    const effects = [
      insert('invoice', { id: generated('invoice'), customer: 1, total: 9.5 }),
      insert('line', { invoice: generated('invoice'), number: 1, quantity: 2 }),
    ];
    const returning = 'insert into invoice (customer, total) values (1, ?) returning id, total';
    const action = {
      statements: [
        { sql: returning, values: [9.5] },
        { sql: 'insert into line values (last_insert_id(), 1, 2)' },
        {
          sql: `select last_insert_id() as id, 0.5e0 as half, 9007199254740993 as large,
            null as absent, date '2026-01-02' as day, x'00ff' as bytes`,
        },
      ],
    };
    const committed = await shop.run(effects, action);
    assert.equal(committed.kind, 'committed', JSON.stringify(committed));
    assert.deepEqual(committed.kind === 'committed' && committed.generated, { invoice: 413 });
    const last = { id: 413, half: 0.5, large: '9007199254740993', absent: null };
    assert.deepEqual(committed.results, [
      { rows: [{ id: 413, total: '9.50' }], omitted: 0 },
      { rows: [], omitted: 0 },
      { rows: [{ ...last, day: '2026-01-02', bytes: '\\x00ff' }], omitted: 0 },
    ]);
    const rejected = await shop.run(effects, { sql: 'select id from invoice' });
    assert.equal(rejected.kind, 'rejected');
    assert.ok(!('results' in rejected));
  });

  test('many identifiers of one statement are generated, and chosen ones among them are not', async () => {
    await using shop = await openShop();
    const effects = Array.from({ length: 3000 }, (_, at) =>
      insert('log', { id: generated(`log ${at}`), about: at }),
    );
    const values = effects.map((_, at) => `(${at})`).join(', ');
    const sql = `insert into log (about) values ${values}`;
    const many = await shop.run(effects, { sql });
    assert.equal(many.kind, 'committed', JSON.stringify(many).slice(0, 500));
    const two = [0, 1].map((at) => insert('log', { id: generated(`id ${at}`), about: at }));
    const chosen = { sql: 'insert into log values (default, 0), (3600, 1)' };
    const refused = await shop.run(two, chosen);
    assert.equal(refused.kind === 'rejected' && refused.outcome?.kind, 'DIVERGED');
  });

  test('an outcome that the rows rule out is refused before it is signed', async () => {
    await using bank = await openBank();
    for (const effect of [
      update('account', { id: 1 }, { balance: [7, 8] }),
      update('account', { id: 3 }, { balance: to(8) }),
      update('account', { id: 1 }, { balance: to(0) }),
      insert('account', { id: 2, balance: 5 }),
      remove('account', { id: 9 }),
    ])
      await assert.rejects(bank.approve([effect]), { code: 'ERR_EM_OUTCOME_IMPOSSIBLE' });
    await bank.approve([update('account', { id: 1 }, { balance: [0, 8] })]);
    const set = { 'app.actor': 'clerk' };
    const task = { adapter: 'db', task: 'settings', planRevision: 1, effects: ANYTHING, set };
    await assert.rejects(bank.runtime.prepare(task), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message: /has no session settings, so app\.actor cannot be set/,
    });
  });

  test('a row that another session holds, and deadlocks, do not spend a license', async () => {
    await using bank = await openBank();
    await using outsider = await createConnection(bank.db.url());
    await outsider.beginTransaction();
    await outsider.query('update account set balance = 5 where id = 1');
    const license = await bank.approve(ANYTHING);
    const executing = bank.runtime.execute(license, { statements: [add(1), add(2)] });
    await sleep(2500); // longer than an operation waits for a row
    await outsider.commit();
    const terminal = await executing;
    assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
    assert.ok(terminal.tries?.some(({ reason }) => reason === 'busy'));

    await outsider.beginTransaction();
    await outsider.query('update account set balance = 0');
    const licenses: unknown[] = [];
    for (let writer = 0; writer < 16; writer += 1) licenses.push(await bank.approve(ANYTHING));
    const orders = [
      [add(1), add(2)],
      [add(2), add(1)],
    ] as const;
    const writing = licenses.map((one, writer) =>
      bank.runtime.execute(one, { statements: orders[writer % 2] }),
    );
    await sleep(500);
    await outsider.commit();
    const terminals = await Promise.all(writing);
    for (const end of terminals) assert.equal(end.kind, 'committed', JSON.stringify(end));
    const tries = terminals.flatMap((end) => ('tries' in end ? (end.tries ?? []) : []));
    assert.ok(
      tries.some(({ reason }) => reason === 'deadlock'),
      JSON.stringify(tries),
    );
    const rows = await bank.db.run('select balance from account order by id');
    assert.deepEqual(rows, [{ balance: 16 }, { balance: 16 }]);
  });

  test('a query reads within bounds and cannot do anything else', async () => {
    await using bank = await openMariadbOffice(BANK, { relations: ['account'] });
    await bank.db.run('insert into account select seq, 1 from seq_10_to_40');
    const before = await bank.db.run('select * from account order by id');
    const ask = async (sql: string, values: readonly unknown[] = []) =>
      await bank.runtime.query({ adapter: 'db', action: { sql, values } });
    const some = await ask('select id, balance from account where id > ? order by id', [38]);
    const expected = [39, 40].map((id) => ({ id, balance: 1 }));
    assert.deepEqual(some, { rows: expected, more: false });
    const all = 'account a join account b join account c join account d';
    const many = await ask(`select 1 as n from ${all}`);
    assert.equal(many.more, true);
    const stated = await ask(`select 1 as n from ${all} limit 100000`);
    assert.deepEqual([stated.rows.length, stated.more], [many.rows.length, true]);
    for (const sql of [
      'update account set balance = 0',
      'delete from account returning id',
      'insert into account values (99, 1)',
      'set @x = 1',
      'commit',
      'start transaction read write',
      'select * from nowhere',
      'select 1; select 2',
    ])
      await assert.rejects(ask(sql), { code: 'ERR_EM_QUERY_REFUSED' }, sql);
    const slow = { adapter: 'db', action: { sql: 'select sleep(60)' }, timeoutMs: 200 };
    await assert.rejects(bank.runtime.query(slow), { code: 'ERR_EM_QUERY_REFUSED' });
    assert.deepEqual(await bank.db.run('select * from account order by id'), before);
    assert.deepEqual((await ask('select count(*) as n from account')).rows, [{ n: before.length }]);
  });

  test('a server whose connections are all in use does not spend a license', async () => {
    await using server = await startServer({ 'max-connections': '10' });
    const settings = { relations: ['account'] };
    await using bank = await openMariadbOffice(BANK, settings, await server.createDatabase());
    const ids = Array.from({ length: 16 }, (_, index) => 10 + index);
    const licenses = new Map<number, unknown>();
    for (const id of ids)
      licenses.set(id, await bank.approve([insert('account', { id, balance: 1 })]));
    const executing = ids.map((id) =>
      bank.runtime.execute(licenses.get(id), { sql: `insert into account values (${id}, 1)` }),
    );
    const ends = await Promise.all(executing);
    assert.deepEqual(
      ends.map(({ kind }) => kind),
      ids.map(() => 'committed'),
      JSON.stringify(ends.find(({ kind }) => kind !== 'committed')),
    );
  });

  test('a rehearsal follows declared references, and leaves equal numbers alone', async () => {
    await using shop = await openShop();
    await shop.db.run('insert into customer values (413)');
    const { proposal, terminal } = await shop.planned({
      statements: [
        { sql: 'insert into invoice (customer, total) values (413, 413)' },
        { sql: 'insert into line select max(id), 413, 413 from invoice' },
      ],
    });
    const { effects } = proposal.approved;
    const made = effects.find(({ target }) => target === 'invoice');
    assert.deepEqual(made?.after?.customer, { is: 413 });
    const line = effects.find(({ target }) => target === 'line');
    const invoice = { generated: 'new invoice.id 1' };
    assert.deepEqual(line?.key, { invoice, number: { is: 413 } });
    assert.deepEqual(line?.after, { quantity: { is: 413 } });
    assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
  });
});
