import { DatabaseSync } from 'node:sqlite';

/** The statement that both servers are asked to run. */
export const STATEMENT = "update invoice set status = 'paid' where id = 4711";

const SCHEMA = `
  create table invoice (id integer primary key, vendor text not null, amount integer not null,
                        status text not null);
  create table vendor (name text not null primary key, balance integer not null);
  create table reminder (id integer primary key, invoice integer not null, text text not null);
  insert into vendor values ('globex', 100);
  insert into invoice values (4711, 'globex', 35, 'open');
  insert into reminder values (1, 4711, 'disputed');
  create trigger settle after update of status on invoice when new.status = 'paid' begin
    update vendor set balance = balance - new.amount where name = new.vendor;
    delete from reminder where invoice = new.id;
  end;`;

/** A new database, in which marking an invoice as paid does two more things. */
export function createBooks(file: string): void {
  using db = new DatabaseSync(file);
  db.exec(SCHEMA);
}

/** What is in the database, read without either server. */
export function readBooks(file: string): readonly string[] {
  using db = new DatabaseSync(file, { readOnly: true });
  const [invoice] = db.prepare('select status from invoice').all();
  const [vendor] = db.prepare('select balance from vendor').all();
  const reminders = db.prepare('select text from reminder').all();
  return [
    `invoice 4711   ${invoice?.status}`,
    `globex         balance ${vendor?.balance}`,
    `reminder       ${reminders[0]?.text ?? 'gone'}`,
  ];
}
