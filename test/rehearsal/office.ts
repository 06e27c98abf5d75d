import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import type { SignedLicense } from '../../src/protocol/license.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { testKeyring } from '../keyring.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';

export const TABLES = ['item', 'log', 'stock'] as const;
export const KEY = generateApprover('ap-team');
const TASK = { adapter: 'books', task: 'rehearsed task', planRevision: 1 };

/**
 * Identifiers from AUTOINCREMENT and from the highest rowid, clock defaults in two forms, and a
 * column for chance.
 */
export const SCHEMA = `
  create table item (id integer primary key autoincrement not null, name text, qty integer not null default 1,
    made text not null default current_timestamp, token integer);
  create table log (id integer primary key not null, item integer, at real, note text);
  create table stock (id integer primary key not null, qty integer not null);
  insert into stock (id, qty) values (1, 50), (2, 60), (3, 70);
  insert into item (id, name, qty, made) values (21, 'old', 4, '2020-01-01 00:00:00');
  insert into log (id, note) values (7, 'old');
`;

export type Rows = Readonly<
  Record<(typeof TABLES)[number], ReadonlyMap<unknown, Readonly<Record<string, unknown>>>>
>;

/** Everything durable, read with a connection that knows nothing of the runtime. */
export function readRows(file: string): Rows {
  using db = new DatabaseSync(file, { readOnly: true });
  const table = (name: string) =>
    new Map(
      db
        .prepare(`select * from ${name}`)
        .all()
        .map((row) => [row.id, { ...row }]),
    );
  return { item: table('item'), log: table('log'), stock: table('stock') };
}

/** How many attempts left a marker. */
export function countMarkers(file: string): number {
  using db = new DatabaseSync(file, { readOnly: true });
  const table = db
    .prepare("select name from sqlite_schema where name like '%marker%' and type = 'table'")
    .get()?.name;
  return Number(db.prepare(`select count(*) as count from "${String(table)}"`).get()?.count);
}

export interface Office extends AsyncDisposable {
  readonly file: string;
  readonly runtime: Runtime;
  change(sql: string): void;
  plan(sql: readonly string[]): ReturnType<Runtime['plan']>;
  sign(proposal: Awaited<ReturnType<Runtime['plan']>>): SignedLicense;
}

export const actionOf = (sql: readonly string[]) => ({
  statements: sql.map((text) => ({ sql: text })),
});

/** A database of its own with a runtime whose approver may sign what was rehearsed. */
export async function openOffice(
  more = '',
  volatile: readonly string[] = [],
  values: 'plain' | 'digest' = 'plain',
  moreTables: readonly string[] = [],
): Promise<Office> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-rehearsal-'));
  const file = join(folder, 'books.db');
  const change = (sql: string) => {
    using db = new DatabaseSync(file);
    db.exec(sql);
  };
  change(`${SCHEMA} ${more}`);
  const runtime = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { 'ap-team': { key: KEY.publicKey, may: ['books'], sources: ['rehearsed'] } },
    adapters: {
      books: sqlite({
        file,
        values,
        relations: [{ name: 'item', volatile: [...volatile] }, 'log', 'stock', ...moreTables],
      }),
    },
  });
  return {
    file,
    runtime,
    change,
    plan: (sql) => runtime.plan({ ...TASK, action: actionOf(sql) }),
    sign: (proposal) => approver(KEY).sign(proposal, { expiresIn: '10m' }),
    async [Symbol.asyncDispose]() {
      await runtime.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
