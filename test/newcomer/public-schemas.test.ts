// Goal: schemas that others wrote work with a login that is not a superuser, as they are. Method:
// Chinook's tables and those of two open-source applications, made from their published packages;
// then init, provision, doctor, plan, approve and run as a person types them, and nothing besides.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { quoteName } from '../../src/postgres/identifier.ts';
import { Desk } from '../cli/newcomer.ts';
import { freshDatabase, isInstalled } from '../postgres/server.ts';
import { CHINOOK_POSTGRES } from './chinook.ts';
import { createMedusa, createUnleash } from './published.ts';

interface PublicSchema {
  /** Tables that there are at least. */
  readonly tables: number;
  create(client: pg.Client): Promise<unknown>;
  /** Operations that change something, and what the approver reads of them. */
  readonly work: readonly (readonly [sql: string, seen: RegExp])[];
}

const SCHEMAS: Readonly<Record<string, PublicSchema>> = {
  Chinook: {
    tables: 5,
    create: (client) => client.query(CHINOOK_POSTGRES),
    work: [['update "Track" set "UnitPrice" = 1.29 where "TrackId" = 7', /~ \S*Track\b/]],
  },
  'the orders of Medusa': {
    tables: 20,
    create: createMedusa,
    work: [
      [
        "insert into order_address (id, first_name, city) values ('addr_1', 'Ada', 'London')",
        /\+ \S*order_address/,
      ],
      [
        `insert into "order" (id, currency_code, display_id) values ('o_1', 'eur', 1001)`,
        /\+ \S*order/,
      ],
      [
        `update "order" set status = 'completed', metadata = '{"by": "agent"}' where id = 'o_1'`,
        /~ \S*order/,
      ],
    ],
  },
  Unleash: {
    tables: 60,
    create: createUnleash,
    work: [
      [
        "insert into features (name, project, type) values ('demo', 'default', 'release')",
        /\+ \S*features/,
      ],
      // A trigger counts events by day and environment.
      [
        "insert into events (type, created_by, data, environment) values ('feature-created', 'agent', '{}', 'development')",
        /\+ \S*stat_environment_updates/,
      ],
      ["update features set stale = true where name = 'demo'", /~ \S*features/],
      ["delete from features where name = 'demo'", /- \S*features/],
    ],
  },
};

/** Chinook on 17 unless all were asked for: the others take minutes, and fetch their package. */
const ALL = process.env.EFFECTMATCH_PUBLIC_SCHEMAS !== undefined;
const CHOSEN = Object.entries(SCHEMAS).filter(([name]) => ALL || name === 'Chinook');

for (const version of ALL ? ([17, 15] as const) : ([17] as const))
  for (const [name, { tables, create, work }] of CHOSEN)
    test(`PostgreSQL ${version}: ${name} behind the managed boundary, from init to run`, {
      skip: !isInstalled(version) && `PostgreSQL ${version} is not installed`,
    }, async () => {
      await using db = await freshDatabase({ version });
      using desk = new Desk();
      const customer = db.role('customer');
      const login = quoteName(customer);
      await db.run(
        `create role ${login} login createrole; grant create on database ${quoteName(db.name)} to ${login};
         grant create on schema public to ${login}`,
      );
      const client = new pg.Client({ connectionString: db.url(customer) });
      await client.connect();
      await create(client).finally(() => client.end());

      const env = { EFFECTMATCH_ADMIN_URL: db.url(customer) };
      const run = async (...words: readonly string[]) => {
        const { code, stdout, stderr } = await desk.run(words, { env });
        assert.equal(code, 0, `${words.join(' ')}\n${stdout}\n${stderr}`);
        return stdout;
      };
      const suffix = db.role('x').replace(/\W/g, '_').slice(0, 40);
      const begun = await run('init', '--yes', '--approver', 'alice', '--roles', suffix);
      const registered = /(\d+) tables? registered/.exec(begun)?.[1];
      assert.ok(Number(registered) >= tables, begun);
      assert.match(begun, new RegExp(`npm install libpg-query@${version}`));
      assert.match(desk.read('effectmatch.config.ts'), /boundary: 'managed'/);
      await run('provision');
      assert.match(await run('doctor'), /^closed .*managed boundary/);
      let task = 0;
      for (const [sql, seen] of work) {
        task += 1;
        await run('plan', '--sql', sql, '--task', `t${task}`, '--out', `${task}.json`);
        const files = [`${task}.json`, '--key', 'alice.key.json', '--out', `${task}.license.json`];
        assert.match(await run('approve', ...files, '--yes'), seen);
        assert.match(await run('run', `${task}.license.json`, '--sql', sql), /^committed: /, sql);
      }
    });
