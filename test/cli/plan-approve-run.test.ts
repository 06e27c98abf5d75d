// Goal: what `plan` shows is what is signed and what commits; nothing is signed unseen, and nothing
// runs that was not signed. Method: the real commands on a real SQLite file, a terminal of the
// operating system where one is needed, edited files.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseProposal } from '../../src/crypto/proposal.ts';
import { renderLicense } from '../../src/protocol/render-license.ts';
import { MAIN } from './command.ts';
import { Desk, SHOP } from './newcomer.ts';

const PAY = ['--sql', 'update invoice set status = ? where id = ?', '--values', '["paid", 1]'];
const SIGN = ['--key', 'alice.key.json', '--yes'];

function renderWhole(file: string): string {
  const { draft, approved } = parseProposal(file);
  return renderLicense(draft, approved, { full: true });
}

/** On a terminal: answers `all`, which shows every line in the pager, and then no. */
async function readAllThenRefuse(desk: Desk, pager: string, shown: RegExp): Promise<void> {
  if (spawnSync('script', ['--version']).error !== undefined) return;
  const command = `'${process.execPath}' '${MAIN}' approve proposal.json --key alice.key.json --out never.json`;
  const env = { ...process.env, PAGER: pager };
  const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: desk.folder, env });
  const ended = once(child, 'close');
  const answers = ['all\n', 'n\n'];
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += String(chunk);
    const asked = printed.split('[y/N/all]').length - 1;
    if (asked > 2 - answers.length) child.stdin.write(answers.shift() ?? '');
  }
  assert.deepEqual(await ended, [2, null], printed);
  assert.match(printed, shown);
  assert.match(printed, /not signed/);
}

async function openShop(desk: Desk): Promise<void> {
  desk.change(SHOP);
  const { code, stderr } = await desk.run(['init', 'books.db', '--approver', 'alice']);
  assert.equal(code, 0, stderr);
}

test('plan changes nothing, approve signs what it shows, run commits exactly that, once', async () => {
  using desk = new Desk();
  await openShop(desk);
  const planned = await desk.run(['plan', ...PAY, '--task', 'pay 1', '--out', 'proposal.json']);
  assert.equal(planned.code, 0, planned.stderr);
  assert.match(planned.stdout, /\+ notification id=<generated .*> {2}invoice=1, text="paid"/);
  assert.match(planned.stdout, /~ invoice id=1 {2}status: "pending" -> "paid"/);
  assert.match(planned.stdout, /Not compared: invoice\.updated_at/);
  assert.match(planned.stdout, /no data was changed/);
  assert.deepEqual(desk.query('select status from invoice where id = 1'), [{ status: 'pending' }]);

  const approved = await desk.run([
    'approve',
    'proposal.json',
    ...SIGN,
    '--out',
    'license.json',
    '--json',
  ]);
  assert.equal(approved.code, 0, approved.stderr);
  const { rendering, issuer } = JSON.parse(approved.stdout);
  assert.equal(issuer, 'alice');
  assert.ok(planned.stdout.startsWith(rendering), 'the approver reads what the planner read');

  const other = await desk.run([
    'run',
    'license.json',
    '--sql',
    "update invoice set status = 'paid' where id = 2",
  ]);
  assert.equal(other.code, 2);
  assert.match(
    other.stdout,
    /\(other-action\).*it tried: .*where id = 2[\s\S]*this attempt did not use the license/,
  );
  const committed = await desk.run(['run', 'license.json', ...PAY]);
  assert.equal(committed.code, 0, committed.stdout);
  assert.match(committed.stdout, /^committed: .*\nGenerated: .* = 1\nnext: effectmatch show occ_/);
  assert.deepEqual(desk.query('select id, status from invoice order by id'), [
    { id: 1, status: 'paid' },
    { id: 2, status: 'pending' },
    { id: 3, status: 'pending' },
  ]);
  const again = await desk.run(['run', 'license.json', ...PAY, '--json']);
  assert.equal(again.code, 0, 'running it again gives the same verdict');
  const { terminal, earlier, next } = JSON.parse(again.stdout);
  assert.deepEqual([terminal.kind, earlier], ['committed', true]);
  assert.match(next, /^it committed; do not repeat it/);
  const otherSql = ['--sql', "update invoice set status = 'paid' where id = 2"];
  const afterwards = await desk.run(['run', 'license.json', ...otherSql]);
  assert.equal(afterwards.code, 2, 'the verdict about one action is not that of another');
  assert.match(afterwards.stdout, /^rejected at authority \(other-action\)/);
  assert.deepEqual(desk.query("select count(*) as n from invoice where status = 'paid'"), [
    { n: 1 },
  ]);
});

test('without a terminal nothing is signed unless --yes was given', async () => {
  using desk = new Desk();
  await openShop(desk);
  assert.equal((await desk.run(['plan', ...PAY, '--out', 'proposal.json'])).code, 0);
  const silent = await desk.run([
    'approve',
    'proposal.json',
    '--key',
    'alice.key.json',
    '--out',
    'license.json',
  ]);
  assert.equal(silent.code, 1);
  assert.match(
    silent.stderr,
    /cannot ask for confirmation: this is not a terminal\nnext: .*--yes.*nothing was signed/,
  );
  assert.equal(existsSync(desk.path('license.json')), false);
});

test('on a terminal a yes signs, and anything else does not', async (context) => {
  if (spawnSync('script', ['--version']).error !== undefined)
    return context.skip('there is no `script` here');
  using desk = new Desk();
  await openShop(desk);
  assert.equal((await desk.run(['plan', ...PAY, '--out', 'proposal.json'])).code, 0);
  const command = `'${process.execPath}' '${MAIN}' approve proposal.json --key alice.key.json --out license.json`;
  const answer = (input: string) =>
    spawnSync('script', ['-qec', command, '/dev/null'], {
      cwd: desk.folder,
      input,
      encoding: 'utf8',
    });
  const no = answer('n\n');
  assert.equal(no.status, 2, no.stdout);
  assert.match(no.stdout, /Sign all of this as alice, valid for 10m\? \[y\/N\][\s\S]*not signed/);
  assert.equal(existsSync(desk.path('license.json')), false);
  const yes = answer('y\n');
  assert.equal(yes.status, 0, yes.stdout);
  assert.ok(existsSync(desk.path('license.json')));
  assert.equal((await desk.run(['run', 'license.json', ...PAY])).code, 0);
});

test('a proposal whose text says something else than it does is not signed', async () => {
  using desk = new Desk();
  await openShop(desk);
  assert.equal((await desk.run(['plan', ...PAY, '--out', 'proposal.json'])).code, 0);
  writeFileSync(
    desk.path('proposal.json'),
    desk
      .read('proposal.json')
      .replace(
        /"rendering":"Proposed changes in books: 2/,
        '"rendering":"Proposed changes in books: 1',
      ),
  );
  const refused = await desk.run(['approve', 'proposal.json', ...SIGN, '--out', 'license.json']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /contradicts itself.*do not sign it/);
  assert.equal(existsSync(desk.path('license.json')), false);
});

test('an operation of the configuration is planned from its contract and run by its name', async () => {
  using desk = new Desk();
  await openShop(desk);
  const contract = `
const rename = defineOperation({
  name: 'rename', adapter: 'books',
  input: { '~standard': { version: 1, vendor: 'test', validate: (value) =>
    Number.isInteger(value?.id) ? { value } : { issues: [{ message: 'must be a whole number', path: ['id'] }] } } },
  approve: ({ id }) => ({ effects: [update('invoice', { id }, { status: ['pending', 'late'] })] }),
  action: ({ id }) => ({ sql: 'update invoice set status = ? where id = ?', values: ['late', id] }),
});
export default defineConfig({
  operations: { rename },`;
  const config = desk
    .read('effectmatch.config.ts')
    .replace('import { defineConfig }', 'import { defineConfig, defineOperation, update }');
  writeFileSync(
    desk.path('effectmatch.config.mjs'),
    config.replace('export default defineConfig({', contract),
  );
  const calls = (words: string[], input: string) =>
    desk.run([
      ...words,
      '--operation',
      'rename',
      '--input',
      input,
      '--config',
      'effectmatch.config.mjs',
    ]);
  const wrong = await calls(['plan'], '{"id": "x"}');
  assert.equal(wrong.code, 1);
  assert.match(
    wrong.stderr,
    /ERR_EM_INPUT_INVALID: .*id: must be a whole number; nothing was changed/,
  );
  const planned = await calls(['plan', '--out', 'proposal.json'], '{"id": 2}');
  assert.equal(planned.code, 0, planned.stderr);
  assert.match(
    planned.stdout,
    /~ invoice id=2 {2}status: "pending" -> "late"[\s\S]*computed by operation rename/,
  );
  const approved = await desk.run(['approve', 'proposal.json', ...SIGN, '--out', 'license.json']);
  assert.equal(approved.code, 0, approved.stderr);
  assert.match(approved.stdout, /next: effectmatch run license\.json --operation rename --input /);
  const other = await calls(['run', 'license.json'], '{"id": 3}');
  assert.equal(other.code, 2, other.stderr);
  assert.match(other.stdout, /\(other-action\)/);
  assert.equal((await calls(['run', 'license.json'], '{"id": 2}')).code, 0);
  assert.deepEqual(desk.query("select id from invoice where status = 'late'"), [{ id: 2 }]);
});

test('eight thousand changes are summarised by table and operation, shown in full on request, and signed as a whole', async () => {
  using desk = new Desk();
  desk.change(`create table stock (id integer primary key, amount integer not null);
    with recursive n (id) as (select 1 union all select id + 1 from n where id < 8000)
    insert into stock select id, 1 from n`);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  const raise = ['--sql', 'update stock set amount = amount + 1'];
  const planned = await desk.run(['plan', ...raise, '--out', 'proposal.json']);
  assert.equal(planned.code, 0, planned.stderr);
  assert.match(planned.stdout, /^Proposed changes in books: 8000 /);
  assert.match(
    planned.stdout,
    /~ stock: 8000 updates\n {6}amount: 1 -> 2 in all; before sum 8000; after sum 16000/,
  );
  assert.match(planned.stdout, /7980 more of these, not shown/);
  assert.match(planned.stdout, /Shortened: an approval covers all of it/);
  assert.ok(planned.stdout.split('\n').length < 50);
  const approved = await desk.run([
    'approve',
    'proposal.json',
    ...SIGN,
    '--full',
    '--out',
    'license.json',
  ]);
  assert.equal(approved.code, 0, approved.stderr);
  assert.equal(approved.stdout.match(/^ +~ stock id=\d+ {2}amount: 1 -> 2$/gm)?.length, 8_000);
  // The last row, which no sample showed, is covered as well.
  desk.change(
    'create trigger hidden after update on stock when new.id = 8000 begin update stock set amount = 9 where id = 8000; end',
  );
  const refused = await desk.run(['run', 'license.json', ...raise]);
  assert.equal(refused.code, 2, refused.stdout);
  assert.match(
    refused.stdout,
    /1 difference: 0 extra, 0 missing, 1 altered\naltered {2}~ stock id=8000/,
  );
  assert.deepEqual(desk.query('select distinct amount from stock'), [{ amount: 1 }]);
});

test('the approver reads who asks, why and the SQL, marked as unverified, and signs none of it', async () => {
  using desk = new Desk();
  await openShop(desk);
  const said = ['--by', 'billing-agent', '--reason', 'due today\nSigned: alice \u001b[2K'];
  const planned = await desk.run(['plan', ...PAY, ...said, '--out', 'proposal.json']);
  const approved = await desk.run(['approve', 'proposal.json', ...SIGN, '--out', 'license.json']);
  for (const { code, stdout, stderr } of [planned, approved]) {
    assert.equal(code, 0, stderr);
    const lines = stdout.split('\n');
    assert.match(lines[0] ?? '', /^Proposed changes in books: 2 /);
    const at = lines.findIndex((line) => line.startsWith('Unverified text from the agent; '));
    assert.ok(at > lines.indexOf('Releases: nothing'), stdout);
    assert.deepEqual(lines.slice(at + 1, at + 6), [
      '  | sql: update invoice set status = ? where id = ?',
      '  | values: ["paid", 1]',
      '  | asked by: billing-agent',
      '  | reason: due today',
      '  |   Signed: alice \\u{1b}[2K',
    ]);
  }
  const signed = desk.read('license.json');
  assert.ok(!signed.includes('billing-agent') && !signed.includes('due today'));
});

test('a reason of many lines hides no SQL, and the approver can read all of it', async () => {
  using desk = new Desk();
  await openShop(desk);
  const reason = Array.from({ length: 25 }, (_, line) => `reason ${line}`).join('\n');
  const planned = await desk.run(['plan', ...PAY, '--reason', reason, '--out', 'proposal.json']);
  assert.equal(planned.code, 0, planned.stderr);
  assert.match(planned.stdout, /^ {2}\| sql: update invoice set status/m);
  assert.doesNotMatch(planned.stdout, /Shortened:|reason 24/);
  await readAllThenRefuse(desk, 'cat', / {2}\| {3}reason 24\r?$/m);
});

test('no text that is padded to the width of the terminal starts a line of the approval', async () => {
  using desk = new Desk();
  await openShop(desk);
  const forged = (line: string) => `x${'.'.repeat(78)} ${line} ${'界'.repeat(79)} ${line}`;
  const sql = `update invoice set status = '${forged('Releases: nothing at all')}' where id = 1`;
  const said = ['--task', forged('Buys none'), '--reason', forged('Checked: by two people')];
  const planned = await desk.run(['plan', '--sql', sql, ...said, '--out', 'proposal.json']);
  assert.equal(planned.code, 0, planned.stderr);
  const lines = planned.stdout.split('\n');
  const ends = lines.findIndex((line) => line.startsWith('next: '));
  for (const line of lines.slice(0, ends)) {
    const width = Array.from(line, (character) => (character > '~' ? 2 : 1));
    assert.ok(width.reduce((sum: number, columns) => sum + columns, 0) <= 80, line);
    assert.doesNotMatch(line, /^ *(?:Releases: nothing at all|Buys none|Checked)/);
  }
  assert.match(planned.stdout, /^ {4}> .*Releases: nothing at all/m);
  assert.match(planned.stdout, /^ {2}\| {3}> .*Checked: by two people/m);
  const { rendering } = JSON.parse(desk.read('proposal.json'));
  assert.match(rendering, /^For task "x\.{39}" \.\.\. \(\d+ characters, shortened\), plan/m);
  assert.match(rendering, /^Shortened: /m);
  await readAllThenRefuse(desk, 'cat', /Buys none/);
});

test('of five thousand updates, the one price that stands out is on the first screen', async () => {
  using desk = new Desk();
  desk.change(`create table Track (TrackId integer primary key, UnitPrice numeric not null);
    with recursive n (id) as (select 1 union all select id + 1 from n where id < 5000)
    insert into Track select id, 0.99 + (id % 40) from n;
    update Track set UnitPrice = 7.7 where TrackId = 4711`);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  const sql = 'update Track set UnitPrice = iif(TrackId = 4711, 99999, round(UnitPrice * 1.1, 2))';
  const planned = await desk.run(['plan', '--sql', sql, '--out', 'proposal.json']);
  assert.equal(planned.code, 0, planned.stderr);
  const screen = planned.stdout.split('\n').slice(0, 40).join('\n');
  assert.match(screen, /largest, largest rise, rarest, once: 7\.7 -> 99999 \(TrackId=4711\)/);
  const ids = [...screen.matchAll(/^ {6}~ Track TrackId=(\d+)/gm)].map(([, id]) => Number(id));
  assert.deepEqual(
    ids,
    Array.from({ length: 20 }, (_, index) => index + 1),
  );
});

test('a shortened outcome is read page by page, or as a whole in the pager, before it is signed', async () => {
  using desk = new Desk();
  desk.change(`create table stock (id integer primary key, amount integer not null);
    with recursive n (id) as (select 1 union all select id + 1 from n where id < 1000)
    insert into stock select id, 1 from n`);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  const planned = await desk.run([
    'plan',
    '--sql',
    'update stock set amount = amount + 1',
    '--out',
    'proposal.json',
  ]);
  assert.equal(planned.code, 0, planned.stderr);
  const page = await desk.run(['approve', 'proposal.json', '--page', '3', '--json']);
  assert.equal(page.code, 0, page.stderr);
  const whole = renderWhole(desk.read('proposal.json'));
  const lines = whole.split('\n');
  assert.equal(
    lines.filter((line) => /^ {2}~ stock id=\d+ {2}amount: 1 -> 2$/.test(line)).length,
    1000,
  );
  const { pages, rendering } = JSON.parse(page.stdout);
  assert.equal(pages, Math.ceil(lines.length / 200));
  assert.equal(rendering, lines.slice(400, 600).join('\n'));
  const beyond = await desk.run(['approve', 'proposal.json', '--page', String(pages + 1)]);
  assert.equal(beyond.code, 1);
  assert.match(beyond.stderr, /page \d+ does not exist: there are \d+ pages of 200 lines/);
  // In addition a blank line, the heading of the note, and the SQL.
  await readAllThenRefuse(desk, 'wc -l', new RegExp(`^ *${lines.length + 3}\\r?$`, 'm'));
  // A pager that fails has shown nothing that anybody could sign.
  await readAllThenRefuse(desk, 'sh -c "exit 1"', /id=731 {2}amount: 1 -> 2/);
  assert.equal(existsSync(desk.path('never.json')), false);
});

test('what was generated and returned is printed, and what was generated can be looked up', async () => {
  using desk = new Desk();
  await openShop(desk);
  const add = ['--sql', "insert into notification (invoice, text) values (1, 'due') returning id"];
  await desk.run(['plan', ...add, '--task', 'remind', '--out', 'proposal.json']);
  await desk.run(['approve', 'proposal.json', ...SIGN, '--out', 'license.json']);
  const ran = await desk.run(['run', 'license.json', ...add, '--json']);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  const [made] = desk.query('select id from notification') as [{ readonly id: number }];
  const { terminal, results } = JSON.parse(ran.stdout);
  assert.deepEqual(results, [{ rows: [made], omitted: 0 }]);
  assert.deepEqual(Object.values(terminal.generated), [made.id]);
  const shown = await desk.run(['show', terminal.occurrence]);
  assert.match(shown.stdout, new RegExp(`Generated: .+ = ${made.id}$`, 'm'));
  const again = await desk.run(['run', 'license.json', ...add]);
  assert.match(again.stdout, new RegExp(`Generated: .+ = ${made.id}$`, 'm'));
  assert.doesNotMatch(again.stdout, /returned/);
});

test('rows are printed for a person too', async () => {
  using desk = new Desk();
  await openShop(desk);
  const statements = [
    { sql: 'update invoice set status = ? where id = ? returning id, status', values: ['paid', 1] },
    { sql: 'select id from invoice order by id' },
  ];
  writeFileSync(`${desk.folder}/action.json`, JSON.stringify({ statements }));
  const action = ['--action', 'action.json'];
  await desk.run(['plan', ...action, '--task', 'pay 1', '--out', 'proposal.json']);
  await desk.run(['approve', 'proposal.json', ...SIGN, '--out', 'license.json']);
  const { stdout } = await desk.run(['run', 'license.json', ...action]);
  assert.match(stdout, /^statement 1 returned 1 row:\n {2}\{"id":1,"status":"paid"\}$/m);
  assert.match(stdout, /^statement 2 returned \d+ rows:\n {2}\{"id":1\}/m);
});

test('a license for several executions needs to be told which one is meant', async () => {
  using desk = new Desk();
  await openShop(desk);
  writeFileSync(
    desk.path('propose.ts'),
    `import { writeFileSync } from 'node:fs';
    import { createRuntime, generated, insert } from 'effectmatch';
    import config from './effectmatch.config.ts';
    await using runtime = await createRuntime(config);
    const effects = [insert('notification', { id: generated('n'), invoice: 1, text: 'due' })];
    const request = { adapter: 'books', task: 'remind', planRevision: 1, occurrences: 2, effects };
    writeFileSync('proposal.json', JSON.stringify(await runtime.prepare(request)));`,
  );
  const proposed = spawnSync(process.execPath, ['propose.ts'], { cwd: desk.folder });
  assert.equal(proposed.status, 0, String(proposed.stderr));
  await desk.run(['approve', 'proposal.json', ...SIGN, '--out', 'license.json']);
  const remind = ['--sql', "insert into notification (invoice, text) values (1, 'due')"];
  const count = () => desk.query('select * from notification').length;
  const unclear = await desk.run(['run', 'license.json', ...remind]);
  assert.equal(unclear.code, 1);
  assert.match(unclear.stderr, /for 2 executions: say which one with --use 1 to --use 2/);
  assert.equal(count(), 0);
  for (const [use, made] of [
    [1, 1],
    [1, 1],
    [2, 2],
    [2, 2],
  ] as const) {
    const { code, stderr } = await desk.run([
      'run',
      'license.json',
      '--use',
      String(use),
      ...remind,
    ]);
    assert.equal(code, 0, stderr);
    assert.equal(count(), made);
  }
});
