// Goal: every failure that a newcomer can cause says what happened, that nothing changed, and what
// to do next. Method: each is caused for real, on SQLite files and in a file system that is really
// read-only; the database is read after.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ended, MAIN } from './command.ts';
import { Desk, SHOP } from './newcomer.ts';

const PAY = ['--sql', "update invoice set status = 'paid' where id = 1"];
const SIGN = [
  'approve',
  'proposal.json',
  '--key',
  'alice.key.json',
  '--yes',
  '--out',
  'license.json',
];

async function openShop(desk: Desk, ...flags: string[]): Promise<void> {
  desk.change(SHOP);
  const { code, stderr } = await desk.run(['init', 'books.db', '--approver', 'alice', ...flags]);
  assert.equal(code, 0, stderr);
}

async function sign(desk: Desk, ...flags: string[]): Promise<void> {
  const planned = await desk.run(['plan', ...PAY, '--out', 'proposal.json']);
  assert.equal(planned.code, 0, planned.stderr);
  assert.equal((await desk.run([...SIGN, ...flags])).code, 0);
}

/** What happened, that nothing changed, and what to do: all three, and exit code 1 for a fault. */
function assertFault({ code, stdout, stderr }: Ended, what: RegExp, next: RegExp): void {
  assert.equal(code, 1, stdout + stderr);
  assert.match(stderr, what);
  assert.match(stderr, /(?:nothing was (?:changed|written|signed|done)|no data was changed)/);
  assert.match(stderr.slice(stderr.indexOf('\nnext: ')), next);
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack');
}

const pending = (desk: Desk) =>
  assert.deepEqual(
    desk.query("select id from invoice where status <> 'pending'"),
    [],
    'nothing became real',
  );

test('no configuration, no keyring, no key', async () => {
  using desk = new Desk();
  const none = await desk.run(['plan', ...PAY]);
  assert.equal(none.code, 1);
  assert.match(
    none.stderr,
    /no configuration in .*\nnext: write one with `effectmatch init DATABASE`/,
  );
  await openShop(desk);
  assert.equal((await desk.run(['plan', ...PAY, '--out', 'proposal.json'])).code, 0);
  rmSync(desk.path('alice.key.json'));
  assertFault(
    await desk.run(SIGN),
    /ERR_EM_NOT_FOUND: no key at .*alice\.key\.json/,
    /effectmatch keygen NAME/,
  );
  rmSync(desk.path('effectmatch.keys.json'));
  assertFault(
    await desk.run(['plan', ...PAY]),
    /ERR_EM_NOT_FOUND: there is no keyring at/,
    /effectmatch init/,
  );
  assert.equal(
    existsSync(desk.path('effectmatch.keys.json')),
    false,
    'no second keyring beside old records',
  );
  pending(desk);
});

test('a statement on an unregistered table, and a trigger that leads to one', async () => {
  using desk = new Desk();
  await openShop(desk, '--relations', 'invoice');
  const direct = await desk.run(['plan', '--sql', "insert into log values ('x')"]);
  assertFault(direct, /writes to "log", which is not registered/, /add the table to `relations`/);
  const byTrigger = await desk.run(['plan', ...PAY]);
  assertFault(
    byTrigger,
    /trigger "notify" writes to "notification", which is not registered/,
    /add the table to `relations`/,
  );
  pending(desk);
});

test('a registered table without a primary key', async () => {
  using desk = new Desk();
  await openShop(desk);
  writeFileSync(
    desk.path('effectmatch.config.ts'),
    desk.read('effectmatch.config.ts').replace("'notification', //", "'notification', 'log', //"),
  );
  for (const verb of [['doctor'], ['plan', ...PAY]]) {
    assertFault(
      await desk.run(verb),
      /ERR_EM_ADAPTER_REFUSED: .*"log" cannot be registered: it has no PRIMARY KEY/,
      /do what the message says/,
    );
  }
  pending(desk);
});

test('an expired license', async () => {
  using desk = new Desk();
  await openShop(desk);
  await sign(desk, '--expires', '1s');
  const { license } = JSON.parse(readFileSync(join(desk.folder, 'license.json'), 'utf8'));
  await sleep(Date.parse(license.expiresAt) - Date.now() + 1);
  const { code, stdout } = await desk.run(['run', 'license.json', ...PAY]);
  assert.equal(code, 2);
  assert.match(
    stdout,
    /^rejected at authority \(expired\): the license expired at .*\nnext: nothing was changed; .*effectmatch approve/,
  );
  pending(desk);
});

test('another database in place of the one that the license was signed for', async () => {
  using desk = new Desk();
  await openShop(desk);
  await sign(desk);
  renameSync(desk.path('books.db'), desk.path('old.db'));
  desk.change(SHOP);
  const { code, stdout } = await desk.run(['run', 'license.json', ...PAY]);
  assert.equal(code, 2);
  assert.match(
    stdout,
    /^rejected at authority \(adapter-changed\): .*\nnext: nothing was changed; plan it again/,
  );
  pending(desk);
});

test('a schema that changed after the approval so that more would happen', async () => {
  using desk = new Desk();
  await openShop(desk);
  await sign(desk);
  desk.change(`create trigger more after update of status on invoice
    begin insert into notification (invoice, text) values (new.id, 'hidden'); end`);
  const { code, stdout } = await desk.run(['run', 'license.json', ...PAY]);
  assert.equal(code, 2);
  assert.match(
    stdout,
    /^rejected at comparison \(diverged\)[\s\S]*extra +\+ notification .*hidden[\s\S]*\nnext: no data was changed, and the license is spent/,
  );
  pending(desk);
  assert.deepEqual(desk.query('select * from notification'), []);
});

test('a package that is not installed beside the configuration', async () => {
  using desk = new Desk();
  await openShop(desk);
  rmSync(desk.path('node_modules'), { recursive: true });
  assertFault(
    await desk.run(['doctor']),
    /the package "effectmatch" is not installed in its folder/,
    /npm install effectmatch/,
  );
});

test('a disk that can only be read', (context) => {
  using desk = new Desk();
  desk.change(SHOP);
  const namespace = process.getuid?.() === 0 ? ['--mount'] : ['--mount', '--map-root-user'];
  const mount =
    'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; cd "$1"; shift; exec "$@"';
  const onReadOnlyDisk = (...words: string[]) =>
    spawnSync(
      'unshare',
      [...namespace, 'sh', '-c', mount, 'sh', desk.folder, process.execPath, MAIN, ...words],
      {
        encoding: 'utf8',
      },
    );
  const begun = onReadOnlyDisk('init', 'books.db', '--approver', 'alice');
  if (begun.error !== undefined || begun.status === 77 || begun.stderr.startsWith('unshare:')) {
    return context.skip('no mount namespace here');
  }
  const asEnded = ({ status, stdout, stderr }: typeof begun): Ended => ({
    code: status,
    signal: null,
    stdout,
    stderr,
  });
  assertFault(asEnded(begun), /cannot be written/, /disk that can be written/);
  assert.deepEqual(readdirSync(desk.folder).sort(), ['books.db', 'node_modules', 'package.json']);
  const made = spawnSync(process.execPath, [MAIN, 'init', 'books.db', '--approver', 'alice'], {
    cwd: desk.folder,
  });
  assert.equal(made.status, 0);
  assertFault(
    asEnded(onReadOnlyDisk('plan', ...PAY)),
    /ERR_EM_(?:STORE_UNAVAILABLE|ADAPTER_REFUSED)/,
    /read-only: use a folder that you can write to/,
  );
  pending(desk);
});

test('a wrong file, name or flag is met with what would have been right', async () => {
  using desk = new Desk();
  await openShop(desk);
  writeFileSync(desk.path('not.json'), 'no JSON');
  await sign(desk);
  const sign2 = SIGN.with(-1, 'again.json');
  const cases: readonly (readonly [readonly string[], RegExp, RegExp])[] = [
    [
      ['run', 'proposal.json', ...PAY],
      /ERR_EM_RECORD_INVALID: signed license: /,
      /this is a proposal, not a license: sign it with `effectmatch approve`/,
    ],
    [
      ['approve', 'license.json', ...sign2.slice(2)],
      /ERR_EM_USAGE: alice signed it first; a second person has to sign it now/,
      /`effectmatch plan --out` wrote/,
    ],
    [
      sign2.with(3, 'effectmatch.keys.json'),
      /cannot be used as an approver key/,
      /`effectmatch keygen` wrote/,
    ],
    [
      [...sign2, '--expires', 'never'],
      /ERR_EM_USAGE: .*such as 30s, 10m/,
      /effectmatch approve --help/,
    ],
    [
      [...sign2, '--expires', '31d'],
      /ERR_EM_USAGE: .*longer than the 30 days/,
      /effectmatch approve --help/,
    ],
    [SIGN, /ERR_EM_USAGE: .*license\.json.*the file exists/, /--force/],
    [['keygen', 'alice'], /ERR_EM_USAGE: .*alice\.key\.json exists/, /another one with --out/],
    [['keygen', 'a b'], /ERR_EM_USAGE: an issuer is named by/, /effectmatch keygen --help/],
    [
      ['init', 'books.db', '--force', '--approver', 'a b'],
      /ERR_EM_USAGE: an issuer is named by/,
      /effectmatch init --help/,
    ],
    [['provision'], /ERR_EM_USAGE: no adapter of this configuration needs/, /effectmatch doctor/],
    [
      ['doctor', '--adapter', 'boks'],
      /ERR_EM_USAGE: unknown adapter "boks"; the configuration has books/,
      /doctor --help/,
    ],
    [['plan', '--action', 'not.json'], /the file not\.json is not JSON/, /\{ "sql": /],
    [
      ['plan', '--operation', 'pay'],
      /ERR_EM_NOT_FOUND: no operation named "pay"/,
      /the configuration has: none/,
    ],
    [
      ['plan', '--sql', 'drop table log'],
      /changes the schema, which is not allowed/,
      /leave .* out of the action/,
    ],
    [
      ['journal', '--verify', '--against', 'none'],
      /ERR_EM_NOT_FOUND: .*none does not exist/,
      /--checkpoint --export/,
    ],
  ];
  const before = readdirSync(desk.folder).sort();
  const calls = cases.map(async ([words, what, next]) => {
    const { code, stdout, stderr } = await desk.run(words, { env: { EFFECTMATCH_ADMIN_URL: '' } });
    assert.equal(code, 1, words.join(' '));
    assert.equal(stdout, '', words.join(' '));
    assert.match(stderr, what);
    assert.match(stderr.slice(stderr.indexOf('\nnext: ')), next);
    assert.doesNotMatch(stderr, /restore the keyring|correct the configuration/);
  });
  await Promise.all(calls);
  assert.deepEqual(readdirSync(desk.folder).sort(), before);
});

test('a statement that changes nothing is planned, and said to change nothing', async () => {
  using desk = new Desk();
  await openShop(desk);
  const none = await desk.run(['plan', '--sql', "update invoice set status = 'paid' where id = 0"]);
  assert.equal(none.code, 0, none.stderr);
  assert.match(none.stdout, /\nIt changed nothing: look at its conditions and its values\.\n/);
  assert.doesNotMatch((await desk.run(['plan', ...PAY])).stdout, /changed nothing/);
});
