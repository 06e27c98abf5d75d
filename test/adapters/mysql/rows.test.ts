// Goal: a row that cannot be read whole is an error, never a part of it, and so is a table that may
// not be read. Method: a row that is longer than the server's packets, on a real server.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readState } from '../../../src/adapters/mysql/reading.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { openInside } from './inside.ts';

test('MariaDB: a table that is not among the relations cannot be read', async () => {
  const reading = readState(undefined as never, new Map(), [{ target: 't', key: { id: 1 } }]);
  await assert.rejects(reading, /^Error: "t" cannot be read$/);
});

describe('MariaDB: reading', { skip: skipWithoutMariadb() }, () => {
  test('returns rows in the order of the question, of several tables, with NULL, or that there is none', async () => {
    await using place = await protectedMariadb(
      `create table a (id int, part int, v int null, primary key (part, id));
        create table b (id varchar(9) collate utf8mb4_general_ci primary key, v int);
        insert into a values (1, 2, null), (2, 1, 12); insert into b values ('x', 3)`,
      { relations: ['a', 'b'] },
    );
    const inside = await openInside(place);
    const connection = await inside.control.connection();
    const source = { connection, database: place.db.name };
    const reads = [
      { target: 'b', key: { id: 'x' } },
      { target: 'a', key: { id: 2, part: 1 }, columns: ['v'] },
      { target: 'b', key: { id: 'X' } },
      { target: 'a', key: { id: 1, part: 2 } },
      { target: 'a', key: { id: 1, part: 1 } },
    ];
    const readings = await readState(source, inside.relations, reads);
    assert.deepEqual(
      readings.map(({ row }) => row),
      [{ id: 'x', v: 3 }, { v: 12 }, null, { id: 1, part: 2, v: null }, null],
    );
    assert.deepEqual(
      readings.map(({ target, key }) => ({ target, key })),
      reads.map(({ target, key }) => ({ target, key })),
    );
    await inside.close();
  });

  test('fails at a row that is longer than the server sends', async () => {
    await using place = await protectedMariadb(
      `create table t (id int primary key, a longtext, b longtext);
        insert into t values (1, repeat('a', 9000000), repeat('b', 9000000)), (2, 'a', 'b'), (3, repeat('a', 16777210), 'b'),
        (4, null, 'b')`,
      { relations: ['t'] },
    );
    const inside = await openInside(place);
    const connection = await inside.control.connection();
    const read = (id: number) =>
      readState({ connection, database: place.db.name }, inside.relations, [
        { target: 't', key: { id } },
      ]);
    await assert.rejects(read(1), /a row of "t" is too long to be read/);
    await assert.rejects(read(3), /a row of "t" is too long to be read/, 'and is not NULL');
    assert.deepEqual((await read(4))[0]?.row, { id: 4, a: null, b: 'b' });
    assert.deepEqual((await read(2))[0]?.row, { id: 2, a: 'a', b: 'b' });
    await inside.close();
  });
});
