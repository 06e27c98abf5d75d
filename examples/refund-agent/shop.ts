import { DatabaseSync } from 'node:sqlite';

/**
 * A small shop. A trigger keeps the sum of refunds in the purchase, as triggers in real databases
 * do.
 */
const SCHEMA = `
  create table purchase (
    id integer primary key, customer text not null, paid integer not null, refunded integer not null default 0);
  create table refund (
    id integer primary key autoincrement, purchase integer not null references purchase,
    amount integer not null, reason text not null);
  create trigger add_up after insert on refund
    begin update purchase set refunded = refunded + new.amount where id = new.purchase; end;
  insert into purchase (id, customer, paid) values
    (101, 'Ada', 2900), (102, 'Ben', 129900), (103, 'Cleo', 4500), (104, 'Dana', 4900);
`;

/** Direct access to the business database, without EffectMatch. */
export class Shop {
  readonly file: string;

  constructor(file: string) {
    this.file = file;
    this.change(SCHEMA);
  }

  change(sql: string): void {
    using db = new DatabaseSync(this.file);
    db.exec(sql);
  }

  /** All durable refunds, one line each. */
  get refunds(): readonly string[] {
    using db = new DatabaseSync(this.file, { readOnly: true });
    const rows = db.prepare('select purchase, amount, reason from refund order by id').all();
    return rows.map(({ purchase, amount, reason }) => `${purchase}: ${amount} (${reason})`);
  }
}
