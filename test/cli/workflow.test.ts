// Goal: a person can start, sign, run, look at and cancel a workflow from the command line. Method:
// the real commands on a real SQLite file.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { generateApprover, saveApproverKey } from '../../src/crypto/approver.ts';
import { openKeyring } from '../../src/crypto/keyring.ts';
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
        a: node('a'), b: node('b', ['a']), c: node('c', ['b']) }) } },
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
