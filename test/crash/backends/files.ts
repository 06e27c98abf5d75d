import { mkdirSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { files } from '../../../src/adapters/files/index.ts';
import { insert, update } from '../../../src/protocol/draft.ts';
import type { Backend, OperationShape, StoredMarker } from './backend.ts';

const ROOT = 'site';
const CONTROL = join('.site.effectmatch', 'control.db');
/**
 * Pages that a `bulk` operation rewrites, so that making its candidate takes long enough to be cut
 * in two.
 */
const SHEETS = 24;
const FILLER = 'x'.repeat(3000);

const amountOf = (n: number) => 10 + n;
const sheetPath = (n: number, index: number) => `sheet-${n}-${index}`;
const range = (length: number) => Array.from({ length }, (_, index) => index);
const write = (path: string, text: string) => ({ write: { path, text } });

/**
 * A folder behind a link: what a crash leaves behind is a candidate, or a version that is not shown
 * yet.
 */
export const filesBackend: Backend = {
  name: 'files',
  // Nothing is locked while a candidate is held; only the two short transactions keep others out.
  blocksAt: ['adapter:marker-written', 'adapter:void-written'],

  async create(folder, operations) {
    const root = join(folder, ROOT);
    mkdirSync(join(root, 'entries'), { recursive: true });
    for (const { n, kind } of operations) {
      writeFileSync(join(root, `account-${n}`), '100');
      if (kind !== 'bulk') continue;
      for (const index of range(SHEETS))
        writeFileSync(join(root, sheetPath(n, index)), `0${FILLER}`);
    }
  },

  factory: (folder) => files({ root: join(folder, ROOT), adopt: true }),

  plan({ n, kind }) {
    const entry = { path: `entries/${n}`, content: String(amountOf(n)) };
    const append = write(entry.path, entry.content);
    switch (kind) {
      case 'append':
        return { effects: [insert('file', entry)], action: { operations: [append] } };
      case 'derive': {
        const total = String(100 + amountOf(n));
        return {
          effects: [
            insert('file', entry),
            update('file', { path: `account-${n}` }, { content: ['100', total] }),
          ],
          action: { operations: [append, write(`account-${n}`, total)] },
        };
      }
      case 'bulk':
        return {
          effects: range(SHEETS).map((index) =>
            update(
              'file',
              { path: sheetPath(n, index) },
              { content: [`0${FILLER}`, `1${FILLER}`] },
            ),
          ),
          action: {
            operations: range(SHEETS).map((index) => write(sheetPath(n, index), `1${FILLER}`)),
          },
        };
      case 'surprise':
        return {
          effects: [insert('file', entry)],
          action: { operations: [append, write(`notice-${n}`, 'sent')] },
        };
      case 'failing':
        return {
          effects: [insert('file', entry)],
          action: { operations: [append, { remove: { path: 'nowhere' } }] },
        };
    }
  },

  async readState(folder) {
    const root = join(folder, ROOT);
    return readdirSync(`${root}/`, { recursive: true, encoding: 'utf8' })
      .filter((name) => statSync(join(root, name)).isFile())
      .map((name) => lineOf(name, readFileSync(join(root, name), 'utf8')));
  },

  expectState: (operations, committed) =>
    operations.flatMap((operation) => linesAfter(operation, committed.has(operation.n))),

  readMarkers: async (folder) =>
    withControl(folder, (db) =>
      db
        .prepare('select occurrence, disposition, text from marker')
        .all()
        .map(({ occurrence, disposition, text }) => {
          const { execution } = JSON.parse(String(text)) as StoredMarker;
          return { occurrence: String(occurrence), disposition: String(disposition), execution };
        }),
    ),

  async falsify(folder, { n, kind }) {
    const root = join(folder, ROOT);
    if (kind === 'append') unlinkSync(join(root, 'entries', String(n)));
    else writeFileSync(join(root, kind === 'bulk' ? sheetPath(n, 0) : `account-${n}`), 'falsified');
  },

  async loseMarker(folder, occurrence) {
    withControl(folder, (db) =>
      db.prepare('delete from marker where occurrence = ?').run(occurrence),
    );
  },
};

function linesAfter({ n, kind }: OperationShape, committed: boolean): readonly string[] {
  const total = committed && kind === 'derive' ? 100 + amountOf(n) : 100;
  const mark = committed ? 1 : 0;
  const sheets =
    kind === 'bulk'
      ? range(SHEETS).map((index) => lineOf(sheetPath(n, index), `${mark}${FILLER}`))
      : [];
  const written = committed && kind !== 'bulk' ? [lineOf(`entries/${n}`, String(amountOf(n)))] : [];
  return [lineOf(`account-${n}`, String(total)), ...sheets, ...written];
}

function lineOf(path: string, content: string): string {
  return `${path} ${content.length} ${content.slice(0, 12)}`;
}

function withControl<T>(folder: string, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(folder, CONTROL), { timeout: 10_000 });
  try {
    return use(db);
  } finally {
    db.close();
  }
}
