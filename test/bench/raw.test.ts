// Goal: a study that was interrupted goes on where it stopped; a finished one, or one whose inputs
// changed, starts again. Method: records in a separate folder, with half a line at the end as a
// killed process leaves it.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { keepFact, keepVerdict } from '../../bench/facts.ts';
import { codeFiles, fingerprintOf, RawRecords } from '../../bench/raw.ts';
import { compareFigures, recompute } from '../../bench/recompute.ts';
import { atMost, figure, medianCell } from '../../bench/study.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-raw-'));
const input = join(folder, 'input');
const name = `test-${process.pid}`;
const file = `bench/results/raw/${name}.jsonl`;
after(() => {
  rmSync(folder, { recursive: true });
  rmSync(file);
});

async function play(finish: boolean): Promise<readonly string[]> {
  const ran: string[] = [];
  const raw = new RawRecords(name, [input]);
  for (const run of ['one', 'two']) {
    const { value } = await raw.run(run, async () => {
      ran.push(run);
      return { value: 7 };
    });
    assert.equal(value, 7);
  }
  if (finish) raw.finish();
  return ran;
}

test('what was written is not run again until the study is finished or something changed', async () => {
  writeFileSync(input, 'a');
  assert.deepEqual(await play(false), ['one', 'two']);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  writeFileSync(file, `${lines.slice(0, -1).join('\n')}\n`);
  appendFileSync(file, '{"run":"tw');
  assert.deepEqual(await play(false), ['two'], 'half a record is none');
  assert.deepEqual(await play(true), []);
  assert.deepEqual(await play(false), ['one', 'two'], 'it was finished');
  writeFileSync(input, 'b');
  assert.deepEqual(await play(false), ['one', 'two'], 'its input changed');
});

test('two runs of one name are refused: one of them would count without having been run', async () => {
  const raw = new RawRecords(name, [input]);
  await raw.run('one', async () => ({}));
  await assert.rejects(
    raw.run('one', async () => ({})),
    /two runs are called "one"/,
  );
});

test('the fingerprint covers all code that a study can run, and nothing that it writes', () => {
  const files = codeFiles();
  for (const file of globSync('{src,bench,examples}/**/*.{ts,py}'))
    assert.ok(files.includes(file), file);
  for (const file of [
    'bench/studies/compare.py', // run by another interpreter
    'test/adapters/github/fault-server.ts', // imported by the study of backends
    'test/postgres/keeper.ts', // named by a URL and started as a process
    'package-lock.json', // which PostgreSQL, which parser
  ])
    assert.ok(files.includes(file), file);
  assert.ok(!files.some((file) => file.startsWith('bench/results/') || file.endsWith('.test.ts')));
});

test('the fingerprint depends on the options and on the content of every input', () => {
  writeFileSync(input, 'a');
  const before = fingerprintOf([input], { quick: false });
  assert.equal(fingerprintOf([input], { quick: false }), before);
  assert.notEqual(fingerprintOf([input], { quick: true }), before);
  assert.notEqual(fingerprintOf([], { quick: false }), before);
  writeFileSync(input, 'b');
  assert.notEqual(fingerprintOf([input], { quick: false }), before);
});

test('the fingerprint depends on the version of Node.js', () => {
  const before = fingerprintOf([]);
  const version = Object.getOwnPropertyDescriptor(process, 'version');
  assert.ok(version);
  Object.defineProperty(process, 'version', { ...version, value: 'v99.0.0' });
  try {
    assert.notEqual(fingerprintOf([]), before);
  } finally {
    Object.defineProperty(process, 'version', version);
  }
});

test('verdicts and facts of a run are kept with its record, and those of another run are not', async () => {
  const raw = new RawRecords(`${name}-facts`, [input]);
  const play = (kind: string) => async () => {
    await Promise.resolve();
    keepVerdict({ kind, occurrence: `occ ${kind}` });
    return { kind };
  };
  const [one, two] = await Promise.all([
    raw.run('one', play('committed')),
    raw.run('two', play('rejected')),
  ]);
  keepFact({ outside: true });
  const verdicts = [one, two].map(({ kept }) => JSON.stringify(kept));
  assert.match(String(verdicts[0]), /^\[\{"verdict":\{"kind":"committed".*occ committed/);
  assert.match(String(verdicts[1]), /^\[\{"verdict":\{"kind":"rejected".*occ rejected/);
  rmSync(file.replace(name, `${name}-facts`));
});

test('measured figures are made again from their samples; a wrong or unsupported one is named', () => {
  const sides = { of: [4, 8, 6], to: [2, 2, 4] };
  const cells = [
    medianCell('time', [3, 1, 2], 'us', 1000),
    atMost('ratio of medians', { statistic: 'ratio', ...sides }, 'x', 5),
    figure('median of ratios', { statistic: 'paired', ...sides }, 'x'),
    figure('median of differences', { statistic: 'increment', ...sides }, 'ms'),
  ];
  assert.deepEqual(
    cells.map(({ value }) => value),
    [2000, 3, 2, 2],
  );
  const samples = cells.flatMap(({ name: of, samples: kept }) =>
    kept === undefined ? [] : [{ ...kept, figure: of }],
  );
  const figures = recompute('cost', [], samples);
  assert.deepEqual(compareFigures(cells, figures), { differing: [], unsupported: [], count: 4 });
  const [first, ...rest] = cells;
  assert.ok(first);
  const said = [{ ...first, value: 1 }, ...rest, figure('invented', 1, 'x')];
  const { differing, unsupported } = compareFigures(said, figures);
  assert.deepEqual(
    [differing, unsupported].map((list) => list.map((cell) => cell.name)),
    [['time'], ['invented']],
  );
});

test('recomputing loads nothing of the runtime', () => {
  const found = new Set(['bench/recompute.ts']);
  for (const one of found)
    for (const [, path = ''] of readFileSync(one, 'utf8').matchAll(
      /^(?:import|export) (?!type )[^;]*?'(\.[^']+)';/gms,
    ))
      found.add(join(dirname(one), path));
  assert.ok(found.has('bench/recompute/mechanisms.ts'));
  assert.deepEqual(
    [...found].filter((one) => !one.startsWith('bench/')),
    [],
  );
});
