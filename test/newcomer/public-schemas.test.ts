// Goal: schemas that others wrote work with a login that is not a superuser, as they are. Method:
// Chinook's tables and those of two open-source applications, made from their published packages;
// then init, provision, doctor, plan, approve and run as a person types them, and nothing besides.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { findFolder } from '../../bench/data/folder.ts';
import { loadChinook } from '../../bench/data/mcpmark.ts';
import { quoteName } from '../../src/postgres/identifier.ts';
import { whyAbsent } from '../bench/absent.ts';
import { Desk } from '../cli/newcomer.ts';
import { freshDatabase, isInstalled, VERSIONS } from '../postgres/server.ts';
import { createMedusa, createUnleash } from './published.ts';

interface PublicSchema {
  /** Tables that there are at least. */
  readonly tables: number;
  create(client: pg.Client): Promise<unknown>;
  /** Operations that change something, and what the approver reads of them. */
  readonly work: readonly (readonly [sql: string, ...seen: readonly string[]])[];
}

const SCHEMAS: Readonly<Record<string, PublicSchema>> = {
  Chinook: {
    tables: 11,
    create: (client) => client.query(loadChinook(findFolder(undefined))),
    work: [
      [
        `with artist as (insert into "Artist" values (276, 'Nova')),
           album as (insert into "Album" values (348, 'First Light', 276)),
           genre as (insert into "Genre" values (26, 'Drone')),
           media as (insert into "MediaType" values (6, 'FLAC file'))
         insert into "Track" ("TrackId", "Name", "AlbumId", "MediaTypeId", "GenreId", "Milliseconds", "UnitPrice")
           values (3504, 'Dawn', 348, 6, 26, 61000, 0.99)`,
        '+ Artist',
        '+ Album',
        '+ Genre',
        '+ MediaType',
        '+ Track',
      ],
      [
        `with list as (insert into "Playlist" values (19, 'New') returning "PlaylistId")
         insert into "PlaylistTrack" select "PlaylistId", 3504 from list`,
        '+ Playlist',
        '+ PlaylistTrack',
      ],
      [`update "Track" set "UnitPrice" = 1.29 where "TrackId" = 7`, '~ Track'],
      [
        `update "Employee" set "ReportsTo" = 1 where "ReportsTo" = 6 and "Title" like 'IT%'`,
        '~ Employee',
      ],
      [
        `update "Customer" c set "SupportRepId" = e."EmployeeId" from "Employee" e
         where c."CustomerId" = 1 and e."LastName" = 'Park'`,
        '~ Customer',
      ],
      [
        `with bill as (insert into "Invoice" ("InvoiceId", "CustomerId", "InvoiceDate", "Total")
           values (413, 1, '2014-01-01', 1.98) returning "InvoiceId")
         insert into "InvoiceLine" select 2240 + n, "InvoiceId", n, 0.99, 1 from bill, generate_series(1, 2) as n`,
        '+ Invoice',
        '+ InvoiceLine',
      ],
      ['delete from "PlaylistTrack" where "PlaylistId" = 18', '- PlaylistTrack'],
    ],
  },
  'the orders of Medusa': {
    tables: 20,
    create: createMedusa,
    work: [
      [
        "insert into order_address (id, first_name, city) values ('addr_1', 'Ada', 'London')",
        '+ order_address',
      ],
      [
        `insert into "order" (id, currency_code, display_id) values ('o_1', 'eur', 1001)`,
        '+ order',
      ],
      [
        `update "order" set status = 'completed', metadata = '{"by": "agent"}' where id = 'o_1'`,
        '~ order',
      ],
    ],
  },
  Unleash: {
    tables: 60,
    create: createUnleash,
    work: [
      [
        "insert into features (name, project, type) values ('demo', 'default', 'release')",
        '+ features',
      ],
      // A trigger counts events by day and environment.
      [
        "insert into events (type, created_by, data, environment) values ('feature-created', 'agent', '{}', 'development')",
        '+ events',
        '+ stat_environment_updates',
      ],
      ["update features set stale = true where name = 'demo'", '~ features'],
      ["delete from features where name = 'demo'", '- features'],
    ],
  },
};

/** Only Chinook unless all were asked for: the others take minutes, and fetch their package. */
const ALL = process.env.EFFECTMATCH_PUBLIC_SCHEMAS !== undefined;
const CHOSEN = Object.entries(SCHEMAS).filter(([name]) => ALL || name === 'Chinook');

/** Why a schema cannot be had here; false if it can. */
const whyMissing = (name: string) => name === 'Chinook' && whyAbsent(['chinook/chinook.sql.gz']);

for (const version of VERSIONS)
  for (const [name, { tables, create, work }] of CHOSEN)
    test(`PostgreSQL ${version}: ${name} behind the managed boundary, from init to run`, {
      skip: isInstalled(version) ? whyMissing(name) : `PostgreSQL ${version} is not installed`,
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
      for (const [sql, ...seen] of work) {
        task += 1;
        await run('plan', '--sql', sql, '--task', `t${task}`, '--out', `${task}.json`);
        const files = [`${task}.json`, '--key', 'alice.key.json', '--out', `${task}.license.json`];
        const approved = await run('approve', ...files, '--yes');
        for (const line of seen) assert.match(approved, lineOf(line), sql);
        assert.match(await run('run', `${task}.license.json`, '--sql', sql), /^committed: /, sql);
      }
    });

/** The line of an effect, with or without the schema of its table. */
function lineOf(effect: string): RegExp {
  const [sign = '', table = ''] = effect.split(' ');
  return new RegExp(String.raw`^\s*[${sign}] (?:public\.)?"?${table}"? `, 'm');
}
