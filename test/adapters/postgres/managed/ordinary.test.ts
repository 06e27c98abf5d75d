// Goal: schemas as applications have them work behind the managed boundary without an exception.
// Method: one schema with what frameworks and teams make, owned by a login without superuser; each
// operation is planned, approved and run, and its plan shows what it did.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { approver, createRuntime, generateApprover, type Runtime } from '../../../../src/index.ts';
import { quoteName } from '../../../../src/postgres/identifier.ts';
import { testKeyring } from '../../../keyring.ts';
import { temporaryLedgers } from '../../../ledger/temporary.ts';
import { type ManagedDatabase, managedDatabase } from './office.ts';

const KEY = generateApprover('approver');
const SCHEMA = `
  create extension pgcrypto schema app; create extension "uuid-ossp" schema app;
  create extension citext schema app; create extension pg_trgm schema app;
  create extension btree_gist schema app; create extension hstore schema app;
  set search_path = app;
  create type mood as enum ('sad', 'ok', 'happy');
  create domain email as citext check (value ~ '^[^@]+@[^@]+$');
  create table "User" (id uuid primary key default gen_random_uuid(), "emailAddress" email not null unique,
    mood mood not null default 'ok', "createdAt" timestamptz(3) not null default current_timestamp, tags hstore);
  create table "Post" (id serial primary key, "authorId" uuid not null references "User" on delete cascade on update cascade,
    title varchar(191) not null, slug text generated always as (lower(replace(title, ' ', '-'))) stored);
  create index post_title on "Post" using gin (title gin_trgm_ops);
  create table token (id uuid primary key default uuid_generate_v4(), secret text not null default encode(digest('x', 'sha256'), 'hex'));
  create table booking (id int primary key, room int, during int4range, exclude using gist (room with =, during with &&));
  create table event (at date not null, what text) partition by range (at);
  create table event_2026 partition of event for values from ('2026-01-01') to ('2027-01-01');
  create table tenant_row (id int primary key, tenant text not null, body text);
  alter table tenant_row enable row level security;
  create policy own on tenant_row using (tenant = current_setting('app.tenant', true));
  insert into tenant_row values (1, 'a', 'x'), (2, 'b', 'y');
  create view happy as select id, "emailAddress", mood from "User" where mood = 'happy';
  create view inbox as select id, title from "Post";
  create function inbox_insert() returns trigger language plpgsql as $$ begin
    insert into "Post" ("authorId", title) select u.id, new.title from "User" u order by u."createdAt" limit 1; return new; end $$;
  create trigger inbox_insert instead of insert on inbox for each row execute function inbox_insert();
  create table ledger (id int primary key, amount int);
  create function balanced() returns trigger language plpgsql as $$ begin
    if (select sum(amount) from ledger) <> 0 then raise exception 'not balanced'; end if; return null; end $$;
  create constraint trigger balanced after insert or update on ledger deferrable initially deferred for each row execute function balanced();
  insert into "User" (id, "emailAddress", mood) values ('00000000-0000-4000-8000-000000000001', 'Ann@example.org', 'happy');`;

describe('behind the managed boundary', () => {
  let site: ManagedDatabase;
  let runtime: Runtime;

  before(async () => {
    site = await managedDatabase(SCHEMA, {
      relations: ['"User"', '"Post"', 'token', 'booking', 'event', 'tenant_row', 'ledger'].map(
        (name) => `app.${name}`,
      ),
      views: ['app.happy', 'app.inbox'],
    });
    const login = quoteName(site.db.role('em_exec'));
    await site.db.run(`alter role ${login} set search_path = app, public`);
    runtime = await createRuntime({
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: {
        approver: { key: KEY.publicKey, may: ['db'], sources: ['manifest', 'rehearsed'] },
      },
      adapters: { db: site.factory() },
    });
  });

  after(async () => {
    await runtime.close();
    await site.db.drop();
  });

  for (const [what, sql, shows, set] of [
    [
      'names in capitals',
      `update "User" set "emailAddress" = 'bob@example.org' where "emailAddress" = 'ann@EXAMPLE.org'`,
      /emailAddress/,
    ],
    [
      'a uuid default, an enum, a domain and hstore',
      `insert into "User" ("emailAddress", mood, tags) values ('c@d.e', 'sad', 'a=>1')`,
      /generated/,
    ],
    [
      'a serial and a generated column',
      `insert into "Post" ("authorId", title) select id, 'Hello World' from "User" where mood = 'happy' returning id, slug`,
      /hello-world/,
    ],
    ['defaults of extensions', 'insert into token default values', /token/],
    ['an exclusion constraint', `insert into booking values (1, 1, '[1,5)')`, /booking/],
    ['a partition', `insert into event values ('2026-05-01', 'x')`, /app\.event/],
    ['an updatable view', `update happy set mood = 'ok' where mood = 'happy'`, /"ok"/],
    ['a view with a trigger', `insert into inbox (title) values ('By Trigger')`, /by-trigger/],
    ['a deferred constraint trigger', 'insert into ledger values (1, 5), (2, -5)', /ledger/],
    [
      'row security by a setting',
      `update tenant_row set body = 'z'`,
      /tenant_row id=1/,
      { 'app.tenant': 'a' },
    ],
    [
      'a similarity search',
      `update "Post" set title = 'Found' where similarity(title, 'Hello Wurld') > 0.3 and title % 'Hello World'`,
      /Found/,
    ],
    ['DELETE that cascades', `delete from "User" where "emailAddress" = 'bob@example.org'`, /Post/],
  ] as const)
    test(what, async () => {
      const request = { adapter: 'db', task: what, planRevision: 1, action: { sql } };
      const plan = await runtime.plan({ ...request, ...(set && { set }) });
      assert.match(plan.rendering, shows);
      const license = approver(KEY).sign(plan, { expiresIn: '10m' });
      const terminal = await runtime.execute(license, { sql });
      assert.equal(terminal.kind, 'committed', JSON.stringify(terminal).slice(0, 800));
    });
});
