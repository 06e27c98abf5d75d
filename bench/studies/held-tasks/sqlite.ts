import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { type Cell, medianCell, pairedCell, type StudyOptions } from '../../study.ts';
import { temporaryFolder } from '../../temporary.ts';
import { openTasks, rowsOf, SCHEMA, workOff } from './books.ts';

const SQL = 'update item set n = n + 1 where id = ?';

/** One call against one prepared statement in a transaction that is open already. */
export async function measureSqlite({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  progress('SQLite: calls of held tasks');
  using folder = temporaryFolder();
  const tasks = quick ? 20 : 200;
  const files = ['held.db', 'plain.db'].map((name) => join(folder.path, name)) as [string, string];
  for (const file of files) createItems(file, tasks + 1);
  const [held, plain] = files;
  const adapter = sqlite({ file: held, relations: ['item'] });
  const { runtime, licenses } = await openTasks(folder.path, adapter, tasks);
  using db = new DatabaseSync(plain);
  const statement = db.prepare(SQL);
  const calls: number[] = [];
  const bare: number[] = [];
  for (const [index, license] of licenses.entries()) {
    calls.push(...(await workOff(runtime, license, index + 1, SQL)));
    db.exec('begin immediate');
    for (const id of rowsOf(index + 1)) {
      const from = performance.now();
      statement.run(id);
      bare.push(performance.now() - from);
    }
    db.exec('commit');
  }
  await runtime.close();
  return [
    medianCell('SQLite: one call of a held task', calls, 'ms'),
    medianCell('SQLite: one statement of a plain transaction', bare, 'ms'),
    pairedCell('SQLite: one call over one statement', calls, bare),
  ];
}

function createItems(file: string, tasks: number): void {
  using db = new DatabaseSync(file);
  db.exec(`pragma journal_mode = wal; ${SCHEMA}; begin`);
  const item = db.prepare('insert into item values (?, ?, 0)');
  for (let task = 1; task <= tasks; task += 1) for (const id of rowsOf(task)) item.run(id, task);
  db.exec('commit');
}
