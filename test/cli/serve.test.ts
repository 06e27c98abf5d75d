// Goal: `effectmatch serve` shows a working inbox on a machine where nothing is set up, leaves
// nothing behind, and shows the deployment once `init` has written a configuration. Method: the
// real command in an empty folder, asked over HTTP as a browser would ask.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { loadApproverKey } from '../../src/crypto/approver.ts';
import { startCommand } from './command.ts';
import { Desk, SHOP } from './newcomer.ts';

/** The command while it serves `cwd`, with a temporary folder that a test can look into. */
async function startServing(cwd: string, temporary: string) {
  const env = { TMPDIR: temporary };
  const { child, ended } = startCommand(['serve', '--port', '0'], { cwd, env });
  let printed = '';
  child.stdout.setEncoding('utf8');
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    printed += chunk;
    if (printed.includes('Ctrl-C')) break;
  }
  const link = /http:\S+\/enter\/\S+/.exec(printed)?.[0] ?? '';
  const entered = await fetch(link, { redirect: 'manual' });
  // Longer than clients and proxies use an idle connection.
  assert.equal(entered.headers.get('keep-alive'), 'timeout=75');
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
  return {
    printed,
    /** A page, for the person whom the link signed in. */
    async read(path: string): Promise<string> {
      const answer = await fetch(new URL(path, link), { headers: { cookie } });
      assert.equal(answer.status, 200, path);
      return await answer.text();
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT');
      assert.equal((await ended).code, 0);
    },
  };
}

test('without a configuration the inbox is empty, works, says how to begin, and leaves nothing behind', async () => {
  using desk = new Desk();
  const [folder, temporary] = [desk.path('fresh'), desk.path('temporary')];
  for (const path of [folder, temporary]) mkdirSync(path);
  {
    await using served = await startServing(folder, temporary);
    assert.match(served.printed, /no configuration in \S+fresh: the inbox is empty/);
    const inbox = await served.read('/');
    assert.match(inbox, /No configuration yet/);
    assert.ok(inbox.includes(folder));
    assert.match(inbox, /effectmatch serve --demo/);
    assert.match(inbox, /Nothing is waiting/);
    assert.doesNotMatch(inbox, /No agents are configured/);
    assert.match(await served.read('/history'), /Nothing has been executed yet/);
    assert.match(await served.read('/operations'), /<h1>Operations<\/h1>/);
    assert.equal(readdirSync(temporary).length, 1);
  }
  assert.deepEqual(readdirSync(temporary), []);
  assert.deepEqual(readdirSync(folder), []);
});

test('what `init` writes is served without further lines', async () => {
  using desk = new Desk();
  mkdirSync(desk.path('temporary'));
  desk.change(SHOP);
  const { code, stderr } = await desk.run(['init', 'books.db', '--approver', 'alice']);
  assert.equal(code, 0, stderr);
  await using served = await startServing(desk.folder, desk.path('temporary'));
  assert.doesNotMatch(served.printed, /no configuration/);
  const inbox = await served.read('/');
  assert.match(inbox, /Nothing is waiting/);
  assert.doesNotMatch(inbox, /No configuration yet/);
  assert.match(inbox, /No agents are configured: .*effectmatch token new NAME/);
  assert.match(await served.read('/operations'), /books/);
});

test('an inbox of a configuration with agents does not ask for them', async () => {
  using desk = new Desk();
  mkdirSync(desk.path('temporary'));
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  const config = desk.read('effectmatch.config.ts').replace('// agents:', 'agents:');
  writeFileSync(desk.path('effectmatch.config.ts'), config);
  await using served = await startServing(desk.folder, desk.path('temporary'));
  const inbox = await served.read('/');
  assert.match(inbox, /Nothing is waiting/);
  assert.doesNotMatch(inbox, /No agents are configured/);
});

test('the demo names its key in JSON too', async () => {
  const { child, ended } = startCommand(['serve', '--demo', '--json']);
  let printed = '';
  child.stdout.setEncoding('utf8');
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    printed += chunk;
    if (printed.trimEnd().endsWith('}')) break;
  }
  assert.equal(loadApproverKey(JSON.parse(printed).demoKey).issuer, 'ap-team');
  child.kill('SIGINT');
  assert.equal((await ended).code, 0);
});

test('a configuration that is named and missing is an error', async () => {
  using desk = new Desk();
  const { code, stderr } = await desk.run(['serve', '--config', 'other.config.ts', '--port', '0']);
  assert.equal(code, 1);
  assert.match(stderr, /no configuration at \S+other\.config\.ts/);
});
