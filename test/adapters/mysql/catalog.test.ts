// Goal: the catalogue is read exactly: which column is nullable, assigned or computed, its default,
// and the key in its own order. Method: a table on a real server that has one of each.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRelations } from '../../../src/adapters/mysql/catalog.ts';
import { MysqlConnection } from '../../../src/adapters/mysql/connection.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { freshDatabase } from '../../mysql/server.ts';

const TABLE = `create table t (
  n int not null default 3, s varchar(9) character set latin1 null, id int auto_increment,
  b varbinary(4) not null, twice int as (n * 2) virtual, at datetime default current_timestamp,
  primary key (id, n)
) auto_increment = 77`;

describe('MariaDB: catalogue', { skip: skipWithoutMariadb() }, () => {
  test('of a table is read with each column, its default and its key', async () => {
    await using db = await freshDatabase();
    await db.run(TABLE);
    await using connection = await MysqlConnection.open(db.url(), 30_000);
    const [report] = await readRelations(connection, db.name, ['t']);
    assert.ok(report?.kind === 'usable');
    const { columns, key, computed, text } = report.relation;
    assert.deepEqual([key, computed], [['id', 'n'], ['twice']]);
    assert.doesNotMatch(text, /77/);
    const plain = { isNullable: false, defaultText: null, isAssigned: false };
    const latin = 'varchar(9) character set latin1 collate latin1_swedish_ci';
    assert.deepEqual(columns, [
      { ...plain, name: 'n', kind: 'integer', definition: 'int(11)', defaultText: '3' },
      {
        ...{ name: 's', kind: 'text', definition: latin, isNullable: true },
        ...{ defaultText: 'NULL', isAssigned: false },
      },
      { ...plain, name: 'id', kind: 'integer', definition: 'int(11)', isAssigned: true },
      { ...plain, name: 'b', kind: 'bytes', definition: 'varbinary(4)' },
      {
        ...{ name: 'at', kind: 'datetime', definition: 'datetime', isNullable: true },
        ...{ defaultText: 'current_timestamp()', isAssigned: false },
      },
    ]);
  });

  test('names tables as they are spelled, in the order of the question, and suggests a similar one', async () => {
    await using db = await freshDatabase();
    await db.run(
      'create table first (id int primary key); create table second (n int primary key)',
    );
    await using connection = await MysqlConnection.open(db.url(), 30_000);
    const names = ['second', 'First', 'first'];
    const reports = await readRelations(connection, db.name, names);
    assert.deepEqual(
      reports.map((report) => (report.kind === 'usable' ? report.relation.key : report.why)),
      [['n'], 'there is no such table (did you mean "first"?)', ['id']],
    );
  });
});
