// Goal: what the MariaDB adapter observes is what really changed, for operations that were not
// written by hand. Method: 2,000 random operations on tables with triggers, cascades, upserts and changing
// keys; the oracle is the difference between a dump before and a dump inside the held branch. Rows that a
// cascade writes are never observed, so they must make the observation incomplete.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAction } from '../../../src/adapters/mysql/action.ts';
import { CHANNELS } from '../../../src/adapters/mysql/candidate.ts';
import { establish } from '../../../src/protocol/observation.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { readTag, type Value } from '../../../src/protocol/value.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { randomOf } from '../../random.ts';
import { openInside } from './inside.ts';

const SCHEMA = `
  create table a (
    id int auto_increment primary key, k varchar(10) collate utf8mb4_general_ci null unique,
    n decimal(8, 2) not null default 1.5, d datetime null, twice decimal(9, 2) as (n * 2) stored
  );
  create table b (x int, y varchar(5) collate utf8mb4_general_ci, v double null, primary key (x, y));
  create table log (id int auto_increment primary key, what varchar(60) not null);
  create table child (
    id int auto_increment primary key, k varchar(10) collate utf8mb4_general_ci null,
    constraint child_k foreign key (k) references a (k) on delete cascade on update cascade
  );
  create trigger a_before before insert on a for each row
    if new.n < 0 then set new.n = 0; end if;
  create trigger a_after after update on a for each row
    insert into log (what) values (concat('a ', old.id, ' to ', new.id));
  create trigger b_after after delete on b for each row update a set n = n + 1 where id = old.x;
  create trigger b_insert after insert on b for each row
    insert into a (k, n) values (concat('b', new.x), 2) on duplicate key update n = n + 10;
`;
const TABLES = { a: ['id'], b: ['x', 'y'], log: ['id'] } as const;
const COLUMNS = { a: ['id', 'k', 'n', 'd'], b: ['x', 'y', 'v'], log: ['id', 'what'] } as const;

type Pick = <T>(...choices: readonly T[]) => T;

function randomStatement(pick: Pick): string {
  const id = pick(1, 2, 3, 4, 5, 6, 7, 8);
  const other = pick(1, 2, 3, 9, 10);
  const k = pick("'p'", "'P'", "'q'", "'r'", 'null');
  const y = pick("'a'", "'A'", "'b'", "'c'");
  const n = pick('0', '-1', '2.345', '7.10', '99');
  return pick(
    `insert into a (k, n) values (${k}, ${n})`,
    `insert into a (id, k, n) values (${other}, ${k}, ${n}) on duplicate key update n = n + 1, k = null`,
    `replace into a (id, k, n, d) values (${id}, ${k}, ${n}, '2024-02-03 04:05:06')`,
    `replace into a (k, n) values (${k}, ${n})`,
    `update a set n = ${n} where id = ${id}`,
    `update a set n = n where id < ${id}`,
    `update a set id = id + 100 where id = ${id}`,
    `update a set k = upper(k) where id < ${id}`,
    `update a set d = '2024-01-01 00:00:00', n = n + 1 order by id limit 3`,
    `update ignore a set k = ${k} where id < ${id}`,
    `delete from a where id = ${id}`,
    `delete from a order by id desc limit 2`,
    `insert into b values (${id}, ${y}, ${n}) on duplicate key update v = v + 1`,
    `insert into b select id, ${y}, n from a where id < ${id}`,
    `replace into b values (${id}, ${y}, null)`,
    `update b set y = upper(y) where x = ${id}`,
    `update b set x = x + 50, v = ${n} where y = ${y}`,
    `delete from b where x = ${id}`,
    `delete b from b join a on a.id = b.x where a.n < ${n}`,
    `update a join b on a.id = b.x set a.n = ${n}, b.v = 1 where b.y = ${y}`,
    `insert ignore into a (id, k) values (${id}, ${k}), (${other}, ${k})`,
    `insert into log (what) select k from a where k is not null`,
    `with c as (select max(id) as m from a) delete from log where id > (select m from c)`,
  );
}

const STATE = (pick: Pick) => `
  delete from child; delete from log; delete from b; delete from a; delete from log;
  insert into a (id, k, n) values (1, 'p', 1), (2, 'q', 2), (3, null, 3), (4, 's', 4), (${pick(5, 6, 7)}, 'u', 5);
  insert into b values (1, 'a', 1), (2, 'b', ${pick('null', '2.5')}), (${pick(3, 4, 5)}, 'c', 3);
  insert into child (k) values ('s'), ('u'), (${pick("'q'", "'s'", 'null')});
`;

type Rows = ReadonlyMap<string, Readonly<Record<string, string | null>>>;

/** Which rows are different, by key: before and after as text. */
function difference(before: Rows, after: Rows): readonly string[] {
  const lines: string[] = [];
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(key), after.get(key)];
    if (JSON.stringify(was) === JSON.stringify(is)) continue;
    const both = Object.keys(was ?? is ?? {});
    const changed = both.filter((name) => !was || !is || was[name] !== is[name]);
    const keep = (row: typeof was) => row && Object.fromEntries(changed.map((c) => [c, row[c]]));
    lines.push(JSON.stringify([key, keep(was) ?? null, keep(is) ?? null]));
  }
  return lines.sort();
}

/** A value of the adapter as the dump prints it. */
function printed(column: string, value: Value | undefined): string | null {
  if (value === null || value === undefined) return null;
  const text = readTag(value)?.text ?? String(value);
  if (column === 'n') return Number(text).toFixed(2);
  return column === 'd' ? text.replace('T', ' ') : text;
}

describe('MariaDB: differential', { skip: skipWithoutMariadb() }, () => {
  test('2,000 random operations: the observation equals the difference of two dumps', async () => {
    await using place = await protectedMariadb(SCHEMA, {
      ...{ relations: ['a', 'b', 'log'], reads: ['child'] },
    });
    const inside = await openInside(place);
    const random = randomOf('MariaDB differential');
    const pick: Pick = (...choices) => random.pick(choices);
    const targets = Object.entries(TABLES).map(([name, key]) => ({
      ...{ name, key, columns: COLUMNS[name as keyof typeof COLUMNS], volatile: [] },
    }));
    const registration = { profile: 'net-state', values: 'plain', targets } as const;
    const counts = { complete: 0, incomplete: 0, cascaded: 0, failed: 0, changed: 0 };
    for (let run = 0; run < 2000; run += 1) {
      if (run % 40 === 0) await place.db.run(STATE(pick));
      const statements = Array.from({ length: pick(1, 1, 2, 3) }, () => ({
        sql: randomStatement(pick),
      }));
      const { candidate, session } = await inside.hold();
      await candidate.begin(`run-${run}` as OccurrenceId, []);
      const dumpAll = async (query: (sql: string) => Promise<readonly (readonly unknown[])[]>) => {
        const all = new Map<string, Record<string, string | null>>();
        for (const [table, key] of Object.entries(TABLES)) {
          const names = COLUMNS[table as keyof typeof COLUMNS];
          for (const cells of await query(`select ${names.join(', ')} from ${table}`)) {
            const row = Object.fromEntries(
              names.map((name, at) => [name, cells[at] === null ? null : String(cells[at])]),
            );
            all.set([table, ...key.map((name) => row[name])].join(' '), row);
          }
        }
        return all;
      };
      const control = await inside.control.connection();
      const before = await dumpAll((sql) => control.texts(sql));
      const children = async (connection: typeof control) =>
        JSON.stringify(await connection.texts('select id, k from child order by id'));
      const applied = await candidate.apply(parseAction({ statements }));
      if (applied.kind === 'failed') {
        counts.failed += 1;
        await candidate.end('discarded');
        continue;
      }
      const real = difference(before, await dumpAll((sql) => session.texts(sql)));
      const isCascaded = (await children(control)) !== (await children(session));
      const evidence = { candidate: candidate.id, window: { fromMs: 0, toMs: 0 } };
      const observed = establish(
        { ...evidence, ...(await candidate.observe()) },
        registration,
        CHANNELS,
      );
      await candidate.end('discarded');
      const text = JSON.stringify(statements);
      if (isCascaded) {
        counts.cascaded += 1;
        assert.equal(observed.kind, 'incomplete', text);
        continue;
      }
      if (observed.kind === 'incomplete') {
        counts.incomplete += 1;
        assert.match(text, /ignore/, `${text} ${observed.gaps.join(' ')}`);
        continue;
      }
      counts.complete += 1;
      if (real.length > 0) counts.changed += 1;
      const seen = observed.effects.map(({ target, key = {}, before: was, after: is }) => {
        const names = TABLES[target as keyof typeof TABLES];
        const id = [target, ...names.map((name) => printed(name, key[name]))].join(' ');
        const columns = COLUMNS[target as keyof typeof COLUMNS];
        const print = (row: typeof was) =>
          row &&
          Object.fromEntries(
            columns
              .filter((name) => name in row || (name in key && (!was || !is)))
              .map((name) => [name, printed(name, row[name] ?? key[name])]),
          );
        return JSON.stringify([id, print(was) ?? null, print(is) ?? null]);
      });
      assert.deepEqual(seen.sort(), real, text);
    }
    await inside.close();
    assert.ok(counts.complete > 1000 && counts.changed > 700, JSON.stringify(counts));
    assert.ok(counts.incomplete < 120 && counts.cascaded > 20, JSON.stringify(counts));
  });
});
