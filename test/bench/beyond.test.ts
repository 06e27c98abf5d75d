// Goal: the studies of the trace, of escapes, of concurrency, of crashes and of further mechanisms
// end as they must in small, and say so if they do not. Method: each once on real backends; then the
// mechanism that it measures is broken in a copy, or the facts are in what was recorded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawRecords } from '../../bench/raw.ts';
import { runPair } from '../../bench/studies/ablations/pair.ts';
import { openSqliteCounter, runWriters } from '../../bench/studies/concurrency/writers.ts';
import { concurrencyStudy, raceCells } from '../../bench/studies/concurrency.ts';
import { openLocal } from '../../bench/studies/crashes/local.ts';
import { crashCells, crashesStudy } from '../../bench/studies/crashes.ts';
import { classCells, escapesStudy, tierCells } from '../../bench/studies/escapes.ts';
import { MORE_PAIRS, moreAblationsStudy } from '../../bench/studies/more-ablations.ts';
import { PEER_CASES } from '../../bench/studies/peers/books.ts';
import { PEER_CONDITIONS } from '../../bench/studies/peers/conditions.ts';
import { peerCells, peersStudy, runPeer } from '../../bench/studies/peers.ts';
import { withoutComparison } from '../../bench/studies/public-outcomes/state-conditions.ts';
import { starter } from '../../bench/studies/recovery/case-run.ts';
import { type InvoiceTrace, runTrace, traceCells, traceStudy } from '../../bench/studies/trace.ts';
import type { Cell, Study } from '../../bench/study.ts';
import { temporaryFolder } from '../../bench/temporary.ts';
import { unmarkedBackend } from '../crash/backends/unmarked.ts';
import { Pool } from '../crash/pool.ts';
import { ESCAPES } from '../escapes/cases/postgres.ts';
import { runEscapes } from '../escapes/runner.ts';
import { startServer } from '../postgres/server.ts';
import { demandRecomputed } from './recomputed.ts';

for (const study of [
  traceStudy,
  escapesStudy,
  concurrencyStudy,
  crashesStudy,
  peersStudy,
  moreAblationsStudy,
] satisfies Study[])
  test(`${study.name}: in small, every figure is what it must be`, async () => {
    const cells = await study.run({ quick: true, progress: () => {} });
    assert.ok(cells.length >= 3);
    assert.deepEqual(missed(cells), []);
    demandRecomputed(study.name, cells);
  });

function missed(cells: readonly Cell[]): readonly string[] {
  return cells.filter(({ ok }) => !ok).map(({ name }) => name);
}

const REJECTED: InvoiceTrace = {
  verdict: 'rejected at comparison: DIVERGED',
  extra: ['insert notification 1'],
  status: 'pending',
  notifications: 0,
  workers: [
    { terminal: 'rejected', release: 'not-committed' },
    { terminal: 'rejected', release: 'not-committed' },
  ],
  replay: 'rejected at authority: spent',
};
const COMMITTED: InvoiceTrace = {
  verdict: 'committed',
  extra: [],
  status: 'paid',
  notifications: 0,
  workers: [
    { terminal: 'committed', release: 'released' },
    { terminal: 'committed', release: 'already-released' },
  ],
  replay: 'rejected at authority: spent',
};

test('trace: a commit in spite of the trigger, a doubled or a lost release is noticed', () => {
  assert.deepEqual(missed(traceCells([REJECTED], [COMMITTED])), []);
  const wrong = (trigger: Partial<InvoiceTrace>, control: Partial<InvoiceTrace> = {}) =>
    missed(traceCells([{ ...REJECTED, ...trigger }], [{ ...COMMITTED, ...control }])).length;
  assert.equal(wrong({ verdict: 'committed' }), 1);
  assert.equal(wrong({ extra: [] }), 1);
  assert.equal(wrong({ status: 'paid', notifications: 1 }), 1);
  assert.equal(wrong({ workers: REJECTED.workers.slice(1) }), 1);
  assert.equal(wrong({ workers: COMMITTED.workers }), 1);
  assert.equal(wrong({ replay: 'committed' }), 1);
  const both = { terminal: 'committed', release: 'released' };
  assert.equal(wrong({}, { workers: [both, both] }), 1);
  assert.equal(wrong({}, { workers: REJECTED.workers, status: 'pending' }), 2);
});

test('trace: without the comparison the notification is durable, and the study says so', async () => {
  using folder = temporaryFolder();
  await using server = await startServer();
  const start = starter(folder.path);
  const trace = await runTrace(server, start, 'trigger', withoutComparison);
  assert.equal(trace.notifications, 1);
  assert.equal(missed(traceCells([trace], [COMMITTED])).length, 4);
});

test('escapes: an attempt that ends in another way, or leaves something durable, is noticed', () => {
  const cases = ESCAPES.cases.filter(({ name }) => name.startsWith('statement: ')).slice(0, 8);
  const runs = cases.map(({ name }) => ({
    name,
    expected: 'observed DIVERGED',
    found: 'committed',
    ok: false,
    violation: 'a row is durable',
  }));
  const cells = classCells(cases, runs);
  assert.ok(cells.some(({ name, ok }) => name === 'statement: committed' && !ok));
  assert.equal(missed(tierCells('server', runs)).length, 2);
});

test('concurrency: two commits, a lost one, two releases or a wrong row are noticed', () => {
  const right = { backend: 'b', committed: 1, spent: 3, others: [], released: 1 };
  const wrong = (change: Partial<typeof right>, violations: readonly string[] = []) =>
    missed(raceCells([{ races: [right, { ...right, ...change }], violations }], 4)).length;
  assert.equal(wrong({}), 0);
  assert.equal(wrong({ committed: 2, spent: 2 }), 1);
  assert.equal(wrong({ committed: 0, spent: 4 }), 1);
  assert.equal(wrong({ released: 2 }), 1);
  assert.equal(wrong({}, ['a row is there twice']), 1);
});

test('crashes: a finding counts against every kill of its installation', () => {
  const planned = ['path:staged'];
  const round = { backend: 'b', planned, died: planned, violations: [] as string[], left: [] };
  assert.deepEqual(missed(crashCells([round])), []);
  const spoiled = missed(crashCells([round, { ...round, violations: ['a row is there twice'] }]));
  assert.deepEqual(spoiled, ['path:staged | b', 'wrong or lost verdicts']);
  const left = [{ step: 'path:staged', why: 'no marker' }];
  assert.deepEqual(missed(crashCells([{ ...round, left }])), ['left to a person: anything else']);
  const survived = missed(crashCells([round, { ...round, died: [] }]));
  assert.deepEqual(survived, ['path:staged | b', 'processes killed'], 'one was not killed');
  const sent = { ...round, planned: ['adapter:connected'], died: ['adapter:connected'] };
  const lost = 'left to a person: requests that may be on their way';
  assert.deepEqual(missed(crashCells([sent])), [lost], 'it was settled, and nothing can tell');
});

test('peers: a wrong result of ours is a missed target, and a run that does nothing is not clean', async () => {
  const [clean, trigger] = PEER_CASES;
  const ours = PEER_CONDITIONS.find(({ name }) => name === 'EffectMatch');
  const rows = PEER_CONDITIONS.find(({ name }) => name === 'transaction with row count');
  assert.ok(clean && trigger && ours && rows);
  const passed = await runPeer({ ...rows, name: 'EffectMatch' }, trigger);
  assert.equal(passed.end, 'wrong');
  const stopped = await runPeer(ours, trigger);
  assert.equal(stopped.end, 'nothing');
  const idle = await runPeer({ name: 'EffectMatch', run: async () => {} }, clean);
  assert.deepEqual(missed(peerCells([passed, idle], 1)), [
    'EffectMatch: trigger',
    'clean runs that are committed',
  ]);
});

/** Keeps nothing. */
const RAW = { run: (_: string, work: () => Promise<object>) => work() } as unknown as RawRecords;

test('more-ablations: a system that lacks one of the mechanisms is noticed', async () => {
  for (const { controls: _, ...pair } of MORE_PAIRS) {
    const cells = await runPair({ ...pair, runs: () => pair.runs(true) }, 1, RAW, true);
    const stopped = cells.find(({ name }) => name.endsWith('full, stopped'));
    assert.deepEqual([stopped?.value, stopped?.ok], [0, false], pair.name);
  }
});

test('concurrency: without the comparison, writers of one row all commit, and the study says so', async () => {
  const cells = await runWriters(
    RAW,
    { writers: 3, rounds: 1, backends: [openSqliteCounter], internals: withoutComparison },
    () => {},
  );
  assert.deepEqual(missed(cells), ['SQLite: 3 writers on the same row, one commits']);
});

test('crashes: without markers a killed execution gets a wrong verdict, and the study says so', async () => {
  await using site = await openLocal(unmarkedBackend);
  const pool = new Pool(4);
  try {
    const round = await site.round(pool);
    const wrong = missed(crashCells([round]));
    assert.ok(wrong.includes('path:promoted | sqlite-unmarked'), wrong.join());
    assert.ok(wrong.includes('wrong or lost verdicts'), round.left.map(({ why }) => why).join());
  } finally {
    await pool.close();
  }
});

test('escapes: without the comparison an observed attempt is durable, and the study says so', async () => {
  const cases = ESCAPES.cases
    .filter(({ expectation, setup }) => expectation.kind === 'observed' && setup === undefined)
    .slice(0, 1);
  const { results } = await runEscapes({ ...ESCAPES, cases }, { internals: withoutComparison });
  const runs = results.map(({ violation = null, ...result }) => ({ ...result, violation }));
  assert.equal(missed(tierCells('server', runs)).length, 2, JSON.stringify(runs));
});
