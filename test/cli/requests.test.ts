// Goal: a person can answer an agent's requests from the command line. Method: the real commands on
// a real SQLite file; a program asks as the agent.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { Desk, SHOP } from './newcomer.ts';

const requests = new URL('../../src/requests/index.ts', import.meta.url).href;

/** An agent that asks for a notification, and prints the request. */
function asking(text: string): string {
  return `import { createRuntime } from 'effectmatch';
    import { openRequests } from '${requests}';
    import config from './effectmatch.config.ts';
    const runtime = await createRuntime(config);
    const requests = await openRequests({ ...config.requests, runtime });
    const sql = 'insert into notification (invoice, text) values (1, ?) returning id';
    const action = { sql, values: ['${text}'] };
    const asked = await requests.ask({ by: 'robot', run: 'r', adapter: 'books', action, reason: 'it is \\u202e due' });
    console.log(asked.id);
    await requests.close();
    await runtime.close();`;
}

async function openDesk(desk: Desk): Promise<void> {
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
}

async function ask(desk: Desk, text: string): Promise<string> {
  writeFileSync(desk.path(`${text}.ts`), asking(text));
  const { execFileSync } = await import('node:child_process');
  return execFileSync(process.execPath, [desk.path(`${text}.ts`)], {
    cwd: desk.folder,
    encoding: 'utf8',
  }).trim();
}

test('a request is listed, read, approved and executed; another is declined', async () => {
  using desk = new Desk();
  await openDesk(desk);
  const [first, second] = [await ask(desk, 'first'), await ask(desk, 'second')];
  const listed = await desk.run(['requests', '--state', 'pending']);
  assert.match(listed.stdout, /pending .*robot {2}books/);
  assert.ok(listed.stdout.includes(first) && listed.stdout.includes(second));
  assert.ok(!listed.stdout.includes('\u202e'), 'marks of direction are shown, not obeyed');
  const shown = await desk.run(['requests', first]);
  assert.match(shown.stdout, /\+ notification id=<generated .*text="first"/);
  assert.match(shown.stdout, new RegExp(`approve --request ${first}`));

  const sign = ['--key', 'alice.key.json', '--yes'];
  const approved = await desk.run(['approve', '--request', first, ...sign]);
  assert.equal(approved.code, 0, approved.stdout + approved.stderr);
  assert.match(approved.stdout, /committed: what became durable/);
  const again = await desk.run(['approve', '--request', first, ...sign]);
  assert.match(again.stderr, /ERR_EM_REQUEST_CLOSED.*committed, answered by alice/);
  const declined = await desk.run(['decline', second, '--reason', 'not now', '--by', 'alice']);
  assert.equal(declined.code, 0);
  assert.equal((await desk.run(['wait', first])).code, 0);
  const waited = await desk.run(['wait', second, '--json']);
  assert.equal(waited.code, 2);
  assert.equal(JSON.parse(waited.stdout).detail, 'not now');
  assert.deepEqual(desk.query('select text from notification'), [{ text: 'first' }]);
});

test('a request that was executed and rejected names the command that shows the differences', async () => {
  using desk = new Desk();
  await openDesk(desk);
  const id = await ask(desk, 'plain');
  // The rows are as proposed; only this trigger is new.
  desk.change(`create trigger more after insert on notification when new.text = 'plain'
    begin update invoice set status = 'paid' where id = 1; end`);
  const sign = ['--key', 'alice.key.json', '--yes'];
  const approved = await desk.run(['approve', '--request', id, ...sign]);
  assert.equal(approved.code, 2, approved.stdout + approved.stderr);
  const shown = await desk.run(['requests', id]);
  const [, occurrence = ''] = /^differences: effectmatch show (occ_\w+)$/m.exec(shown.stdout) ?? [];
  assert.match((await desk.run(['show', occurrence])).stdout, /invoice id=1/, shown.stdout);
});

test('two people sign, by file and by request, and neither can sign for the other', async () => {
  using desk = new Desk();
  await openDesk(desk);
  const made = await desk.run(['keygen', 'carol', '--json']);
  const { publicKey } = JSON.parse(made.stdout);
  const config = desk.read('effectmatch.config.ts');
  const carol = `carol: { key: '${publicKey}', may: ['books'], sources: ['rehearsed'] },`;
  const needs = config
    .replace("'rehearsed'] },\n", "'rehearsed'], second: ['carol'] },\n")
    .replace('issuers: {', `issuers: { ${carol}`);
  writeFileSync(desk.path('effectmatch.config.ts'), needs);
  const id = await ask(desk, 'both');
  const sign = (name: string) => ['--key', `${name}.key.json`, '--yes'];
  const first = await desk.run(['approve', '--request', id, ...sign('alice')]);
  assert.match(first.stdout, /a second person must sign it too/, first.stderr);
  assert.match((await desk.run(['requests', id])).stdout, /signed by alice; waits for a second/);
  const same = await desk.run(['approve', '--request', id, ...sign('alice')]);
  assert.match(same.stderr, /alice signed it first; a second person has to sign it now/);
  const second = await desk.run(['approve', '--request', id, ...sign('carol')]);
  assert.match(
    second.stdout,
    /by alice, carol[\s\S]*committed: what became durable/,
    second.stderr,
  );

  const sql = ['--sql', "insert into notification (invoice, text) values (1, 'file')"];
  const plan = ['plan', ...sql, '--task', 't', '--out', 'p.json'];
  const planned = await desk.run(plan);
  assert.equal(planned.code, 0, planned.stderr);
  await desk.run(['approve', 'p.json', ...sign('alice'), '--out', 'one.json']);
  const alone = await desk.run(['run', 'one.json', ...sql]);
  assert.match(alone.stdout + alone.stderr, /second-missing/);
  const added = await desk.run(['approve', 'one.json', ...sign('carol'), '--out', 'two.json']);
  assert.match(added.stdout, /signed {2}two.json, by carol/, added.stderr);
  assert.equal((await desk.run(['run', 'two.json', ...sql])).code, 0);
  assert.deepEqual(desk.query('select text from notification'), [
    { text: 'both' },
    { text: 'file' },
  ]);
});

test('without requests in the configuration it says what to add', async () => {
  using desk = new Desk();
  await openDesk(desk);
  const file = desk.path('effectmatch.config.ts');
  const without = readFileSync(file, 'utf8').replace(/^ {2}requests: .*\n/m, '');
  assert.doesNotMatch(without, /requests:/);
  writeFileSync(file, without);
  const { code, stderr } = await desk.run(['requests']);
  assert.equal(code, 1);
  assert.match(stderr, /has no `requests`[\s\S]*add `requests: \{ store:/);
  assert.equal(readFileSync(file, 'utf8'), without);
});
