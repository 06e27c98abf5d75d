// Goal: an operator finds the rows about one task, operation, adapter, disposition or time, and
// never misses one. Method: a real store with rows of known kinds; the expected rows are found by
// looking at all of them, without the filter.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { type Arguments, readArguments } from '../../src/cli/command.ts';

import {
  createMatcher,
  FILTER_FLAGS,
  readFilter,
  readJournalRows,
} from '../../src/cli/journal-rows.ts';
import type { JournalEntry } from '../../src/contract/ledgers.ts';
import { createRuntime, defineOperation, update } from '../../src/index.ts';
import { Office, startCommand } from './command.ts';
import { makePayments, paying } from './payments.ts';

const office = new Office();
after(() => office[Symbol.dispose]());
await makePayments(office);
const runtime = await createRuntime({
  ...office.config,
  operations: {
    late: defineOperation<number>({
      name: 'late',
      adapter: 'books',
      input: {
        '~standard': {
          version: 1,
          vendor: 'test',
          validate: (value) => ({ value: value as number }),
        },
      },
      approve: (id) => ({ effects: [update('invoice', { id }, { status: ['pending', 'paid'] })] }),
      action: paying,
      bindAction: false,
    }),
  },
});
after(() => runtime.close());
const proposal = await runtime.propose('late', 3, { task: 'by contract', planRevision: 1 });
await runtime.execute(office.approver.sign(proposal, { expiresIn: '1h' }), paying(3));
await runtime.shadow({ adapter: 'books', task: 'looked at', planRevision: 1 }, paying(2));
const all = await runtime.ledgers.journal({ limit: 1000 });

const argumentsOf = (...words: string[]): Arguments =>
  readArguments('journal', words, { flags: FILTER_FLAGS });
const NOW = Date.now();
const choose = async (limit: number, from: number | undefined, ...words: string[]) => {
  const matches = createMatcher(runtime.ledgers, readFilter(argumentsOf(...words), NOW));
  return (await readJournalRows(runtime.ledgers, { limit, after: from, matches })).map(
    ({ seq }) => seq,
  );
};
const seqs = (test: (entry: JournalEntry) => boolean) => all.filter(test).map(({ seq }) => seq);

test('each filter chooses the rows that are about it, also those that name only their occurrence', async () => {
  assert.ok(
    all.some(({ kind }) => kind === 'acknowledgement'),
    'there are rows without a task of their own',
  );
  const occurrencesOf = (task: string) =>
    new Set(
      all.flatMap(({ record }) =>
        'task' in record && record.task === task ? [record.occurrence] : [],
      ),
    );
  const first = occurrencesOf('invoice-1');
  const contracted = occurrencesOf('by contract');
  const cases: [string[], number[]][] = [
    [['--task', 'invoice-1'], seqs(({ record }) => first.has(record.occurrence))],
    [['--task', 'nobody knows'], []],
    [['--operation', 'late'], seqs(({ record }) => contracted.has(record.occurrence))],
    [['--operation', 'other'], []],
    [
      ['--disposition', 'rejected'],
      seqs((entry) => entry.kind === 'terminal' && entry.record.kind === 'rejected'),
    ],
    [['--disposition', 'diverged'], []],
    [['--adapter', 'books'], seqs(() => true)],
    [['--adapter', 'bank'], []],
    [['--kind', 'shadow'], seqs(({ kind }) => kind === 'shadow')],
    [['--task', 'looked at'], seqs(({ kind }) => kind === 'shadow')],
    [
      ['--kind', 'claim', '--task', 'invoice-1'],
      seqs(({ kind, record }) => kind === 'claim' && first.has(record.occurrence)),
    ],
    [['--since', '1h'], seqs(() => true)],
    [['--until', '1h'], []],
  ];
  for (const [words, expected] of cases) {
    assert.deepEqual(await choose(1000, undefined, ...words), expected, words.join(' '));
    assert.deepEqual(await choose(1000, 0, ...words), expected, `${words.join(' ')}, forwards`);
  }
  const rejected = seqs((entry) => entry.kind === 'terminal' && entry.record.kind === 'rejected');
  assert.deepEqual(
    await choose(1, undefined, '--disposition', 'rejected'),
    rejected.slice(-1),
    'the newest',
  );
  assert.deepEqual(
    await choose(1, 0, '--disposition', 'rejected'),
    rejected.slice(0, 1),
    'the first after a row',
  );
});

test('since is included, until is not, and a time says its zone', async () => {
  const [verdict] = all.filter((entry) => entry.kind === 'terminal');
  const at = verdict?.kind === 'terminal' ? verdict.record.recordedAt : assert.fail();
  const seq = verdict?.seq ?? 0;
  assert.ok((await choose(1000, 0, '--since', at)).includes(seq));
  assert.ok(!(await choose(1000, 0, '--until', at)).includes(seq));
  const later = new Date(Date.parse(at) + 1).toISOString();
  assert.ok(!(await choose(1000, 0, '--since', later)).includes(seq));
  const filter = readFilter(
    argumentsOf('--since', '2026-11-15T08:00:00+01:00', '--until', '2026-11-16'),
    NOW,
  );
  assert.deepEqual(
    [filter.sinceMs, filter.untilMs],
    [Date.UTC(2026, 10, 15, 7), Date.UTC(2026, 10, 16)],
  );
  assert.equal(
    readFilter(argumentsOf('--since', '90m'), 10_000_000).sinceMs,
    10_000_000 - 5_400_000,
  );
});

test('words and times that mean nothing are refused', () => {
  for (const words of [
    ['--disposition', 'accepted'],
    ['--kind', 'verdict'],
    ['--since', '2026-11-15T08:00:00'],
    ['--since', 'yesterday'],
    ['--until', '2026-13-01'],
    ['--since', '2026-02-30'],
    ['--since', '2026-04-31T08:00:00Z'],
    ['--until', '0h'],
  ]) {
    assert.throws(
      () => readFilter(argumentsOf(...words), NOW),
      /takes (one of|a time)/,
      words.join(' '),
    );
  }
});

test('--follow with --json prints one row per line, and only those asked for', async () => {
  const { child, ended } = startCommand(
    ['journal', '--follow', '--json', '--disposition', 'rejected'],
    {
      cwd: office.folder,
    },
  );
  let printed = '';
  const rejected = seqs((entry) => entry.kind === 'terminal' && entry.record.kind === 'rejected');
  const until = async (lines: number) => {
    while (printed.split('\n').length <= lines)
      printed += String((await once(child.stdout, 'data'))[0]);
  };
  await until(rejected.length);
  const license = office.approver.sign(
    await runtime.propose('late', 2, { task: 'more', planRevision: 1 }),
    {
      expiresIn: '1h',
    },
  );
  await runtime.execute(license, paying(1));
  await until(rejected.length + 1);
  child.kill('SIGINT');
  assert.equal((await ended).code, 0);
  const rows = printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    rows.slice(0, -1).map(({ seq }) => seq),
    rejected,
  );
  assert.deepEqual([rows.at(-1).record.kind, rows.at(-1).record.task], ['rejected', 'more']);
});
