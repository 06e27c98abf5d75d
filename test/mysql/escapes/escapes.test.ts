// Goal: no statement, trigger, right or setting gets an unapproved effect past the boundary of
// MariaDB: each attempt is observed, or refused with a reason. Method: every case on a real server,
// judged by a dump of all its tables, code, accounts and settings before and after, from a separate
// connection.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { planProvisioning } from '../../../src/adapters/mysql/index.ts';
import { quoteName } from '../../../src/adapters/mysql/sql.ts';
import {
  approver,
  createRuntime,
  EffectMatchError,
  generateApprover,
  type Runtime,
  renderDiff,
  type Terminal,
  update,
} from '../../../src/index.ts';
import type { ManifestDraft } from '../../../src/protocol/draft.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { skipWithoutMariadb } from '../binaries.ts';
import { type ProtectedMariadb, protectedMariadb } from '../protected.ts';
import { type MariadbServer, startServer } from '../server.ts';
import { type MariadbEscape, SCHEMA, STATE } from './case.ts';
import { MARIADB_ESCAPES } from './cases.ts';
import { CODE_ESCAPES } from './code-cases.ts';

const ATTACKS = [...MARIADB_ESCAPES, ...CODE_ESCAPES];
const KEY = generateApprover('approver');
const PAYMENT = [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })];

/** Everything that an attempt could change, as text. */
async function dump({ db, control }: ProtectedMariadb): Promise<unknown> {
  const tables = await db.run(
    `select table_name as t from information_schema.tables where table_schema = database() and table_type <> 'VIEW'`,
  );
  const facts: Record<string, unknown> = {};
  for (const { t } of tables)
    facts[String(t)] = await db.run(`select * from ${quoteName(String(t))} order by 1`);
  const server = {
    routines: 'select db, name, body_utf8 from mysql.proc order by 1, 2',
    triggers: `select trigger_name, action_statement from information_schema.triggers order by 1`,
    events: 'select db, name from mysql.event',
    accounts: 'select host, user, priv from mysql.global_priv order by 1, 2',
    grants: 'select * from mysql.tables_priv order by 1, 2, 3, 4',
    servers: 'select server_name, host from mysql.servers',
    zones: 'select * from mysql.time_zone',
    settings: `select variable_name as n, global_value as v from information_schema.system_variables
      where global_value is not null order by 1`,
    unmarked: `select count(*) as n from ${control}.stage`,
  };
  for (const [name, sql] of Object.entries(server)) facts[name] = await db.run(sql);
  return JSON.parse(JSON.stringify(facts, (key, value) => (key === 'Timestamp' ? 0 : value)));
}

function describeEnding(terminal: Terminal): string {
  if (terminal.kind !== 'rejected') return terminal.kind;
  const { at, detail, reason, outcome } = terminal;
  const diff = outcome?.kind === 'DIVERGED' ? renderDiff(outcome.diff) : '';
  return `${at} ${outcome?.kind ?? reason} ${detail} ${diff}`;
}

describe('MariaDB escapes', { skip: skipWithoutMariadb() }, () => {
  let server: MariadbServer;
  let place: ProtectedMariadb;
  let runtime: Runtime;

  before(async () => {
    server = await startServer();
    const relations = ['invoice', 'line', 'code', 'moment', 'padded'];
    const settings = { relations, reads: ['vendor'], lockTimeoutMs: 1000 };
    place = await protectedMariadb(SCHEMA, settings, await server.createDatabase());
    await place.db.run(STATE);
    runtime = await createRuntime({
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
      adapters: { db: place.factory() },
    });
  });
  after(async () => {
    await runtime?.close();
    await server?.stop();
  });

  const fill = (sql: string) =>
    sql
      .replaceAll('{db}', place.db.name)
      .replaceAll('{n}', place.db.unique(''))
      .replaceAll('{control}', place.control)
      .replaceAll('{exec}', place.db.unique('em_exec'))
      .replaceAll('{file}', join(server.folder, 'leak'));
  const asRoot = async (sql: string | undefined) => {
    if (sql === 'provision') await (await planProvisioning(place.db.url(), place.options)).apply();
    else if (sql !== undefined) await place.db.run(fill(sql));
  };

  async function attempt(attack: MariadbEscape): Promise<{ ending: string; held: unknown }> {
    const effects = (attack.approved ?? PAYMENT) as ManifestDraft['effects'];
    const task = { adapter: 'db', task: 'escape', planRevision: 1, effects };
    let held = await dump(place);
    try {
      const proposal = await runtime.prepare(task);
      const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
      await asRoot(attack.approvedThen);
      held = await dump(place);
      const statements = attack.sql.map((statement) =>
        typeof statement === 'string'
          ? { sql: fill(statement) }
          : { sql: fill(statement.sql), values: statement.values },
      );
      const terminal = await runtime.execute(license, { statements });
      return { ending: describeEnding(terminal), held };
    } catch (error) {
      if (!(error instanceof EffectMatchError)) throw error;
      return { ending: `fault ${error.code} ${error.message}`, held };
    }
  }

  for (const attack of ATTACKS) {
    test(attack.name, async () => {
      await place.db.run(STATE);
      await asRoot(attack.setup);
      try {
        const { ending, held } = await attempt(attack);
        const found = await dump(place);
        assert.ok(!existsSync(join(server.folder, 'leak')), 'nothing was written to a file');
        if ('committed' in attack.ends) {
          assert.equal(ending, 'committed');
          const [last] = await place.db.run('select max(id) as n from line');
          await place.db.run(STATE);
          await place.db.run(attack.ends.committed.replaceAll('{new}', String(last?.n)));
          assert.deepEqual(found, await dump(place));
        } else {
          assert.deepEqual(found, held, `nothing may change: ${ending}`);
          assert.match(
            ending,
            'rejected' in attack.ends ? attack.ends.rejected : attack.ends.refused,
          );
        }
      } finally {
        await asRoot(attack.cleanup);
      }
    });
  }

  test('there are at least 80 attempts besides the clean controls, each with a different name', () => {
    const attempts = ATTACKS.filter(({ ends }) => !('committed' in ends));
    assert.ok(attempts.length >= 80, String(attempts.length));
    assert.equal(new Set(ATTACKS.map(({ name }) => name)).size, ATTACKS.length);
  });
});
