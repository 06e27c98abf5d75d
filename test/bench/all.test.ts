// Goal: `all` runs every study whatever becomes of the others, goes on after an interruption, and
// Ctrl-C leaves only records. Method: studies that end as told, then the command itself in a
// separate process with separate folders.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Course, runAll } from '../../bench/all.ts';
import { measuresTime, STUDY_NAMES } from '../../bench/catalogue.ts';
import { findData } from '../../bench/data/folder.ts';
import { STATE_FILES } from '../../bench/data/state-bench.ts';
import { TOOLSANDBOX_FILES } from '../../bench/data/toolsandbox.ts';
import { readPublished } from '../../bench/published.ts';
import { RawRecords } from '../../bench/raw.ts';
import {
  atLeast,
  atMost,
  drawing,
  exactly,
  figure,
  missedTargets,
  NotRun,
  reproduced,
} from '../../bench/study.ts';
import { whyAbsent } from './absent.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-all-'));
const results = join(folder, 'results');
const temporary = join(folder, 'temporary');
// A server may run as another user, who has to get there.
chmodSync(folder, 0o711);
mkdirSync(temporary, { mode: 0o711 });
after(() => rmSync(folder, { recursive: true }));

function environment(): NodeJS.ProcessEnv {
  const { EFFECTMATCH_TEST_POSTGRES: _, EFFECTMATCH_SERVER_TMPDIR: __, ...rest } = process.env;
  return { ...rest, EFFECTMATCH_BENCH_RESULTS: results, TMPDIR: temporary };
}

/** The command with its results and everything temporary in this test's folder. */
function bench(...given: readonly string[]): ChildProcess & { readonly said: () => string } {
  const child = spawn(process.execPath, ['--no-warnings', 'bench/main.ts', ...given], {
    env: environment(),
    stdio: 'pipe',
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return Object.assign(child, { said: () => text });
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let waited = 0; !holds(); waited += 20) {
    if (waited > 60_000) assert.fail(`never: ${what}`);
    await sleep(20);
  }
}

/** One study at a time, in order. */
function courseOf(start: (name: string) => Promise<void>): Course {
  return { start, isAlone: () => true, seconds: () => 0, lanes: 2, say: () => {} };
}

test('a failed study stops no other and is the only one that the next run starts', async () => {
  process.env.EFFECTMATCH_BENCH_RESULTS = results;
  const open = () => new RawRecords('all-test', [], 1);
  const play = async (breaks: string, done: RawRecords) => {
    const started: string[] = [];
    const start = async (name: string) => {
      started.push(name);
      if (name === breaks) throw new Error('broken');
      if (name === 'absent') throw new NotRun('no data');
    };
    const summary = await runAll(['one', 'absent', 'two', 'three'], courseOf(start), done);
    return { started, ...summary };
  };
  assert.deepEqual(await play('two', open()), {
    started: ['one', 'absent', 'two', 'three'],
    ran: ['one', 'three'],
    kept: [],
    notRun: ['absent'],
    failed: ['two'],
  });
  assert.deepEqual(await play('', open()), {
    started: ['absent', 'two'],
    ran: ['two'],
    kept: ['one', 'three'],
    notRun: ['absent'],
    failed: [],
  });
  assert.deepEqual((await play('', open())).kept, [], 'that run was finished');
});

test('a study that measures time runs alone; the others run in pairs, the longest first', async () => {
  const running = new Set<string>();
  const beside = new Map<string, readonly string[]>();
  const ends = new Map<string, () => void>();
  const said: string[] = [];
  const course: Course = {
    async start(name) {
      for (const other of running) beside.set(other, [...(beside.get(other) ?? []), name]);
      beside.set(name, [...running]);
      running.add(name);
      if (name.startsWith('time')) await sleep(5);
      else await new Promise<void>((resolve) => ends.set(name, resolve));
      running.delete(name);
      if (name === 'count 9') throw new Error('broken');
    },
    isAlone: (name) => name.startsWith('time'),
    seconds: (name) => Number(name.split(' ')[1]),
    ...{ lanes: 2, say: (line) => said.push(line) },
  };
  const names = ['count 1', 'time 1', 'count 9', 'count 5', 'time 2'];
  const all = runAll(names, course, new RawRecords('pairs', [], 1));
  await until('two run', () => running.size === 2 && running.has('count 5'));
  assert.deepEqual([...running], ['count 9', 'count 5']);
  ends.get('count 9')?.();
  await until('the third runs', () => running.has('count 1'));
  for (const name of ['count 5', 'count 1']) ends.get(name)?.();
  const summary = await all;
  assert.deepEqual(summary.ran, ['count 1', 'time 1', 'count 5', 'time 2']);
  assert.deepEqual(summary.failed, ['count 9']);
  for (const name of ['time 1', 'time 2']) assert.deepEqual(beside.get(name), []);
  assert.ok(said.includes('4 of 5: count 5, beside count 9'), said.join('\n'));
});

test('no published study that counts judges a time', () => {
  for (const { study, cells } of readPublished())
    if (!measuresTime(study))
      for (const { name, target = '= 0' } of cells)
        assert.match(target, /^= /, `${study}: ${name} is judged by a bound`);
  assert.ok(STUDY_NAMES.some(measuresTime) && !STUDY_NAMES.every(measuresTime));
});

test('another seed draws other numbers and starts other records', async () => {
  const draw = (seed: number) => Array.from({ length: 5 }, drawing(seed));
  assert.deepEqual(draw(7), draw(7));
  assert.notDeepEqual(draw(7), draw(8));
  assert.ok(draw(7).every((drawn) => drawn >= 0 && drawn < 1));
  const ran: number[] = [];
  for (const seed of [7, 8, 8]) {
    await new RawRecords('seed-test', [], seed).run('one', async () => ({ order: ran.push(seed) }));
  }
  assert.deepEqual(ran, [7, 8], 'the third goes on with the second');
});

test('the command reports absent data as not run and a failed study by its exit code', async () => {
  const data = join(folder, 'data');
  mkdirSync(join(data, 'toolsandbox'), { recursive: true });
  for (const file of TOOLSANDBOX_FILES) writeFileSync(join(data, file), '{');
  const all = bench('all', 'information', 'backends', '--quick', '--data', data, '--seed', '5');
  assert.deepEqual(await once(all, 'close'), [1, null], all.said());
  assert.match(all.said(), /not run: information\n/);
  assert.match(all.said(), /FAILED: backends/);
  const written = (study: string) =>
    JSON.parse(readFileSync(join(results, `${study}-quick.json`), 'utf8'));
  assert.match(written('information').notRun, /state-bench/);
  assert.equal(written('information').context.seed, 5);
  assert.equal(written('information').context.seeded, null, 'the study says that it draws nothing');
  assert.ok(written('backends').failed.length > 0);
  assert.deepEqual(readdirSync(temporary), []);
});

test('Ctrl-C keeps what was recorded, and the next run goes on from there', {
  skip: whyAbsent(STATE_FILES),
}, async () => {
  const data = ['--data', findData(undefined, STATE_FILES)];
  const raw = join(results, 'raw', 'information.jsonl');
  const records = () => (existsSync(raw) ? readFileSync(raw, 'utf8').split('\n').slice(0, -1) : []);
  const first = bench('all', 'information', ...data);
  await until('three records', () => records().length >= 4);
  first.kill('SIGINT');
  assert.deepEqual(await once(first, 'close'), [130, null], first.said());
  const kept = records();
  assert.deepEqual(readdirSync(temporary), []);
  const second = bench('information', ...data);
  await until('more records', () => records().length > kept.length);
  second.kill('SIGINT');
  await once(second, 'close');
  assert.deepEqual(records().slice(0, kept.length), kept);
});

test('Ctrl-C ends the servers of a study and leaves no folder', async () => {
  const server = () => readdirSync(temporary).find((name) => name.startsWith('effectmatch-pg-'));
  const study = bench('integrated', '--quick');
  const postmaster = () => {
    const file = join(temporary, server() ?? '-', 'data', 'postmaster.pid');
    return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0; // Empty before it is written.
  };
  await until('a server', () => postmaster() > 0);
  const pid = postmaster();
  study.kill('SIGINT');
  assert.deepEqual(await once(study, 'close'), [130, null], study.said());
  await until('the server is gone', () => server() === undefined);
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  assert.deepEqual(readdirSync(temporary), []);
});

test('Ctrl-C in a terminal ends studies that run beside each other, with their servers', async () => {
  const servers = () =>
    readdirSync(temporary).filter((name) =>
      existsSync(join(temporary, name, 'data', 'postmaster.pid')),
    );
  const given = ['--no-warnings', 'bench/main.ts', 'all', 'integrated', 'trace', '--quick'];
  // A group of its own, as a terminal's: the signal reaches all of its processes at once.
  const all = spawn(process.execPath, given, {
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let said = '';
  all.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await until('two servers', () => servers().length === 2);
  process.kill(-(all.pid ?? 0), 'SIGINT');
  assert.deepEqual(await once(all, 'close'), [130, null], said);
  assert.match(said, /2 of 2: \w+, beside \w+\n[\s\S]*\ninterrupted: /);
  assert.equal(said.match(/interrupted: /g)?.length, 1, said);
  await until('the servers are gone', () => readdirSync(temporary).length === 0);
});

test('a killed "all" takes its studies along, and they remove its folders', async () => {
  const all = bench('all', 'integrated', '--quick');
  await until('a server', () => readdirSync(temporary).some((name) => /-pg-/.test(name)));
  all.kill('SIGKILL');
  await until('nothing is left', () => readdirSync(temporary).length === 0);
});

test('a study that counts must not judge a time: it shares the machine', () => {
  const given = ['--no-warnings', '--import', resolve('test/bench/miss-a-target.ts')];
  const env = { ...process.env, EFFECTMATCH_BENCH_RESULTS: results };
  const { status, stderr } = spawnSync(
    process.execPath,
    [...given, 'bench/main.ts', 'information', '--quick'],
    { encoding: 'utf8', env },
  );
  assert.equal(status, 1);
  assert.match(stderr, /"timed on purpose" is judged, so information has to be one of the timed/);
});

test('a folder that is named and does not exist fails clearly, before anything runs', async () => {
  const absent = join(folder, 'absent');
  for (const given of [['information'], ['compare', '--quick'], ['all', 'information']]) {
    const child = bench(...given, '--data', absent);
    assert.deepEqual(await once(child, 'close'), [1, null], child.said());
    assert.match(child.said(), /^There is no folder ".*absent", which --data names\.[^\n]*\n$/);
  }
  process.env.EFFECTMATCH_DATA = absent;
  try {
    const child = bench('information');
    assert.deepEqual(await once(child, 'close'), [1, null], child.said());
    assert.match(child.said(), /which EFFECTMATCH_DATA names/);
    assert.throws(
      () => whyAbsent(STATE_FILES),
      /EFFECTMATCH_DATA/,
      'a test must not skip for it either',
    );
  } finally {
    delete process.env.EFFECTMATCH_DATA;
  }
});

test('a strict run judges every target, a quick one the counts only', () => {
  const cells = [
    exactly('right', 3, 'runs', 3),
    exactly('wrong', 2, 'runs', 3),
    reproduced('other than the paper', 1, 'runs', 0),
    atMost('slow', 9, 'x', 3),
    atLeast('few', 1, 'op/s', 3),
    figure('only told', 1, 'ms'),
  ];
  const missed = (quick: boolean) => missedTargets(cells, quick).map(({ name }) => name);
  assert.deepEqual(missed(true), ['wrong', 'other than the paper']);
  assert.deepEqual(missed(false), ['wrong', 'other than the paper', 'slow', 'few']);
});

test('with --strict a missed count and a study that was not run fail, each by name', async () => {
  const broken = [
    '--no-warnings',
    '--import',
    resolve('test/bench/miss-a-target.ts'),
    'bench/main.ts',
  ];
  for (const [strict, code] of [
    [[], 0],
    [['--strict'], 3],
  ] as const) {
    const { status, stderr } = spawnSync(
      process.execPath,
      [...broken, 'compare', '--quick', ...strict],
      {
        encoding: 'utf8',
        env: { ...process.env, EFFECTMATCH_BENCH_RESULTS: results },
      },
    );
    assert.equal(status, code, stderr);
    assert.equal(/MISSED: wrong on purpose: 1, target = 2/.test(stderr), code === 3);
  }
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const notRun = bench('information', '--strict', '--data', empty);
  assert.deepEqual(await once(notRun, 'close'), [3, null], notRun.said());
  assert.match(notRun.said(), /NOT RUN: .*state-bench/);
});

test('a command that cannot be meant says what there is, without a stack', async () => {
  for (const [given, says] of [
    [['cost', '--nonsense'], /Unknown option '--nonsense'[\s\S]*Usage: npm run bench/],
    [['nonsense'], /There is no study "nonsense"[\s\S]*pg-cost/],
    [['cost', '--seed', '-1x'], /--seed/],
  ] as const) {
    const child = bench(...given);
    assert.deepEqual(await once(child, 'close'), [1, null]);
    assert.match(child.said(), says);
    assert.doesNotMatch(child.said(), /\n\s+at /);
  }
});
