// Goal: an operator sees what happened in order, and finds out when somebody altered it. Method: a
// real store with a known sequence of rows, read by real processes; then altered or cut with plain
// SQL.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { createRuntime, insert } from '../../src/index.ts';
import { Office, runCommand, startCommand } from './command.ts';
import { makePayments, paying, proposePayment } from './payments.ts';

const office = new Office();
after(() => office[Symbol.dispose]());
const { committed, diverged, refused } = await makePayments(office);
const run = (...args: string[]) => runCommand(['journal', ...args], { cwd: office.folder });
const entriesOf = (stdout: string) =>
  (
    JSON.parse(stdout) as {
      entries: { seq: number; kind: string; record: { occurrence: string } }[];
    }
  ).entries;

test('rows are listed newest last: time, what happened, occurrence, task; a verdict with its reason, changes and approver', async () => {
  const { code, stdout, stderr } = await run();
  assert.equal(code, 0);
  assert.equal(stderr, '');
  const short = (occurrence: string) => occurrence.slice(0, 16);
  const [first, second, third] = [committed, diverged, refused].map(({ occurrence }) =>
    short(occurrence),
  );
  const rows = stdout
    .trimEnd()
    .replace(/^( +\d+ {2})\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/gm, '$1time')
    .split('\n');
  assert.deepEqual(rows, [
    `    1  time  claimed        ${first}  invoice-1`,
    `    2  time  committed      ${first}  invoice-1`,
    '       ~1 invoice on books; approved by ap-team',
    `    3  time  released       ${first}  invoice-1`,
    '       reconcile',
    `    4  time  completed      ${first}  invoice-1`,
    '       reconcile',
    `    5  time  rejected       ${first}  invoice-1`,
    '       authority: spent; on books; approved by ap-team',
    `    6  time  claimed        ${second}  invoice-2`,
    `    7  time  rejected       ${second}  invoice-2`,
    '       comparison: diverged; on books; approved by ap-team',
    `    8  time  rejected       ${third}  invoice-3`,
    '       authority: not-yet-valid; on books',
  ]);
});

test('no row is wider than the terminal, however long its task and its tables are called', async () => {
  using wide = new Office();
  const tables = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(60));
  for (const table of tables) wide.change(`create table ${table} (id integer primary key)`);
  const books = sqlite({ file: wide.path('books.db'), relations: tables });
  await using runtime = await createRuntime({ ...wide.config, adapters: { books } });
  const proposal = await runtime.prepare({
    adapter: 'books',
    task: 'a task with a name that does not fit into its column',
    planRevision: 1,
    effects: tables.map((table) => insert(table, { id: 1 })),
  });
  const statements = tables.map((table) => ({ sql: `insert into ${table} values (1)` }));
  const license = wide.approver.sign(proposal, { expiresIn: '1h' });
  assert.equal((await runtime.execute(license, { statements })).kind, 'committed');
  const list = (columns: string) =>
    runCommand(['journal'], { cwd: wide.folder, env: { COLUMNS: columns } });
  for (const columns of [72, 80, 100]) {
    const lines = (await list(String(columns))).stdout.trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => line.length <= columns),
      [true, true, true],
    );
    assert.match(lines[1] ?? '', / a task w.*…$/);
    assert.match(lines[2] ?? '', /^ {7}\+1 a+.*…$/);
  }
  const { stdout } = await list('');
  assert.match(
    stdout,
    /does not fit into its column\n.* and 1 more on books; approved by ap-team\n/,
  );
});

test('limit, after and kind choose rows', async () => {
  const cases: [string[], number[]][] = [
    [
      ['--limit', '2'],
      [7, 8],
    ],
    [
      ['--after', '5'],
      [6, 7, 8],
    ],
    [
      ['--after', '2', '--limit', '2'],
      [3, 4],
    ],
    [
      ['--kind', 'terminal', '--limit', '2'],
      [7, 8],
    ],
    [['--kind', 'claim', '--after', '1'], [6]],
    [['--kind', 'permit'], []],
  ];
  const ended = await Promise.all(cases.map(([args]) => run('--json', ...args)));
  for (const [index, [args, seqs]] of cases.entries()) {
    assert.deepEqual(
      entriesOf(ended[index]?.stdout ?? '').map(({ seq }) => seq),
      seqs,
      args.join(' '),
    );
  }
});

test('an unknown kind and flags that do not belong together are refused', async () => {
  const cases: [string[], RegExp][] = [
    [['--kind', 'verdict'], /--kind takes one of claim, permit/],
    [['--verify', '--limit', '3'], /--limit cannot be combined with --verify/],
    [['--verify', '--checkpoint'], /--checkpoint cannot be combined with --verify/],
    [['--export', 'x.json'], /--export needs --checkpoint/],
  ];
  const ended = await Promise.all(cases.map(([args]) => run(...args)));
  for (const [index, [, sentence]] of cases.entries()) {
    assert.equal(ended[index]?.code, 1);
    assert.match(ended[index]?.stderr ?? '', sentence);
  }
});

test('a checkpoint is exported to a new file from where the command was called, and the journal agrees with it', async () => {
  const sealed = await runCommand(
    [
      'journal',
      '--checkpoint',
      '--export',
      'books.checkpoint',
      '--config',
      office.path('effectmatch.config.ts'),
    ],
    { cwd: office.subfolder('elsewhere') },
  );
  assert.equal(sealed.code, 0, sealed.stderr);
  assert.match(sealed.stdout, /^sealed rows 1 to 8/);
  const file = office.path('elsewhere/books.checkpoint');
  const before = readFileSync(file, 'utf8');
  const again = await run('--checkpoint', '--export', file);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /exists and is never overwritten/);
  assert.equal(readFileSync(file, 'utf8'), before);

  const verified = await run('--verify', '--against', file);
  assert.equal(verified.code, 0, verified.stderr);
  assert.match(verified.stdout, /^intact: 8 rows, 8 of them/);
  assert.match(verified.stdout, /exported checkpoint over rows 1 to 8/);
});

test('what is not an exported checkpoint of this deployment proves nothing and is refused', async () => {
  const forged = JSON.parse(readFileSync(office.path('elsewhere/books.checkpoint'), 'utf8'));
  const cases: [string, string, string][] = [
    ['absent.json', '', 'ERR_EM_NOT_FOUND'],
    ['text.json', 'rows 1 to 8 are fine', 'ERR_EM_USAGE'],
    ['null.json', 'null', 'ERR_EM_USAGE'],
    [
      'forged.json',
      JSON.stringify({ ...forged, text: forged.text.replace('"rows":8', '"rows":9') }),
      'ERR_EM_SEAL_INVALID',
    ],
  ];
  for (const [name, content, code] of cases) {
    if (content !== '') writeFileSync(office.path(name), content);
    const ended = await run('--verify', '--against', name, '--json');
    assert.equal(ended.code, 1, name);
    assert.equal(JSON.parse(ended.stdout).error.code, code, name);
  }
});

test('an altered row is found out, and so is a store put back to an earlier day once a checkpoint was exported', async () => {
  await run('--checkpoint');
  const copy = (from: string, to: string) => {
    for (const suffix of ['', '-wal', '-shm']) {
      if (existsSync(office.path(from + suffix)))
        copyFileSync(office.path(from + suffix), office.path(to + suffix));
    }
  };
  for (const [name, sql] of [
    [
      'altered',
      `update journal set text = replace(text, '"rejected"', '"committed"') where seq = 7`,
    ],
    ['shortened', 'delete from checkpoint; delete from journal where seq > 7'],
  ] as const) {
    copy('effectmatch.db', `${name}.db`);
    {
      using db = new DatabaseSync(office.path(`${name}.db`));
      db.exec(`pragma foreign_keys = off; ${sql}`);
    }
    office.writeConfig({ store: `'${name}.db'` }, `${name}.config.ts`);
    const ended = await run(
      '--verify',
      '--against',
      'elsewhere/books.checkpoint',
      '--config',
      `${name}.config.ts`,
    );
    assert.equal(ended.code, 1, name);
    assert.equal(ended.stdout, '');
    assert.match(ended.stderr, /^error ERR_EM_JOURNAL_TAMPERED: the journal was tampered with: /);
    assert.match(ended.stderr, /\nnext: stop using this store/);
  }
});

test('--follow prints what is there and what is recorded later, and ends with Ctrl-C', async (t) => {
  using other = new Office();
  await makePayments(other);
  const { child, ended } = startCommand(['journal', '--follow', '--kind', 'terminal'], {
    cwd: other.folder,
  });
  t.after(() => child.kill());
  const printed: string[] = [];
  const until = async (lines: number) => {
    while (printed.join('').split('\n').length <= lines) {
      const chunk = await once(child.stdout, 'data');
      printed.push(String(chunk[0]));
    }
  };
  await until(8);
  await using runtime = await createRuntime(other.config);
  const license = other.approver.sign(await proposePayment(runtime, 3), { expiresIn: '1h' });
  const { occurrence } = await runtime.execute(license, paying(3));
  await until(10);
  assert.match(printed.join(''), new RegExp(` committed +${occurrence.slice(0, 16)}`));
  child.kill('SIGINT');
  assert.equal((await ended).code, 0);
});
