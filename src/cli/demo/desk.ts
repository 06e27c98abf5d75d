import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../adapters/sqlite/index.ts';
import { type Approver, approver, generateApprover, type RuntimeConfig, type SignedLicense } from '../../index.ts';

const SCHEMA = `
  create table vendor (id integer not null primary key, name text not null, blocked integer not null);
  create table invoice (
    id integer not null primary key, vendor_id integer not null, amount_cents integer not null, status text not null);
  create table notification (id integer not null primary key, invoice_id integer not null, text text not null);
  insert into vendor values (7, 'Nordlicht GmbH', 0);
  insert into invoice values (4711, 7, 129900, 'pending');
`;

/** Writes a notification for every paid invoice: what a call-level check of the agent's SQL does not see. */
export const NOTIFYING_TRIGGER = `
  create trigger tell_vendor after update of status on invoice when new.status = 'paid'
  begin insert into notification (invoice_id, text) values (new.id, 'paid'); end;
`;

/** The files of one act: the business database, and beside it what a deployment of EffectMatch keeps. */
export class Desk {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Creates the business database and the approver's keys. Only the approver's side ever holds the private one. */
  open(setup = ''): Approver {
    this.change(SCHEMA + setup);
    const { issuer, publicKey, privateKey } = generateApprover('ap-team');
    writeFileSync(this.#file('approver.pub'), publicKey);
    return approver({ issuer, privateKey });
  }

  /** The deployment as every process of the act configures it. */
  get config(): RuntimeConfig {
    return {
      store: this.#file('effectmatch.db'),
      keyring: this.#file('effectmatch.keys.json'),
      issuers: { 'ap-team': { key: readFileSync(this.#file('approver.pub'), 'utf8'), may: ['books'] } },
      adapters: {
        books: sqlite({ file: this.#file('books.db'), relations: ['invoice', 'notification', 'vendor'] }),
      },
      recoverAtStart: false,
    };
  }

  /** Changes the business database the ordinary way, past EffectMatch. */
  change(sql: string): void {
    using db = new DatabaseSync(this.#file('books.db'));
    db.exec(sql);
  }

  /** What is durable, seen by a connection that has nothing to do with EffectMatch. */
  look(): { readonly status: string; readonly notifications: number } {
    using db = new DatabaseSync(this.#file('books.db'), { readOnly: true });
    const invoice = db.prepare('select status from invoice where id = 4711').get();
    const notes = db.prepare('select count(*) as notes from notification').get();
    return { status: String(invoice?.status), notifications: Number(notes?.notes) };
  }

  /** The dependent work. It leaves a line, so that anybody can count how often it ran. */
  reconcile(): void {
    appendFileSync(this.#file('reconciled.txt'), 'invoice 4711\n');
  }

  get reconciliations(): number {
    const file = this.#file('reconciled.txt');
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
  }

  /** Hands a license to another process. */
  leave(license: SignedLicense): void {
    writeFileSync(this.#file('license.json'), JSON.stringify(license));
  }

  get license(): string {
    return readFileSync(this.#file('license.json'), 'utf8');
  }

  #file(name: string): string {
    return join(this.folder, name);
  }
}
