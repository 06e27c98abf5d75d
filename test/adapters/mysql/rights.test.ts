// Goal: rights that apply to the execution account although the server does not list them among its
// grants are open, each with the statements that remove it, and rights of others are not. Method: rows
// in the server's own tables of rights, on a server without other tests.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { openMariadbOffice } from '../../mysql/office.ts';
import { startServer } from '../../mysql/server.ts';

describe('MariaDB: hidden rights', { skip: skipWithoutMariadb() }, () => {
  test('of all accounts and of other hosts are open until they are removed', async () => {
    await using server = await startServer();
    const database = await server.createDatabase();
    const schema = 'create table t (id int primary key); create user others';
    await using office = await openMariadbOffice(schema, { relations: ['t'] }, database);
    const { db, runtime } = office;
    const exec = db.unique('em_exec');
    const survey = async () => {
      const { outlets, remedies = [] } = await runtime.survey('db');
      const open = outlets.filter(({ disposition }) => disposition === 'unclassified');
      return { open: open.map(({ outlet }) => outlet).sort(), remedies };
    };
    await db.run(`insert into mysql.db (host, db, user, insert_priv) values
        ('%', 'test', '', 'Y'), ('10.%', 'test', '${exec}', 'Y'), ('10.%', 'test', 'others', 'Y');
      insert into mysql.tables_priv (host, db, user, table_name, table_priv) values
        ('::1', 'far', '${exec}', 'a', 'Insert'), ('%', 'far', 'others', 'a', 'Insert');
      insert into mysql.procs_priv (host, db, user, routine_name, routine_type, proc_priv) values
        ('::1', 'far', '${exec}', 'p', 'PROCEDURE', 'Execute'), ('%', 'far', '', 'p', 'PROCEDURE', 'Execute');
      flush privileges`);
    const { open, remedies } = await survey();
    assert.deepEqual(open, [
      "rights of ''@'%' on test",
      `rights of '${exec}'@'10.%' on test`,
      `rights of '${exec}'@'::1' on far.a`,
      `rights of '${exec}'@'::1' on far.p`,
    ]);
    assert.deepEqual(remedies.map(({ outlet }) => outlet).sort(), open);
    for (const { fix } of remedies) await db.run(fix.join('; '));
    assert.deepEqual(await survey(), { open: [], remedies: [] });
    const left = await db.run(`select user from mysql.db where user in ('', 'others', '${exec}')
      union all select user from mysql.tables_priv where db = 'far'
      union all select user from mysql.procs_priv where db = 'far'`);
    assert.deepEqual(
      left.map(({ user }) => user),
      ['others', 'others', ''],
    );
  });
});
