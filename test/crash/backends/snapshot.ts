import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { snapshot } from '../../../src/adapters/snapshot/index.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { Backend, OperationShape, StoredMarker } from './backend.ts';
import type { Books } from './snapshot-tools.ts';

const FILE = 'business.db';
const INITIAL = 'initial.json';
/**
 * So many records of some size, so that the text of a state spans many pages and its commit can be
 * cut in two.
 */
const SHEETS = 24;

const amountOf = (n: number) => 10 + n;
const sheetId = (n: number, index: number) => n * 1000 + index;
const range = (length: number) => Array.from({ length }, (_, index) => index);

/**
 * A JSON state behind tools: stages hold no lock, and whoever promotes must still find its base.
 */
export const snapshotBackend: Backend = {
  name: 'snapshot',
  // Nothing is locked while a candidate is held; only the two short transactions keep others out.
  blocksAt: ['adapter:marker-written', 'adapter:void-written'],

  async create(folder, operations) {
    const sheets = operations.filter(({ kind }) => kind === 'bulk');
    const books: Books = {
      account: operations.map(({ n }) => ({ id: n, balance: 100 })),
      entry: [],
      deposit: {},
      message: [],
      notice: [],
      sheet: sheets.flatMap(({ n }) =>
        range(SHEETS).map((index) => ({
          id: sheetId(n, index),
          op: n,
          mark: 0,
          filler: 'x'.repeat(3000),
        })),
      ),
    };
    writeFileSync(join(folder, INITIAL), JSON.stringify(books));
  },

  factory: (folder) =>
    snapshot({
      file: join(folder, FILE),
      initial: JSON.parse(readFileSync(join(folder, INITIAL), 'utf8')),
      collections: {
        account: { path: '/account', key: 'id', fields: ['balance'] },
        entry: { path: '/entry', key: 'id', fields: ['ref', 'amount'] },
        deposit: { path: '/deposit', key: 'name', map: true, fields: ['amount'] },
        message: { path: '/message', key: 'ref', fields: ['body'] },
        sheet: { path: '/sheet', key: 'id', fields: ['op', 'mark', 'filler'] },
      },
      tools: new URL('./snapshot-tools.ts', import.meta.url),
    }),

  plan({ n, kind }) {
    const amount = amountOf(n);
    const entry = insert('entry', { id: generated('entry'), ref: n, amount });
    switch (kind) {
      case 'append':
        return {
          effects: [entry],
          action: { calls: [{ tool: 'append', args: { ref: n, amount } }] },
        };
      case 'derive':
        return {
          effects: [
            insert('deposit', { name: `d${n}`, amount }),
            update('account', { id: n }, { balance: [100, 100 + amount] }),
          ],
          action: { calls: [{ tool: 'deposit', args: { ref: n, amount } }] },
        };
      case 'bulk':
        return {
          effects: range(SHEETS).map((index) =>
            update('sheet', { id: sheetId(n, index) }, { mark: [0, 1] }),
          ),
          action: { calls: [{ tool: 'mark', args: { op: n } }] },
        };
      case 'surprise':
        return {
          effects: [insert('message', { ref: n, body: 'paid' })],
          action: { calls: [{ tool: 'send', args: { ref: n, body: 'paid' } }] },
        };
      case 'failing':
        return {
          effects: [entry],
          action: {
            calls: [
              { tool: 'append', args: { ref: n, amount } },
              { tool: 'append', args: { ref: n, amount: -1 } },
            ],
          },
        };
    }
  },

  readState: async (folder) =>
    withDatabase(folder, (db) => {
      const books = readBooks(db);
      const texts = db.prepare('select count(*) as n from effectmatch_state').get();
      const integrity = db.prepare('pragma integrity_check').get();
      return [
        ...books.account.map(({ id, balance }) => `account ${id} ${balance}`),
        ...books.entry.map(({ ref, amount }) => `entry ${ref} ${amount}`),
        ...Object.entries(books.deposit).map(([name, { amount }]) => `deposit ${name} ${amount}`),
        ...books.message.map(({ ref, body }) => `message ${ref} ${body}`),
        ...books.notice.map((ref) => `notice ${ref}`),
        ...books.sheet.map(
          ({ id, op, mark, filler }) => `sheet ${id} ${op} ${mark} ${filler.length}`,
        ),
        `states ${String(texts?.n)}`,
        `integrity ${String(integrity?.integrity_check)}`,
      ];
    }),

  expectState: (operations, committed) => [
    ...operations.flatMap((operation) => linesAfter(operation, committed.has(operation.n))),
    'states 1',
    'integrity ok',
  ],

  readMarkers: async (folder) =>
    withDatabase(folder, (db) =>
      db
        .prepare('select occurrence, disposition, text from effectmatch_marker')
        .all()
        .map(({ occurrence, disposition, text }) => {
          const { execution } = JSON.parse(String(text)) as StoredMarker;
          return { occurrence: String(occurrence), disposition: String(disposition), execution };
        }),
    ),

  async falsify(folder, { n, kind }) {
    withDatabase(folder, (db) => {
      const books = readBooks(db);
      if (kind === 'append') books.entry = books.entry.filter(({ ref }) => ref !== n);
      if (kind === 'derive')
        for (const account of books.account) if (account.id === n) account.balance += 1;
      if (kind === 'bulk')
        for (const sheet of books.sheet) if (sheet.id === sheetId(n, SHEETS - 1)) sheet.mark = 0;
      if (kind === 'surprise') books.notice.push(n);
      if (kind === 'failing') books.entry.push({ id: 'forged', ref: n, amount: 1 });
      const text = JSON.stringify(books);
      db.prepare('update effectmatch_state set text = ?, digest = ?').run(
        text,
        hash('sha256', text, 'hex'),
      );
    });
  },

  async loseMarker(folder, occurrence) {
    withDatabase(folder, (db) =>
      db.prepare('delete from effectmatch_marker where occurrence = ?').run(occurrence),
    );
  },
};

function linesAfter({ n, kind }: OperationShape, committed: boolean): readonly string[] {
  const amount = amountOf(n);
  const credited = committed && kind === 'derive';
  const mark = committed ? 1 : 0;
  const sheets =
    kind === 'bulk'
      ? range(SHEETS).map((index) => `sheet ${sheetId(n, index)} ${n} ${mark} 3000`)
      : [];
  return [
    `account ${n} ${credited ? 100 + amount : 100}`,
    ...sheets,
    ...(committed && kind === 'append' ? [`entry ${n} ${amount}`] : []),
    ...(credited ? [`deposit d${n} ${amount}`] : []),
  ];
}

function readBooks(db: DatabaseSync): Books {
  const row = db.prepare('select text from effectmatch_state').get();
  return JSON.parse(String(row?.text)) as Books;
}

function withDatabase<T>(folder: string, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(folder, FILE), { timeout: 10_000 });
  try {
    return use(db);
  } finally {
    db.close();
  }
}
