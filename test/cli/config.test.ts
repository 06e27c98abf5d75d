// Goal: a verb that reads creates nothing, and a wrong configuration is explained, not guessed at.
// Method: real processes in folders where something is missing or wrong; the folder is listed
// before and after.
import assert from 'node:assert/strict';
import { chmodSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Ended, Office, runCommand } from './command.ts';
import { makePayments } from './payments.ts';

const errorOf = ({ stdout }: Ended) =>
  (JSON.parse(stdout) as { error: { code: string; message: string; next: string } }).error;

test('without a configuration the message shows one', async () => {
  using office = new Office();
  for (const argv of [['journal'], ['show', 'occ_1'], ['recover']]) {
    const ended = await runCommand(argv, { cwd: office.subfolder('empty') });
    assert.equal(ended.code, 1);
    assert.match(
      ended.stderr,
      /^error ERR_EM_CONFIG_INVALID: no configuration in .*effectmatch\.config\.ts/,
    );
    assert.match(
      ended.stderr,
      /\nnext: write one with `effectmatch init DATABASE`, name the file with --config FILE, or create effectmatch\.config\.ts:/,
    );
    assert.match(ended.stderr, /export default defineConfig\(\{/);
  }
});

test('a configuration that is wrong is named with its file and what is wrong', async () => {
  using office = new Office();
  const cases: [string, RegExp][] = [
    ['export const config = {};', /no default export/],
    ['export default { keyring: "k", issuers: {}, adapters: {} };', /`store` is missing/],
    ['export default { store: "s", issuers: {}, adapters: {} };', /`keyring` is missing/],
    ['export default { store: "s", keyring: "k", adapters: {} };', /`issuers` is missing/],
    ['export default { store: "s", keyring: "k", issuers: {} };', /`adapters` is missing/],
    [
      'export default { store: "mysql://u:secret@h/d", keyring: "k", issuers: {}, adapters: {} };',
      /`store` is an address, but not one of PostgreSQL/,
    ],
    [
      'export default { store: "s", keyring: "k", issuers: {}, adapters: {}, requests: { store: "MariaDB://u:secret@h/d" } };',
      /`requests.store` is an address, but not one of PostgreSQL/,
    ],
    [
      'export default { store: "s", keyring: "k", issuers: {}, adapters: { books: "b.db" } };',
      /adapter "books" is not an adapter/,
    ],
    ['throw new Error("no password in the vault");', /cannot be loaded: no password in the vault/],
    ['export default {', /cannot be loaded/],
  ];
  const ended = await Promise.all(
    cases.map(async ([source], index) => {
      writeFileSync(office.path(`${index}.mjs`), source);
      return await runCommand(['journal', '--config', `${index}.mjs`, '--json'], {
        cwd: office.folder,
      });
    }),
  );
  for (const [index, [source, sentence]] of cases.entries()) {
    const { code, message } = errorOf(ended[index] as Ended);
    assert.equal(code, 'ERR_EM_CONFIG_INVALID', source);
    assert.match(message, sentence);
    assert.match(message, new RegExp(`${index}\\.mjs`));
    assert.doesNotMatch(ended[index]?.stdout ?? '', /secret/, 'no password is shown');
  }
});

test('no verb makes a store or a keyring where there is none', async () => {
  using office = new Office();
  const before = readdirSync(office.folder);
  for (const argv of [
    ['journal'],
    ['journal', '--verify'],
    ['journal', '--checkpoint'],
    ['show', 'occ_1'],
    ['recover'],
  ]) {
    const ended = await runCommand([...argv, '--json'], { cwd: office.folder });
    assert.equal(ended.code, 1, argv.join(' '));
    const { code, message, next } = errorOf(ended);
    assert.equal(code, 'ERR_EM_NOT_FOUND');
    assert.match(message, /there is no keyring at .*effectmatch\.keys\.json/);
    assert.match(next, /check `keyring` in the configuration/);
  }
  assert.deepEqual(readdirSync(office.folder), before);
});

test('reading verbs do without the business database, and the store is found from any folder', async () => {
  using office = new Office();
  const { committed } = await makePayments(office);
  rmSync(office.path('books.db'));
  const config = ['--config', '../effectmatch.config.ts'];
  const cwd = office.subfolder('elsewhere');
  const [journal, show] = await Promise.all([
    runCommand(['journal', ...config], { cwd }),
    runCommand(['show', committed.occurrence, ...config], { cwd }),
  ]);
  assert.equal(journal.code, 0, journal.stderr);
  assert.equal(show.code, 0, show.stderr);
  assert.deepEqual(readdirSync(cwd), []);
  assert.ok(!readdirSync(office.folder).includes('books.db'));

  rmSync(office.path('effectmatch.db'));
  const ledger = new URL('../../src/ledger/sqlite/index.ts', import.meta.url);
  office.writeConfig(
    { store: `(await import('${ledger}')).sqliteLedgers('effectmatch.db')` },
    'factory.config.ts',
  );
  for (const name of ['effectmatch.config.ts', 'factory.config.ts']) {
    const gone = await runCommand(['journal', '--config', name, '--json'], { cwd: office.folder });
    assert.equal(errorOf(gone).code, 'ERR_EM_NOT_FOUND', name);
    assert.match(errorOf(gone).message, /there is no store at .*effectmatch\.db/);
    assert.ok(!readdirSync(office.folder).includes('effectmatch.db'), name);
  }
});

test('a keyring that others can read is refused with the command that helps', {
  skip: process.platform === 'win32' && 'no file modes there',
}, async () => {
  using office = new Office();
  await makePayments(office);
  chmodSync(office.path('effectmatch.keys.json'), 0o644);
  const ended = await runCommand(['journal'], { cwd: office.folder });
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^error ERR_EM_KEYRING_PERMISSIONS: .*chmod 600/);
});
