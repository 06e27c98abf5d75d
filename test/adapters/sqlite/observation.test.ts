// Goal: what a stage reports is what its action did to the rows, and what it cannot tell it does
// not pass off as known. Method: the same statements run on a plain copy of the file, whose rows
// before and after are the oracle.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  change,
  copyOf,
  dump,
  freshFile,
  freshOccurrence,
  gapsOf,
  held,
  open,
  promote,
} from './database.ts';
import { describe, difference, type Photo, photograph } from './oracle.ts';

const SCHEMA = `
  create table customer (id integer primary key, email text not null unique, note);
  create table orders (id integer primary key autoincrement, customer integer references customer (id)
    on delete cascade on update cascade, total numeric default 0, state text not null default 'new');
  create table line (orders integer not null references orders (id) on delete cascade, pos integer not null,
    item text collate nocase, price real, loose, primary key (orders, pos)) without rowid;
  create table tally (name text primary key not null collate nocase, n);
  create table bag (k not null primary key, v);
  create index by_note on customer (lower(note)) where note is not null;
  create unique index one_big on orders (customer, coalesce(total, 0)) where state like '%!!';
  create view open_orders as select id, customer from orders where state = 'new';
  create trigger counted after insert on orders begin
    insert into tally (name, n) values ('orders', 1) on conflict (name) do update set n = n + 1; end;
  create trigger closed instead of delete on open_orders begin update orders set state = 'closed' where id = old.id; end;
  create trigger rekeyed after update of v on bag when new.v = 'rename' begin update bag set k = 9 where k = new.k; end;
  insert into customer values (1, 'ann@x', null), (2, 'bob@x', 0.0), (3, 'cid@x', x'00');
  insert into orders (customer, total) values (1, 10), (1, '12.50'), (2, 'n/a');
  insert into line values (1, 1, 'Tea', 2, 0.0), (1, 2, 'cup', 3.5, '0'), (2, 1, 'pot', 0, -0.0);
  insert into bag values (1, 0.0), ('a', -0.0), (0.0, 1);
`;
const TABLES = {
  customer: { columns: ['id', 'email', 'note'], key: ['id'] },
  orders: { columns: ['id', 'customer', 'total', 'state'], key: ['id'] },
  line: { columns: ['orders', 'pos', 'item', 'price', 'loose'], key: ['orders', 'pos'] },
  tally: { columns: ['name', 'n'], key: ['name'] },
  bag: { columns: ['k', 'v'], key: ['k'] },
} as const;
const RELATIONS = Object.keys(TABLES);

const value = fc.constantFrom(
  'null',
  '0',
  '0.0',
  '-0.0',
  '1',
  '1.0',
  '2',
  "'a'",
  "'A'",
  "'1'",
  "x'61'",
  '1e20',
  '9007199254740993',
);
const small = fc.constantFrom('1', '2', '3', '4');
const name = fc.constantFrom("'orders'", "'ORDERS'", "'other'");
const statement = fc.oneof(
  fc.tuple(small, value).map(([id, v]) => `update customer set note = ${v} where id = ${id}`),
  fc
    .tuple(small, small)
    .map(([a, b]) => `update or ignore customer set id = ${a} + 3 where id = ${b}`),
  fc
    .tuple(small, value)
    .map(([id, v]) => `replace into customer values (${id}, 'new' || ${id}, ${v})`),
  fc
    .tuple(small, value)
    .map(
      ([id, v]) =>
        `insert into customer values (${id}, 'e', ${v}) on conflict do update set note = excluded.note`,
    ),
  small.map((id) => `delete from customer where id = ${id}`),
  fc
    .tuple(small, value)
    .map(
      ([id, v]) =>
        `insert or ignore into orders (customer, total) select id, ${v} from customer where id <= ${id}`,
    ),
  fc
    .tuple(small, value)
    .map(([id, v]) => `update orders set total = ${v}, state = state || '!' where id >= ${id}`),
  small.map((id) => `delete from open_orders where id = ${id}`),
  fc
    .tuple(small, small, value)
    .map(
      ([o, p, v]) =>
        `insert or replace into line select id, ${p}, 'x', ${v}, ${v} from orders where id = ${o}`,
    ),
  fc
    .tuple(small, value)
    .map(([p, v]) => `update line set loose = ${v}, price = ${v} where pos = ${p}`),
  fc.tuple(name, name).map(([a, b]) => `update or ignore tally set name = ${a} where name = ${b}`),
  fc.tuple(name, value).map(([a, v]) => `replace into tally values (${a}, ${v})`),
  fc
    .tuple(value, value)
    .map(([k, v]) => `insert or replace into bag values (coalesce(${k}, 5), ${v})`),
  fc.tuple(value, value).map(([k, v]) => `update or ignore bag set v = ${v} where k = ${k}`),
  fc
    .tuple(value, value)
    .map(([k, l]) => `update or ignore bag set k = coalesce(${k}, 6) where k = ${l}`),
  fc.constantFrom(
    "update bag set v = 'rename' where k = 'a'",
    'delete from line',
    'delete from bag',
    'delete from tally',
  ),
);
/** Two changes that chance may not find: the sign of a zero, which comparing values cannot see. */
const TURNED_ZEROS = [
  'update customer set note = -0.0 where id = 2',
  "update bag set v = 0.0 where k = 'a'",
];

test('property: a complete observation is the difference between before and after; incomplete is nothing durable', async () => {
  const counts = { complete: 0, turned: 0, sequence: 0, records: 0 };
  const template = freshFile(`pragma journal_mode = wal; ${SCHEMA}`);
  change(template, 'pragma wal_checkpoint(truncate)');
  await (await open({ file: template, relations: RELATIONS })).close();
  await fc.assert(
    fc.asyncProperty(fc.array(statement, { minLength: 1, maxLength: 6 }), async (statements) => {
      const file = copyOf(template);
      const plain = copyOf(template);
      const before = rowsOf(plain);
      const steps = runPlainly(plain, statements);
      await using adapter = await open({ file, relations: RELATIONS });
      if (steps === undefined) return;
      const occurrence = freshOccurrence();
      const action = { statements: statements.map((sql) => ({ sql })) };
      await using candidate = await held(adapter, action, occurrence);
      const evidence = await candidate.observe();
      const gaps = gapsOf(adapter, evidence);
      const expected = difference(TABLES, before, rowsOf(plain));
      if (gaps.length === 0) {
        counts.complete += 1;
        counts.records += evidence.records.length;
        assert.deepEqual(describe(TABLES, [...evidence.records]), expected);
        assert.equal((await promote(candidate, occurrence)).kind, 'confirmed');
        assert.equal(
          businessDump(file),
          businessDump(plain),
          'what became durable is what a plain run leaves',
        );
      } else {
        const sequence = gaps.some((gap) => gap.includes('"sequence"'));
        const unclear = gaps.some((gap) => /changed only its sign/.test(gap));
        assert.ok(sequence || unclear, gaps.join());
        // "Unclear" must have a reason that the oracle sees too, in one of the steps if they cancel
        // out.
        const lines = [before, ...steps.slice(0, -1)].map((from, index) =>
          difference(TABLES, from, steps[index] ?? from),
        );
        assert.ok(
          !unclear || lines.some(mayTurnZero),
          `${gaps.join()} without cause: ${lines.flat().join('\n')}`,
        );
        if (sequence) counts.sequence += 1;
        else counts.turned += 1;
        await candidate.discard();
      }
    }),
    { numRuns: 150, examples: TURNED_ZEROS.map((sql) => [[sql]]) },
  );
  assert.ok(counts.complete > 30 && counts.records > 50, JSON.stringify(counts));
  assert.ok(counts.turned > 1, JSON.stringify(counts));
});

function rowsOf(file: string): Photo {
  using db = new DatabaseSync(file, { readOnly: true });
  return photograph(db, TABLES);
}

/** The rows after each statement, in one transaction; undefined where that fails. */
function runPlainly(file: string, statements: readonly string[]): readonly Photo[] | undefined {
  using db = new DatabaseSync(file);
  db.exec('begin');
  try {
    const steps = statements.map((sql) => {
      db.exec(sql);
      return photograph(db, TABLES);
    });
    db.exec('commit');
    return steps;
  } catch {
    return undefined;
  }
}

/**
 * Whether a zero may only have changed its sign, also in the key of a row that was inserted and
 * changed in one action.
 */
function mayTurnZero(lines: readonly string[]): boolean {
  return lines.some((line) => /"real [08]0{15}"/.test(line) || line.includes('"bag '));
}

/** The whole file without what the adapter keeps in it for itself. */
function businessDump(file: string): string {
  return dump(file)
    .split('\n')
    .filter((line) => !line.includes('effectmatch_'))
    .join('\n');
}
