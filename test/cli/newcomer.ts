import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type CallOptions, type Ended, runCommand } from './command.ts';

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;

/** An empty folder in which `effectmatch` can be imported, as after `npm install effectmatch`. */
export class Desk implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-newcomer-'));

  constructor() {
    const entries = {
      '.': 'index.ts',
      './adapters/sqlite': 'adapters/sqlite/index.ts',
      './adapters/postgres': 'adapters/postgres/index.ts',
    };
    const home = this.path('node_modules/effectmatch');
    mkdirSync(home, { recursive: true });
    const exports = Object.entries(entries).map(([name, path], index) => {
      writeFileSync(join(home, `${index}.js`), `export * from '${source(path)}';\n`);
      writeFileSync(
        join(home, `${index}.d.ts`),
        `export * from '${new URL(source(path)).pathname}';\n`,
      );
      return [name, { types: `./${index}.d.ts`, default: `./${index}.js` }];
    });
    const manifest = { name: 'effectmatch', type: 'module', exports: Object.fromEntries(exports) };
    writeFileSync(join(home, 'package.json'), JSON.stringify(manifest));
    writeFileSync(this.path('package.json'), '{ "private": true, "type": "module" }\n');
  }

  run(words: readonly string[], options: CallOptions = {}): Promise<Ended> {
    return runCommand(words, { cwd: this.folder, ...options });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  change(sql: string, file = 'books.db'): void {
    using db = new DatabaseSync(this.path(file));
    db.exec(sql);
  }

  query(sql: string, file = 'books.db'): readonly unknown[] {
    using db = new DatabaseSync(this.path(file), { readOnly: true, timeout: 5000 });
    return db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/**
 * A small shop: a trigger that keeps a time, one that notifies, a cascade, and a table that cannot
 * be registered.
 */
export const SHOP = `
  create table invoice (id integer primary key, status text not null, updated_at text);
  create table notification (id integer primary key, invoice integer references invoice on delete cascade, text text);
  create table log (line text);
  create trigger touch after update of status on invoice
    begin update invoice set updated_at = datetime('now') where id = new.id; end;
  create trigger notify after update of status on invoice when new.status = 'paid'
    begin insert into notification (invoice, text) values (new.id, 'paid'); end;
  insert into invoice values (1, 'pending', null), (2, 'pending', null), (3, 'pending', null);`;
