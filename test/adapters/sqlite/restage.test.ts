// Goal: another writer of the file does not spend a license, and a process that is killed while it
// waits for one leaves nothing. Method: a real file; another connection holds the write lock longer
// than a stage waits for it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { createKeyring } from '../../../src/crypto/keyring.ts';
import { approver, createRuntime, generateApprover, update } from '../../../src/index.ts';

const source = (path: string) => new URL(`../../../src/${path}`, import.meta.url).href;
const PAY = { sql: "update invoice set status = 'paid' where id = 1" };

/** A file with one invoice, a configuration on it, and a license to pay. */
async function openBooks() {
  const folder = mkdtempSync(join(tmpdir(), 'restage-'));
  const at = (name: string) => join(folder, name);
  const other = new DatabaseSync(at('books.db'));
  other.exec(
    'pragma journal_mode = wal; create table invoice (id integer primary key, status text)',
  );
  other.exec("insert into invoice values (1, 'open')");
  createKeyring(at('keys.json'));
  const key = generateApprover('team');
  const config = {
    store: at('effectmatch.db'),
    keyring: at('keys.json'),
    issuers: { team: { key: key.publicKey, may: ['books'] } },
    leaseMs: 1500,
  };
  const options = { file: at('books.db'), relations: ['invoice'], busyTimeoutMs: 200 };
  const runtime = await createRuntime({ ...config, adapters: { books: sqlite(options) } });
  const effects = [update('invoice', { id: 1 }, { status: ['open', 'paid'] })];
  const proposal = await runtime.prepare({
    adapter: 'books',
    task: 'pay',
    planRevision: 1,
    effects,
  });
  const license = approver(key).sign(proposal, { expiresIn: '10m' });
  return {
    ...{ at, other, runtime, config, options, license },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      other.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test('a write lock that is held for two seconds is waited out', async () => {
  await using books = await openBooks();
  books.other.exec('begin immediate');
  const executing = books.runtime.execute(books.license, PAY);
  await sleep(2000);
  books.other.exec('commit');
  const terminal = await executing;
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
  assert.ok(terminal.kind === 'committed' && terminal.tries?.[0]?.reason === 'busy');
});

test('a process that is killed while it waits leaves nothing, and its attempt is settled', async () => {
  await using books = await openBooks();
  const { config, options, license } = books;
  writeFileSync(
    books.at('worker.ts'),
    `import { sqlite } from '${source('adapters/sqlite/index.ts')}';
    import { createRuntime } from '${source('index.ts')}';
    const adapters = { books: sqlite(${JSON.stringify(options)}) };
    const runtime = await createRuntime({ ...${JSON.stringify(config)}, adapters });
    process.stdin.once('data', () => runtime.execute(${JSON.stringify(license)}, ${JSON.stringify(PAY)}));
    console.log('ready');`,
  );
  const worker = spawn(process.execPath, [books.at('worker.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(worker.stdout, 'data');
  books.other.exec('begin immediate');
  worker.stdin.write('go');
  const { ledgers } = books.runtime;
  while ((await ledgers.unsettled({ includeLeased: true })).length === 0) await sleep(20);
  await sleep(600); // at least one try has failed by now
  const ended = once(worker, 'exit');
  worker.kill('SIGKILL');
  await ended;
  books.other.exec('commit');
  const terminal = await books.runtime.ensure(license, PAY);
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'interrupted');
  const [row] = books.other.prepare('select status from invoice').all();
  assert.equal(row?.status, 'open');
});
