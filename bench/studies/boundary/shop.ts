import { insert, update } from '../../../src/protocol/draft.ts';
import type { TestDatabase } from '../../../test/postgres/server.ts';
import { keepState } from '../../facts.ts';

/** The number of invoices. Each can be paid once. */
export const INVOICES = 600;
const TABLES = ['invoice', 'account', 'payment', 'entry', 'notification', 'outbox'] as const;

export const RELATIONS = TABLES.map((table) => `app.${table}`);
export const ENTRY_POINTS = ['app.pay'];

/** The registered function, with `more` statements in its body. */
export const definePay = (
  more = '',
) => `create or replace function app.pay(which int) returns void language plpgsql
    security definer set search_path = app, pg_temp as $$ begin
    update invoice set status = 'paid' where id = which;
    update account set cents = cents - 100 where id = which;
    insert into payment values (which, 100);
    insert into entry values (which, -100);
    ${more}
  end $$`;

/**
 * The application's schema before provisioning. Names are fixed, so that two servers can be set up
 * identically.
 */
export const SCHEMA = `
  create role app nologin;
  grant create on database shop to app;
  create schema app authorization app;
  set role app;
  create table app.invoice (id int primary key, status text not null);
  create table app.account (id int primary key, cents int not null);
  create table app.payment (id int primary key, cents int not null);
  create table app.entry (id int primary key, cents int not null);
  create table app.notification (id int primary key, what text not null);
  create table app.outbox (id int primary key, what text not null);
  create function app.on_paid() returns trigger language plpgsql as $$ begin
    insert into app.notification values (new.id, 'paid');
    return null;
  end $$;
  create trigger paid after update of status on app.invoice for each row execute function app.on_paid();
  ${definePay()};
  revoke execute on all routines in schema app from public;
  insert into app.invoice select n, 'pending' from generate_series(1, ${INVOICES}) as n;
  insert into app.account select n, 1000 from generate_series(1, ${INVOICES}) as n;
  reset role;`;

/** Two updates and two inserts by one statement, and one insert by the trigger. */
export const payment = (id: number) => ({
  sql: `with paid as (update app.invoice set status = 'paid' where id = $1),
    charged as (update app.account set cents = cents - 100 where id = $1),
    payed as (insert into app.payment values ($1, 100))
    insert into app.entry values ($1, -100)`,
  values: [id],
});

/** The five effects of paying this invoice. */
export const paymentEffects = (id: number) => [
  update('app.invoice', { id }, { status: ['pending', 'paid'] }),
  update('app.account', { id }, { cents: [1000, 900] }),
  insert('app.payment', { id, cents: 100 }),
  insert('app.entry', { id, cents: -100 }),
  insert('app.notification', { id, what: 'paid' }),
];

/** Every row of the application in the server's text form, and the markers of commits. */
export type Books = Readonly<Record<(typeof TABLES)[number] | 'markers', readonly string[]>>;

/**
 * Reads everything over a separate superuser connection, independently of the code that decided.
 */
export async function readBack(db: TestDatabase): Promise<Books> {
  const tables = TABLES.map(
    (table) => `'${table}', array(select t::text from app.${table} as t order by id)`,
  );
  const [row] = await db.run(
    `select json_build_object(${tables.join(', ')},
      'markers', array(select disposition from effectmatch.marker where disposition = 'committed')) as books`,
  );
  return keepState('books', row?.books as Books);
}

/**
 * The books after these invoices are paid, computed from the earlier rows and not by a database.
 */
export function withPaid(before: Books, ids: readonly number[]): Books {
  const replace = (
    rows: readonly string[],
    was: (id: number) => string,
    is: (id: number) => string,
  ) =>
    rows.map((row) => {
      const id = ids.find((candidate) => row === was(candidate));
      return id === undefined ? row : is(id);
    });
  const add = (rows: readonly string[], row: (id: number) => string) =>
    [...rows, ...ids.map(row)].sort((a, b) => numberOf(a) - numberOf(b));
  return {
    invoice: replace(
      before.invoice,
      (id) => `(${id},pending)`,
      (id) => `(${id},paid)`,
    ),
    account: replace(
      before.account,
      (id) => `(${id},1000)`,
      (id) => `(${id},900)`,
    ),
    payment: add(before.payment, (id) => `(${id},100)`),
    entry: add(before.entry, (id) => `(${id},-100)`),
    notification: add(before.notification, (id) => `(${id},paid)`),
    outbox: before.outbox,
    markers: [...before.markers, ...ids.map(() => 'committed')],
  };
}

const numberOf = (row: string) => Number(/\d+/.exec(row)?.[0]);
