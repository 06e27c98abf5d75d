// Goal: rehearsals on PostgreSQL tell keys of existing rows and declared references from numbers
// that equal new identifiers. Method: sequences that are set so that new identifiers meet other
// numbers; the approved action is executed afterwards.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Proposal } from '../../../src/protocol/license.ts';
import { assertCommitted, openOffice } from './office.ts';

function cellsOf(proposal: Proposal, target: string) {
  const { effects } = proposal.approved;
  return effects.filter((effect) => effect.target === target);
}

test('an update can be planned where identifiers of its audit rows equal keys of updated rows', async () => {
  await using office = await openOffice(
    `create table product (id int primary key, price int not null);
     create table audit (id int generated always as identity primary key, product int not null);
     insert into product select n, n from generate_series(95, 110) as n;
     create function note() returns trigger language plpgsql security definer
       set search_path = pg_catalog, public as
       $$ begin insert into public.audit (product) values (new.id); return null; end $$;
     alter function note() owner to {app};
     grant insert on audit to {app};
     create trigger noted after update on product for each row execute function note();
     select setval('audit_id_seq', 100)`,
    { relations: ['product', 'audit'] },
  );
  const sql = 'update product set price = price + 1 where id between 100 and 105';
  const { proposal, terminal } = await office.planned({ sql });
  assert.deepEqual(
    cellsOf(proposal, 'product').map(({ key }) => key?.id),
    [100, 101, 102, 103, 104, 105].map((is) => ({ is })),
  );
  assertCommitted(terminal);
});

const REFERENCES = `
  create table customer (id int primary key);
  create table invoice (id int generated always as identity primary key,
    customer int not null references customer, total int not null);
  create table line (invoice int references invoice, number int, quantity int not null,
    primary key (invoice, number)) partition by hash (invoice);
  create table line_0 partition of line for values with (modulus 2, remainder 0);
  create table line_1 partition of line for values with (modulus 2, remainder 1);
  create table part (id uuid primary key default gen_random_uuid(), invoice int not null,
    line int not null, parent uuid references part, foreign key (invoice, line) references line);
  create table log (id int generated always as identity primary key, about int not null);
  insert into customer values (1)`;

test('declared references follow a new identifier through composite keys, partitions and rows of one table', async () => {
  await using office = await openOffice(REFERENCES, {
    relations: ['invoice', 'line', 'part', 'log'],
  });
  const sql = `with made as (insert into invoice (customer, total) values (1, 3) returning id),
    lines as (insert into line select id, n, 1 from made, generate_series(1, 2) as n
      returning invoice, number),
    root as (insert into part (invoice, line) select invoice, number from lines where number = 1
      returning id, invoice)
    insert into part (invoice, line, parent) select invoice, 2, id from root`;
  const { proposal, terminal } = await office.planned({ sql });
  const invoice = { generated: 'new invoice.id 1' };
  const [made] = cellsOf(proposal, 'invoice');
  assert.deepEqual(made?.after, { customer: { is: 1 }, total: { is: 3 } });
  assert.deepEqual(
    cellsOf(proposal, 'line').map(({ key }) => key),
    [1, 2].map((is) => ({ invoice, number: { is } })),
  );
  const parts = cellsOf(proposal, 'part').map(({ after }) => after);
  const child = parts.find((after) => after?.parent !== undefined && 'generated' in after.parent);
  assert.equal(parts.length, 2);
  assert.deepEqual(child?.invoice, invoice);
  assertCommitted(terminal);
});

test('an audit column without a foreign key follows an identifier that others refer to', async () => {
  await using office = await openOffice(REFERENCES, {
    relations: ['invoice', 'line', 'part', 'log'],
  });
  const sql = `with made as (insert into invoice (customer, total) values (1, 1) returning id)
    insert into log (about) select id from made`;
  const { proposal, terminal } = await office.planned({ sql });
  assert.deepEqual(cellsOf(proposal, 'log')[0]?.after, {
    about: { generated: 'new invoice.id 1' },
  });
  assertCommitted(terminal);
});
