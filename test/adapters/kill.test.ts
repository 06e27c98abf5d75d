// Goal: the suite that authors of backends get to kill theirs with is passed by our own backends.
// Method: SQLite and a folder under `killAtEveryStep`; the crash matrix tries them much harder.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { killAtEveryStep } from '../../src/testing/index.ts';

function freshPlace(name: string) {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-kill-'));
  const close = async () => rmSync(folder, { recursive: true, force: true });
  return { place: join(folder, name), close };
}

killAtEveryStep('SQLite', {
  module: new URL('kill-sqlite.ts', import.meta.url),
  async fresh() {
    const { place, close } = freshPlace('books.db');
    {
      using db = new DatabaseSync(place);
      db.exec("create table t (id integer primary key, v text); insert into t values (1, 'old')");
    }
    const readDurable = async () => {
      using db = new DatabaseSync(place, { readOnly: true });
      return db.prepare('select id, v from t').all();
    };
    const action = { sql: "insert into t (v) values ('new')" };
    return { place, action, readDurable, close };
  },
});

killAtEveryStep('files', {
  module: new URL('kill-files.ts', import.meta.url),
  async fresh() {
    const { place, close } = freshPlace('site');
    mkdirSync(place);
    writeFileSync(join(place, 'page'), 'old');
    const readDurable = async () => readFileSync(join(place, 'page'), 'utf8');
    const action = { operations: [{ write: { path: 'page', text: 'new' } }] };
    return { place, action, readDurable, close };
  },
});
