// Goal: a rehearsal takes for references what the schema declares, and no number that equals a new
// identifier by chance. Method: fresh SQLite tables, whose identifiers are as small as quantities;
// other writers take the next identifiers before the approved action runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';
import { actionOf, type Office, openOffice } from './office.ts';

type Proposal = Awaited<ReturnType<Office['plan']>>;

function insertsInto(proposal: Proposal, target: string): readonly ApprovedEffect['after'][] {
  const { effects } = proposal.approved;
  return effects.filter((effect) => effect.target === target).map(({ after }) => after);
}

const TABLES = ['Customer', 'Invoice', 'Position', 'Line', 'Part', 'Note'];
const SCHEMA = `
  create table Customer (Id integer primary key not null, Name text);
  create table Invoice (Id integer primary key not null,
    CustomerId integer not null references customer, Total integer not null);
  create table Position (Id integer primary key not null,
    InvoiceId integer not null references Invoice (Id), Qty integer not null, Price integer not null);
  create table Line (InvoiceId integer not null references INVOICE (id), No integer not null,
    Qty integer not null, primary key (InvoiceId, No)) without rowid;
  create table Part (Id integer primary key not null, ParentId integer references Part (Id),
    InvoiceId integer not null, LineNo integer not null, Weight integer not null,
    foreign key (InvoiceId, LineNo) references Line);
  create table Note (Id integer primary key not null, About integer, Text text);
  insert into Customer values (1, 'first');
  insert into Note (Id) values (500);
`;
const INVOICE = 'insert into Invoice (CustomerId, Total) values (1, 3)';

async function commitAfter(office: Office, proposal: Proposal, sql: readonly string[]) {
  office.change('insert into Invoice (CustomerId, Total) values (1, 99)');
  const terminal = await office.runtime.execute(office.sign(proposal), actionOf(sql));
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
}

test('an invoice in fresh tables shows its numbers, and only references move with its identifier', async () => {
  await using office = await openOffice(SCHEMA, [], 'plain', TABLES);
  const sql = [
    INVOICE,
    'insert into Position select null, max(Id), 1, 1 from Invoice',
    'insert into Position select null, max(Id), 1, 2 from Invoice',
  ];
  const proposal = await office.plan(sql);
  const InvoiceId = { generated: 'new Invoice.Id 1' };
  assert.deepEqual(insertsInto(proposal, 'Invoice'), [{ CustomerId: { is: 1 }, Total: { is: 3 } }]);
  assert.deepEqual(insertsInto(proposal, 'Position'), [
    { InvoiceId, Qty: { is: 1 }, Price: { is: 1 } },
    { InvoiceId, Qty: { is: 1 }, Price: { is: 2 } },
  ]);
  await commitAfter(office, proposal, sql);
});

test('references through a composite key and to rows of the same table are followed', async () => {
  await using office = await openOffice(SCHEMA, [], 'plain', TABLES);
  const sql = [
    INVOICE,
    'insert into Line select max(Id), 1, 1 from Invoice',
    'insert into Line select max(Id), 2, 1 from Invoice',
    'insert into Part select null, null, max(Id), 1, 1 from Invoice',
    'insert into Part select null, max(Id), (select max(Id) from Invoice), 2, 2 from Part',
  ];
  const proposal = await office.plan(sql);
  const invoice = { generated: 'new Invoice.Id 1' };
  const [root, child] = insertsInto(proposal, 'Part');
  assert.deepEqual(root, {
    ParentId: { is: null },
    InvoiceId: invoice,
    LineNo: { is: 1 },
    Weight: { is: 1 },
  });
  assert.deepEqual(child, {
    ParentId: { generated: 'new Part.Id 1' },
    InvoiceId: invoice,
    LineNo: { is: 2 },
    Weight: { is: 2 },
  });
  await commitAfter(office, proposal, sql);
});

test('a table without foreign keys follows by value what no foreign key refers to', async () => {
  const trigger = `create trigger noted after insert on item begin
    insert into Note (About, Text) values (new.id, new.name); end;`;
  await using office = await openOffice(`${SCHEMA} ${trigger}`, [], 'plain', TABLES);
  const sql = ["insert into item (name) values ('a')"];
  const proposal = await office.plan(sql);
  assert.deepEqual(insertsInto(proposal, 'Note'), [
    { About: { generated: 'new item.id 1' }, Text: { is: 'a' } },
  ]);
  office.change("insert into item (name) values ('other')");
  const terminal = await office.runtime.execute(office.sign(proposal), actionOf(sql));
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
});
