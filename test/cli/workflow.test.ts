// Goal: a person can start, sign, run, look at and cancel a workflow from the command line. Method:
// the real commands on a real SQLite file.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { generateApprover, saveApproverKey } from '../../src/crypto/approver.ts';
import { openKeyring } from '../../src/crypto/keyring.ts';
import { startCommand } from './command.ts';
import { Desk } from './newcomer.ts';

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;

/** A plan of three nodes: a trigger stops `c` of every run whose name begins with x. */
function configure(desk: Desk): void {
  desk.change(`create table entry (tag text primary key not null);
    create table notice (tag text primary key not null);
    create trigger surplus after insert on entry when new.tag like 'x%.c'
      begin insert into notice values (new.tag); end;`);
  const key = generateApprover('clerk');
  saveApproverKey(desk.path('clerk.key.json'), key);
  openKeyring(desk.path('keys.json'));
  writeFileSync(
    desk.path('effectmatch.config.ts'),
    `import { defineConfig, defineOperation, insert } from 'effectmatch';
    import { sqlite } from 'effectmatch/adapters/sqlite';
    import { defineWorkflow } from '${source('workflow/index.ts')}';
    const input = { '~standard': { version: 1, vendor: 'none', validate: (value) => ({ value }) } };
    const post = defineOperation({ name: 'post', adapter: 'books', input,
      approve: ({ tag }) => ({ effects: [insert('entry', { tag })] }),
      action: ({ tag }) => ({ sql: 'insert into entry values (?)', values: [tag] }) });
    const node = (name, after = []) => ({ operation: 'post', after,
      input: (context) => ({ tag: context.input + '.' + name }) });
    export default defineConfig({
      store: 'ledger.db', keyring: 'keys.json',
      issuers: { clerk: { key: '${key.publicKey}', may: ['books'] } },
      operations: { post },
      adapters: { books: sqlite({ file: 'books.db', relations: ['entry', 'notice'] }) },
      workflows: { plans: { three: defineWorkflow('three', {
        a: node('a'), b: node('b', ['a']), c: node('c', ['b']) }),
        slow: defineWorkflow('slow', { a: node('a'), b: node('b', ['rest']),
          rest: { of: 'a', run: async () => {
            console.error('it rests');
            await new Promise((resolve) => setTimeout(resolve, 1500));
          } } }) } },
    });`,
  );
}

test('start, approve, resume, show and report', async () => {
  using desk = new Desk();
  configure(desk);
  const flow = (...words: readonly string[]) => desk.run(['workflow', ...words]);
  const started = await flow('start', 'three', '--id', 'one', '--input', '"one"');
  assert.equal(started.code, 5, started.stderr);
  assert.match(started.stdout, /waiting \(3\)\n {2}a {2}unapproved {2}for an approver/);
  const early = await flow('resume', 'one');
  assert.equal(early.code, 5, 'nothing is approved');
  const signed = await flow('approve', 'one', '--key', 'clerk.key.json', '--yes');
  assert.match(signed.stdout, /entry tag="one.a"|one\.a/);
  const done = await flow('resume', 'one');
  assert.equal(done.code, 0, done.stdout + done.stderr);
  assert.deepEqual(desk.query('select tag from entry order by tag'), [
    { tag: 'one.a' },
    { tag: 'one.b' },
    { tag: 'one.c' },
  ]);
  const shown = await flow('show', 'one');
  assert.match(shown.stdout, /● a +committed\n +└─ ● b +committed +after a\n/);

  await flow('start', 'three', '--id', 'xtwo', '--input', '"xtwo"');
  await flow('approve', 'xtwo', '--key', 'clerk.key.json', '--yes');
  const failed = await flow('resume', 'xtwo');
  assert.equal(failed.code, 2);
  const report = JSON.parse((await flow('report', 'xtwo', '--json')).stdout);
  const names = (list: readonly { readonly instance: string }[]) =>
    list.map(({ instance }) => instance);
  assert.deepEqual([names(report.durable), names(report.notDone)], [['a', 'b'], ['c']]);

  await flow('start', 'three', '--id', 'yes', '--input', '"yes"');
  const ended = await flow('cancel', 'yes', '--reason', 'wrong month');
  assert.equal(ended.code, 2);
  const listed = await flow('show');
  assert.match(listed.stdout, /done +one +three\nfailed +xtwo +three\ncancelled +yes +three/);
  assert.equal((await flow('report', 'nothing')).code, 1);
  assert.equal((await flow('dance', 'one')).code, 1);
});

test('Ctrl-C ends a run behind what is under way, and the next command takes it up', async () => {
  using desk = new Desk();
  configure(desk);
  const flow = (...words: readonly string[]) => desk.run(['workflow', ...words]);
  await flow('start', 'slow', '--id', 'one', '--input', '"one"');
  await flow('approve', 'one', '--key', 'clerk.key.json', '--yes');
  const { child, ended } = startCommand(['workflow', 'resume', 'one'], { cwd: desk.folder });
  const printed = text(child.stdout);
  const [rests] = await once(child.stderr, 'data');
  assert.match(String(rests), /it rests/);
  child.kill('SIGINT');
  const [said] = await once(child.stderr, 'data');
  assert.match(
    String(said),
    /^finishing the nodes in progress; press Ctrl-C again to stop at once\n$/,
  );
  assert.deepEqual(await ended, { code: 5, signal: null });
  assert.match(await printed, /durable \(2\)\n {2}a .*\n {2}rest {2}completed/);
  assert.deepEqual(desk.query('select tag from entry'), [{ tag: 'one.a' }]);
  assert.equal((await flow('resume', 'one')).code, 0);
  assert.equal(desk.query('select tag from entry').length, 2);
});

test('a watcher drives what is approved, says once what waits for a person, and ends when it is asked to', async (t) => {
  using desk = new Desk();
  configure(desk);
  const flow = (...words: readonly string[]) => desk.run(['workflow', ...words]);
  for (const id of ['signed', 'open'])
    await flow('start', 'three', '--id', id, '--input', JSON.stringify(id));
  await flow('approve', 'signed', '--key', 'clerk.key.json', '--yes');
  const { child, ended } = startCommand(['recover', '--watch', '--every', '1'], {
    cwd: desk.folder,
  });
  t.after(() => child.kill('SIGKILL'));
  const printed = text(child.stdout);
  const end = performance.now() + 30_000;
  const isDone = () => desk.query('select tag from entry').length === 3;
  while (!isDone() && performance.now() < end) await sleep(50);
  await sleep(2500);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, { code: 0, signal: null });
  const lines = (await printed).split('\n');
  assert.deepEqual(
    lines.filter((line) => line.startsWith('waits')),
    ['waits for a signature  open  a, b, c'],
  );
  assert.match((await flow('show')).stdout, /done +signed +three\nwaiting +open +three/);
  for (const [words, said] of [
    [['--every', '1'], /--every needs --watch/],
    [['--watch', '--every', '0'], /--every/],
    [['--watch', '--now'], /--now|--watch/],
  ] as const) {
    const { code, stderr } = await desk.run(['recover', ...words]);
    assert.equal(code, 1);
    assert.match(stderr, said);
  }
});
