// Goal: on a server that compiles expensive statements (JIT), nothing of an operation is compiled:
// compiling takes tens of milliseconds, at every call. Method: Debian's PostgreSQL with its default
// `jit = on`, which logs every plan and whether it was compiled; operations of all kinds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protectedDatabase } from '../../postgres/protected.ts';
import {
  isInstalled,
  startServer,
  type TestDatabase,
  type TestServer,
} from '../../postgres/server.ts';
import { demandHeld, drivePort } from './drive.ts';

const skip = isInstalled(15) ? false : 'PostgreSQL 15 is not installed here';

const SCHEMA = `
  create table item (id serial primary key, n integer not null);
  create table many (id integer primary key, n integer not null);
  insert into item (n) values (1), (2);`;

/** Every plan is logged after its statement, nested ones too, with the login that ran it. */
const LOGGED = {
  shared_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_nested_statements': 'on',
  log_line_prefix: 'login=%u ',
};

/** The plans that a login ran, and those of them that were compiled. */
function plansOf(log: string, login: string) {
  const entries = log.split(/^login=/m).filter((entry) => entry.startsWith(`${login} LOG:`));
  const plans = entries.filter((entry) => entry.includes('plan:'));
  return { plans, compiled: plans.filter((plan) => /^\s*JIT:/m.test(plan)) };
}

/** Runs operations of all kinds, and returns what the server logged of both logins. */
async function operate(server: TestServer, configure: (db: TestDatabase) => string) {
  const db = await server.createDatabase();
  const relations = ['item', { name: 'many', bulk: true }];
  const place = await protectedDatabase(SCHEMA, { relations }, { db });
  await db.run(configure(db));
  await using port = await drivePort(place);
  const insert = { sql: 'insert into item (n) values ($1)', values: [3] };
  const bulk = { sql: 'insert into many select g, g from generate_series(1, 100) as g' };
  const reads = [{ target: 'item', key: { id: 1 } }];
  const held = demandHeld(await port.hold({ statements: [insert, bulk] }, reads));
  await held.stage.read(reads);
  assert.equal((await held.promote()).kind, 'confirmed');
  for (const sql of ['update many set n = 0', 'delete from many where id > 1'])
    assert.equal((await port.commit({ sql })).kind, 'confirmed');
  const failed = await port.hold({ sql: 'insert into item (n) values (null)' });
  assert.equal(failed.kind, 'failed');
  const log = server.readLog();
  const execution = plansOf(log, db.role('em_exec'));
  for (const part of ['effectmatch.open', 'effectmatch.observe', 'into effectmatch.record'])
    assert.ok(
      execution.plans.some((plan) => plan.includes(part)),
      `a plan with ${part} is logged`,
    );
  return { execution, control: plansOf(log, db.role('em_control')) };
}

test('no statement of an operation is compiled, and none of ours looks expensive', {
  skip,
}, async (context) => {
  await using server = await startServer({ version: 15, settings: LOGGED });

  await context.test('not even where the server compiles everything', async () => {
    const { execution, control } = await operate(server, ({ name }) => {
      return `alter database "${name}" set jit_above_cost = 0`;
    });
    assert.notDeepEqual(control.plans, []);
    assert.deepEqual([...execution.compiled, ...control.compiled], []);
  });

  await context.test(
    'not even if the execution login is let compile what is expensive',
    async () => {
      const { execution } = await operate(server, (db) => {
        return `alter role "${db.role('em_exec')}" set jit = on`;
      });
      assert.deepEqual(execution.compiled, []);
    },
  );

  await context.test('the log would show it', async () => {
    const db = await server.createDatabase();
    await db.run('set jit_above_cost = 0; select count(*) from pg_class');
    assert.notDeepEqual(plansOf(server.readLog(), 'postgres').compiled, []);
    await db.drop();
  });
});
