// Goal: a query that cannot be answered says why, one that is answered in part says so, and none is
// answered while the boundary is open. Method: queries through a runtime on a real server.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { openMariadbOffice } from '../../mysql/office.ts';

const SCHEMA = 'create table t (id int primary key); insert into t values (1)';

describe('MariaDB: query', { skip: skipWithoutMariadb() }, () => {
  test('says why it is not answered, or that there is more', async () => {
    await using office = await openMariadbOffice(SCHEMA, { relations: ['t'] });
    const ask = async (sql: string, values: readonly unknown[] = []) =>
      await office.runtime.query({ adapter: 'db', action: { sql, values } });
    const refused = (asking: Promise<unknown>, message: RegExp) =>
      assert.rejects(asking, { code: 'ERR_EM_QUERY_REFUSED', message });
    await refused(ask('select id from t where id = ?'), /takes 1 values, and there are 0/);
    await refused(ask('select id from t', [1]), /takes 0 values, and there are 1/);
    await refused(ask('select 1 into @kept'), /returns no rows/);
    // These would return rows, and the last one would also choose how long it may take.
    for (const sql of [
      'show databases',
      'explain select id from t',
      'set statement max_statement_time = 100 for select id from t',
    ])
      await refused(ask(sql), /is not one SELECT, INSERT/);
    await refused(ask('select nothing from t'), /Unknown column 'nothing'/);
    const none = await ask('select id from t where id > 1');
    assert.deepEqual(none, { rows: [], more: false });
    // The limit of the session holds for the first of these, and not for the second.
    const list =
      "json_table(concat('[1', repeat(',1', 100), ']'), '$[*]' columns (i int path '$'))";
    for (const limit of ['', 'limit 101']) {
      const part = await ask(`select i from ${list} as n ${limit}`);
      assert.deepEqual([part.rows.length, part.more], [100, true]);
    }
    const long = await ask("select id, repeat('x', 1000001) as text from t");
    assert.deepEqual(long, { rows: [], more: true });
    assert.deepEqual(await ask('select @kept as kept'), { rows: [{ kept: null }], more: false });
  });

  test('is not answered while something is open', async () => {
    await using office = await openMariadbOffice(SCHEMA, { relations: ['t'] });
    const { db, runtime } = office;
    const question = { adapter: 'db', action: { sql: 'select id from t' } };
    const [account, right] = [db.unique('em_exec'), `on ${db.name}.*`];
    await db.run(`grant insert ${right} to ${account}`);
    await assert.rejects(runtime.query(question), {
      code: 'ERR_EM_BOUNDARY_OPEN',
      message: /right INSERT ON .* is open: revoke it/,
    });
    await db.run(`revoke insert ${right} from ${account}`);
    assert.deepEqual((await runtime.query(question)).rows, [{ id: 1 }]);
  });
});
