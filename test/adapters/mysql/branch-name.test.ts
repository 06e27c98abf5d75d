// Goal: an agent that knows the name of its XA branch still cannot commit it, and if the gate were
// not there, a commit without a marker is found and stops everything; nothing that is kept or said
// shows the name. Method: a candidate on a session that reveals the name, and every form of the
// attack, through the gate and past it; the server's log of all statements, which knows every name.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { parseAction } from '../../../src/adapters/mysql/action.ts';
import { MysqlConnection } from '../../../src/adapters/mysql/connection.ts';
import type { PromotableAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { approver, createRuntime, generateApprover, update } from '../../../src/index.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { openTelemetry } from '../../../src/telemetry/index.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { type ProtectedMariadb, protectedMariadb } from '../../mysql/protected.ts';
import { startServer } from '../../mysql/server.ts';
import { openInside } from './inside.ts';

const SCHEMA =
  "create table t (id int primary key, v varchar(20)); insert into t values (1, 'old')";
const WRITE = parseAction({ sql: "update t set v = 'new' where id = 1" });
const OCCURRENCE = 'an-occurrence' as OccurrenceId;

/** A candidate with a write in it, and the name of its branch. */
async function knownBranch(place: ProtectedMariadb) {
  const inside = await openInside(place);
  const held = await inside.hold();
  assert.equal(await held.candidate.begin(OCCURRENCE, []), undefined);
  assert.deepEqual(await held.candidate.apply(WRITE), { kind: 'done' });
  return { ...held, name: held.branch(), close: inside.close };
}

const FORMS = (text: string) => [
  text,
  `${text};`,
  `/*!100000 ${text} */`,
  `/* */ ${text} -- end`,
  `execute immediate ${JSON.stringify(text)}`,
  `prepare p from ${JSON.stringify(text)}`,
  `begin not atomic ${text}; end`,
  `select 1; ${text}`,
  `set statement sql_mode = '' for ${text}`,
  `begin not atomic execute immediate ${JSON.stringify(text)}; end`,
  `if 1 then ${text}; end if`,
  `create or replace procedure finish() ${text}`,
  'call finish()',
  'do finish()',
  'select finish()',
];

/** An attempt that commits, one that diverges, one that fails, and one that is not admitted. */
const ACTIONS = [
  "update t set v = 'new' where id = 1",
  "update t set v = 'other' where id = 1",
  "insert into t values (1, 'twice')",
  "xa end 'x'",
];

/** Executes the actions, and returns what callers and telemetry were told, as text. */
async function executeAll(place: ProtectedMariadb, folder: string): Promise<string> {
  const key = generateApprover('approver');
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const runtime = await createRuntime({
    ...{ store: join(folder, 'ledger.db'), keyring: join(folder, 'keyring.json') },
    issuers: { approver: { key: key.publicKey, may: ['db'] } },
    adapters: { db: place.factory() },
    telemetry: openTelemetry({ tracer: provider.getTracer('test') }),
  });
  const told: unknown[] = [];
  for (const [index, sql] of ACTIONS.entries()) {
    const effects = [
      update('t', { id: 1 }, { v: [index === 0 ? 'old' : 'new', `new${index || ''}`] }),
    ];
    const task = { adapter: 'db', task: `change the row ${index}`, planRevision: 1, effects };
    const license = approver(key).sign(await runtime.prepare(task), { expiresIn: '5m' });
    told.push(await runtime.execute(license, { sql }));
  }
  await runtime.close();
  const spans = exporter.getFinishedSpans();
  assert.ok(spans.length > ACTIONS.length);
  const seen = spans.map(({ name, attributes, events, status }) => [
    name,
    attributes,
    events,
    status,
  ]);
  return JSON.stringify([told, seen]);
}

describe('MariaDB: the name of the branch', { skip: skipWithoutMariadb() }, () => {
  test('with the right name, no form of XA END or XA COMMIT passes the gate', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const { candidate, name, close } = await knownBranch(place);
    await place.db.run(`create procedure finish()
      begin xa end ${name}; xa commit ${name} one phase; end`);
    for (const attack of ['end', 'commit', 'prepare', 'rollback']) {
      const suffix = attack === 'commit' ? ' one phase' : '';
      for (const sql of FORMS(`xa ${attack} ${name}${suffix}`)) {
        const applied = await candidate.apply(parseAction({ sql }));
        assert.equal(applied.kind === 'failed' && applied.reason, 'denied', sql);
      }
    }
    const { channels } = await candidate.observe();
    assert.ok(channels.every((one) => one.kind !== 'stable' || one.before === one.after));
    await candidate.end('discarded');
    assert.deepEqual(await place.db.run('select v from t'), [{ v: 'old' }]);
    await close();
  });

  test('past the gate, a commit without a marker is reported by open, stops every execution, and is never called rejected', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const { candidate, name, session, close } = await knownBranch(place);
    await session.query(`xa end ${name}`);
    await session.query(`xa commit ${name} one phase`);
    assert.deepEqual(await place.db.run('select v from t'), [{ v: 'new' }]);
    const { channels } = await candidate.observe();
    const transaction = channels.find(({ channel }) => channel === 'transaction');
    assert.deepEqual(transaction, {
      ...{ channel: 'transaction', kind: 'stable', before: 'held', after: 'durable' },
    });
    assert.ok(channels.some(({ channel, kind }) => channel === 'undo' && kind === 'silent'));
    await assert.rejects(candidate.end('discarded'), /committed without a marker/);
    await close();

    const context = { name: 'db', clock: systemClock, reached: unobserved };
    const adapter = (await place.factory().open(context)) as PromotableAdapter;
    const { outlets } = await adapter.survey();
    const open = outlets.filter(({ disposition }) => disposition === 'unclassified');
    assert.match(open[0]?.outlet ?? '', /^occurrence an-occurrence$/);
    assert.match(open[0]?.by ?? '', /committed without a marker/);
    const marker = { occurrence: OCCURRENCE, disposition: 'void', text: 'v' } as const;
    await assert.rejects(adapter.markers.void({ ...marker, sealKey: 'k', sealMac: 'm' }), {
      code: 'ERR_EM_MARKER_CONFLICT',
    });
    assert.equal(await adapter.markers.find(OCCURRENCE), undefined);
    await adapter.close();
    const [kept] = await place.db.run(`select count(*) as n from ${place.control}.record`);
    assert.equal(kept?.n, 1, 'the records of such a stage are kept');
  });

  test('past the gate, neither a forged marker nor a write after the end of the branch succeeds', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const { candidate, name, session, close } = await knownBranch(place);
    const forged = `call ${place.control}.promote('an-occurrence', 'text', 'k', 'm', repeat('0', 64))`;
    await assert.rejects(session.query(forged), /not authentic/);
    await session.query(`xa end ${name}`);
    await session.query(`xa rollback ${name}`);
    await assert.rejects(session.query("update t set v = 'late'"), /cannot be null/);
    await candidate.end('unknown');
    assert.deepEqual(await place.db.run('select v from t'), [{ v: 'old' }]);
    await close();
  });

  test('past the gate, another session of the account cannot use the name', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const { candidate, name, session, close } = await knownBranch(place);
    await using other = await MysqlConnection.open(place.options.execution, 10_000);
    const tryAll = async () => {
      for (const what of ['end', 'prepare', 'commit', 'rollback'])
        await assert.rejects(other.query(`xa ${what} ${name}`), /XAER_(?:RMFAIL|NOTA)/, what);
      await assert.rejects(other.query(`xa commit ${name} one phase`), /XAER_/);
    };
    await tryAll();
    await session.query(`xa end ${name}`);
    await tryAll();
    await candidate.end('discarded');
    assert.deepEqual(await place.db.run('select v from t'), [{ v: 'old' }]);
    await close();
  });

  test('nothing that the account can read shows the name', async () => {
    await using server = await startServer({ 'performance-schema': 'on', 'query-cache-type': '1' });
    const db = await server.createDatabase();
    const place = await protectedMariadb(SCHEMA, { relations: ['t'] }, db);
    const { candidate, name, session, close } = await knownBranch(place);
    const views = await session.texts(
      `select concat(table_schema, '.', table_name) from information_schema.tables
        where table_schema in ('information_schema', 'performance_schema', 'mysql', 'sys')`,
    );
    let readable = 0;
    for (const [view] of views) {
      const rows = await session.texts(`select * from ${view}`).catch(() => undefined);
      if (rows !== undefined) readable += 1;
      assert.ok(!JSON.stringify(rows ?? []).includes(name.slice(1, -1)), String(view));
    }
    assert.ok(readable > 40, String(readable));
    await candidate.end('discarded');
    await close();
  });

  test('each stage has another name, no branch is prepared, and neither ledger, answers nor telemetry show a name', async () => {
    await using server = await startServer();
    const place = await protectedMariadb(
      SCHEMA,
      { relations: ['t'] },
      await server.createDatabase(),
    );
    await place.db.run("set global log_output = 'TABLE', general_log = 1");
    const folder = mkdtempSync(join(tmpdir(), 'effectmatch-branch-'));
    try {
      const shown = await executeAll(place, folder);
      const log = await place.db.run(
        `select argument from mysql.general_log where command_type = 'Query'
          and argument rlike '^(?:xa |call .*promote)' order by thread_id, event_time`,
      );
      const said = log.map(({ argument }) => String(argument).replace(/^call .*$/s, 'promote'));
      const names = said.flatMap((text) => /^xa start '([0-9a-f]{32})'$/.exec(text)?.[1] ?? []);
      assert.ok(names.length > ACTIONS.length, 'admission holds a stage of its own');
      assert.equal(new Set(names).size, names.length);
      assert.deepEqual(
        said.filter((text) => text.startsWith('xa prepare')),
        [],
      );
      const commits = [...said.entries()].filter(([, text]) => text.startsWith('xa commit'));
      assert.equal(commits.length, 1);
      for (const [at, text] of commits) {
        const name = text.split(' ')[2];
        assert.deepEqual(said.slice(at - 2, at + 1), [
          ...['promote', `xa end ${name}`, `xa commit ${name} one phase`],
        ]);
      }
      const kept = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'latin1'));
      assert.ok(kept.length >= 2 && kept.some((text) => text.includes('change the row')));
      for (const name of names)
        assert.ok(![shown, ...kept].some((text) => text.includes(name)), name);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('errors of a candidate do not show the name', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const { candidate, name, session, close } = await knownBranch(place);
    session.close();
    const failed = await candidate.apply(WRITE);
    assert.equal(failed.kind === 'failed' && failed.reason, 'unavailable');
    assert.ok(!JSON.stringify(failed).includes(name.slice(1, -1)));
    await candidate.end('discarded');
    assert.deepEqual(await place.db.run('select v from t'), [{ v: 'old' }]);
    await close();
  });
});
