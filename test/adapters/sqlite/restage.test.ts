// Goal: another writer of the file does not spend a license, and a process that is killed while it
// waits for one leaves nothing. Method: a real file; another connection holds the write lock longer
// than a stage waits for it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { createKeyring } from '../../../src/crypto/keyring.ts';
import { approver, generateApprover, update } from '../../../src/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';

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
  let certified = 0;
  const runtime = await createRuntime(
    { ...config, adapters: { books: sqlite(options) } },
    {
      reached(step) {
        if (step === 'path:certified') certified += 1;
      },
    },
  );
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
    certified: () => certified,
    async [Symbol.asyncDispose]() {
      await runtime.close();
      other.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test('a write lock that is held for longer than one try waits is waited out', async () => {
  await using books = await openBooks();
  books.other.exec('begin immediate');
  const executing = books.runtime.execute(books.license, PAY);
  while (books.certified() < 3) await sleep(20);
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
    import { createRuntime } from '${source('runtime/runtime.ts')}';
    const adapters = { books: sqlite(${JSON.stringify(options)}) };
    const reached = (step) => { if (step === 'path:certified') console.log('try'); };
    const runtime = await createRuntime({ ...${JSON.stringify(config)}, adapters }, { reached });
    process.stdin.once('data', () => runtime.execute(${JSON.stringify(license)}, ${JSON.stringify(PAY)}));
    console.log('ready');`,
  );
  const worker = spawn(process.execPath, [books.at('worker.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: worker.stdout })[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, 'ready');
  books.other.exec('begin immediate');
  worker.stdin.write('go');
  // The second try is under way, so the first one has failed.
  for (let tries = 0; tries < 2; tries += 1) assert.equal((await lines.next()).value, 'try');
  const ended = once(worker, 'exit');
  worker.kill('SIGKILL');
  await ended;
  books.other.exec('commit');
  const terminal = await books.runtime.ensure(license, PAY);
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'interrupted');
  const [row] = books.other.prepare('select status from invoice').all();
  assert.equal(row?.status, 'open');
});

test('a runtime that opens while another writer holds the file waits for it', async () => {
  await using books = await openBooks();
  const { config, options } = books;
  books.other.exec('begin immediate');
  const opening = createRuntime({ ...config, adapters: { books: sqlite(options) } });
  // Longer than the adapter waits by itself.
  await sleep(3 * options.busyTimeoutMs);
  books.other.exec('commit');
  await (await opening).close();
});
