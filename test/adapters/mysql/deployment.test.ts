// Goal: a database is opened only as this release provisioned it, on the server version that was
// tested, and a lost connection is not taken for a wrong database. Method: real servers, one of which
// gives another version.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MysqlConnection } from '../../../src/adapters/mysql/connection.ts';
import { readDeployment } from '../../../src/adapters/mysql/deployment.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { startServer } from '../../mysql/server.ts';

const TABLE = 'create table t (id int primary key)';
const SETTINGS = { relations: ['t'] };

describe('MariaDB: deployment', { skip: skipWithoutMariadb() }, () => {
  test('of another release, without its row or without its table is refused', async () => {
    await using place = await protectedMariadb(TABLE, SETTINGS);
    await using connection = await MysqlConnection.open(place.db.url(), 30_000);
    const read = async () => await readDeployment(connection, place.control);
    const [stored] = await place.db.run(`select backend from ${place.control}.deployment`);
    assert.equal((await read()).backend, stored?.backend);
    const refused = (message: RegExp) =>
      assert.rejects(read(), { code: 'ERR_EM_ADAPTER_REFUSED', message });
    await place.db.run(`update ${place.control}.deployment set version = version + 1`);
    await refused(/different release; provision it again/);
    await place.db.run(`delete from ${place.control}.deployment`);
    await refused(/different release; provision it again/);
    await place.db.run(`drop table ${place.control}.deployment`);
    await refused(/not provisioned/);
  });

  test('that cannot be read because the connection is lost is not refused', async () => {
    await using place = await protectedMariadb(TABLE, SETTINGS);
    const connection = await MysqlConnection.open(place.db.url(), 30_000);
    const losing = {
      texts: (sql: string) => connection.texts(sql),
      query: (sql: string) => {
        connection.close();
        return connection.query(sql);
      },
    } as MysqlConnection;
    await assert.rejects(readDeployment(losing, place.control), /^Error: the connection was lost$/);
  });

  test('on another version of the server is refused', async () => {
    await using server = await startServer({ version: '11.4.2-MariaDB' });
    const db = await server.createDatabase();
    await using connection = await MysqlConnection.open(db.url(), 30_000);
    await assert.rejects(readDeployment(connection, 'effectmatch'), {
      code: 'ERR_EM_ADAPTER_REFUSED',
      message: /the server is 11\.4\.2-MariaDB.*tested on MariaDB 10\.11 only/,
    });
  });
});
