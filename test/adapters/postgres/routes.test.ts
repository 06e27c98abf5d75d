// Goal: a refusal for a table that is not registered says what wrote to it. Method: a trigger that
// copies rows elsewhere, with the rights of its owner and with those of the caller.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openOffice } from './office.ts';

const schema = (rights: string) => `
  create schema app authorization {app}; create schema side authorization {app}; set role {app};
  create table app.invoice (id int primary key, status text);
  create table side.attachment (id int, what text);
  create function app.copy_attachment() returns trigger language plpgsql ${rights} as
    $$ begin insert into side.attachment values (new.id, new.status); return null; end $$;
  create trigger copy_attachment after update on app.invoice
    for each row execute function app.copy_attachment();
  insert into app.invoice values (1, 'pending'); reset role;`;

for (const boundary of ['server', 'managed'] as const)
  for (const [rights, route] of [
    [
      'security definer set search_path = app, pg_temp',
      /"side\.attachment" touched, which is not registered; it can be written through trigger copy_attachment on app\.invoice/,
    ],
    ['', /permission denied for schema side \[42501\], in function app\.copy_attachment\(\)/],
  ] as const)
    test(`${boundary} boundary: a trigger ${rights || 'with the rights of the caller'} is named`, async () => {
      await using office = await openOffice(schema(rights), {
        boundary,
        relations: ['app.invoice'],
      });
      const action = { sql: "update app.invoice set status = 'paid' where id = 1" };
      const terms = { adapter: 'books', task: 'route', planRevision: 1, action };
      await assert.rejects(office.runtime.plan(terms), route);
    });
