// Goal: several statements, SQL in a file and SQL that begins with a comment need no JSON, and mean
// the same to plan and run. Method: the real commands on a real SQLite file.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { Desk, SHOP } from './newcomer.ts';

async function openShop(): Promise<Desk> {
  const desk = new Desk();
  desk.change(SHOP);
  const { code, stderr } = await desk.run(['init', 'books.db', '--approver', 'alice']);
  assert.equal(code, 0, stderr);
  return desk;
}

/** Plans, signs and runs, each with its own way of saying the action. */
async function commit(desk: Desk, planned: readonly string[], run = planned): Promise<void> {
  const files = { force: '--force', key: ['--key', 'alice.key.json', '--yes'] };
  for (const words of [
    ['plan', ...planned, '--out', 'proposal.json', files.force],
    ['approve', 'proposal.json', ...files.key, '--out', 'license.json', files.force],
    ['run', 'license.json', ...run],
  ]) {
    const { code, stdout, stderr } = await desk.run(words);
    assert.equal(code, 0, stdout + stderr);
  }
}

const SCRIPT = `-- pays two; nothing else
update invoice set status = 'paid; in full' where id = 1;
/* and the other; */
update invoice set status = 'paid' -- the second;
  where id = 2;
`;
const STATEMENTS = [
  "update invoice set status = 'paid' where id = 2",
  "-- the last one\nupdate invoice set status = 'paid' where id = 3",
];

test('a file with several statements is planned and run as one action', async () => {
  using desk = await openShop();
  writeFileSync(desk.path('pay.sql'), `\uFEFF${SCRIPT}`);
  await commit(desk, ['--file', 'pay.sql']);
  assert.deepEqual(desk.query('select id, status from invoice where id < 3 order by id'), [
    { id: 1, status: 'paid; in full' },
    { id: 2, status: 'paid' },
  ]);
});

test('--sql may be repeated, with values for each, and may begin with a comment', async () => {
  using desk = await openShop();
  const [second = '', third = ''] = STATEMENTS;
  await commit(desk, ['--sql', second, '--sql', third]);
  const bound = ['--sql', '-- again\nupdate invoice set status = ? where id = ?'];
  await commit(desk, [
    ...bound,
    ...['--values', '["open", 2]', '--sql', "update invoice set status = 'open' where id = 3"],
    ...['--values', '[]'],
  ]);
  assert.deepEqual(desk.query('select id, status from invoice where id > 1 order by id'), [
    { id: 2, status: 'open' },
    { id: 3, status: 'open' },
  ]);
});

test('a license for a file is good for the same statements given one by one', async () => {
  using desk = await openShop();
  writeFileSync(desk.path('pay.sql'), `${STATEMENTS.join(';\n')};`);
  await commit(
    desk,
    ['--file', 'pay.sql'],
    STATEMENTS.flatMap((sql) => ['--sql', sql]),
  );
});

test('what cannot be divided or combined is refused, and nothing is run', async () => {
  using desk = await openShop();
  writeFileSync(desk.path('own.sql'), 'begin; update invoice set status = 1; commit;');
  writeFileSync(desk.path('empty.sql'), '-- nothing\n');
  for (const [words, message] of [
    [['--file', 'own.sql'], /ERR_EM_ACTION_INVALID: statement 1 begins with BEGIN/],
    [['--file', 'empty.sql'], /ERR_EM_ACTION_INVALID: the script has no statement/],
    [['--file', 'none.sql'], /ERR_EM_NOT_FOUND: .*none\.sql does not exist/],
    [['--file', 'own.sql', '--sql', 'select 1'], /say what to run: one of/],
    [['--file', 'own.sql', '--values', '[]'], /--values needs --sql/],
    [
      ['--sql', 'select ?', '--sql', 'select ?', '--values', '[1]'],
      /--sql is given 2 times and --values 1 times/,
    ],
    [['--sql', '--full'], /--sql needs a value/],
    [['--sql', 'select 1', '--set', 'app.actor'], /--set takes a name and a value/],
    [['--sql', 'select 1', '--set', 'a.b=1', '--set', 'a.b=2'], /--set gives a\.b twice/],
    [
      ['--sql', 'select 1', '--set', 'app.actor=alice'],
      /ERR_EM_MANIFEST_INVALID: adapter "books" has no session settings, so app\.actor cannot be set/,
    ],
  ] as const) {
    const { code, stderr } = await desk.run(['plan', ...words]);
    assert.equal(code, 1, words.join(' '));
    assert.match(stderr, message);
  }
});
