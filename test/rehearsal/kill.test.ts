// Goal: a rehearsal leaves nothing durable, also when its process is killed in the middle of it.
// Method: a real process, SIGKILL inside the held stage of the first and of the second rehearsal; a
// fresh process reads.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { approver } from '../../src/crypto/approver.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { countMarkers, KEY, readRows, SCHEMA } from './office.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-rehearsal-kill-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const SQL = "insert into item (name) values ('a')";
const planner = fileURLToPath(new URL('./dying-planner.ts', import.meta.url));

for (const journal of ['wal', 'delete']) {
  for (const step of ['adapter:stage-opened', 'adapter:action-done']) {
    for (const nth of [1, 2]) {
      test(`${journal}: killed at ${step} of rehearsal ${nth}, nothing is durable and planning goes on`, async () => {
        const at = (name: string) =>
          join(folder, `${journal}-${step.replace(':', '-')}-${nth}-${name}`);
        const file = at('books.db');
        {
          using db = new DatabaseSync(file);
          db.exec(`pragma journal_mode = ${journal}; ${SCHEMA}`);
        }
        const before = readRows(file);
        const places = [
          file,
          at('ledger.db'),
          at('keys.json'),
          KEY.publicKey,
          SQL,
          step,
          String(nth),
          at('log'),
        ];
        const run = spawnSync(process.execPath, [planner, ...places], { encoding: 'utf8' });
        assert.equal(run.signal, 'SIGKILL', run.stderr);
        assert.equal(readFileSync(at('log'), 'utf8'), `${step}\n`);
        assert.deepEqual(readRows(file), before);
        assert.equal(countMarkers(file), 0);

        await using runtime = await createRuntime({
          store: at('ledger.db'),
          keyring: at('keys.json'),
          issuers: { 'ap-team': { key: KEY.publicKey, may: ['books'], sources: ['rehearsed'] } },
          adapters: { books: sqlite({ file, relations: ['item', 'log', 'stock'] }) },
        });
        assert.deepEqual(await runtime.ledgers.unsettled({ includeLeased: true }), []);
        assert.deepEqual(
          await runtime.ledgers.journal(),
          [],
          'no claim and no verdict was recorded',
        );
        const action = { sql: SQL };
        const proposal = await runtime.plan({
          adapter: 'books',
          task: 'killed',
          planRevision: 1,
          action,
        });
        const terminal = await runtime.execute(
          approver(KEY).sign(proposal, { expiresIn: '10m' }),
          action,
        );
        assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
        assert.equal(readRows(file).item.size, before.item.size + 1);
      });
    }
  }
}
