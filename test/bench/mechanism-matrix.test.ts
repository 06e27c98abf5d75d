// Goal: every cell of the mechanism matrix is what durable state and dependent work say, and a
// broken runtime changes it. Method: one run of each cell; our column again with one mechanism
// switched off; labels from facts that were made up.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { type Facts, labelOf } from '../../bench/studies/mechanism-matrix/label.ts';
import { EFFECTMATCH, runOnce } from '../../bench/studies/mechanism-matrix/run.ts';
import { readLedgerFile } from '../../bench/studies/mechanism-matrix/saved.ts';
import { SCENARIOS, type Scenario } from '../../bench/studies/mechanism-matrix/scenarios.ts';
import { openSite } from '../../bench/studies/mechanism-matrix/site.ts';
import type { Change, Place } from '../../bench/studies/mechanism-matrix/task.ts';
import { mechanismMatrixStudy } from '../../bench/studies/mechanism-matrix.ts';
import { withoutComparison } from '../../bench/studies/public-outcomes/state-conditions.ts';
import { temporaryFolder } from '../../bench/temporary.ts';
import { demandRecomputed } from './recomputed.ts';

function scenarioNamed(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  assert.ok(found, name);
  return found;
}

test('all 78 cells end as they must, 48 of them as the paper says', async () => {
  const said: string[] = [];
  const cells = await mechanismMatrixStudy.run({
    quick: true,
    progress: (line) => said.push(line),
  });
  assert.deepEqual(
    cells.filter(({ ok }) => !ok),
    [],
    said.filter((line) => line.startsWith('NOT')).join('\n'),
  );
  assert.equal(cells.length, 13 * 6);
  demandRecomputed('mechanism-matrix', cells);
});

test('without one of its mechanisms EffectMatch ends in another cell', async () => {
  await using site = await openSite();
  const run = async (name: string, internals: Parameters<typeof runOnce>[3]) =>
    (await runOnce(site, scenarioNamed(name), EFFECTMATCH, internals)).label;
  assert.equal(await run('extra PostgreSQL write', withoutComparison), 'extra commit');
  assert.equal(
    await run('wrong-source target', { verifyLicense: () => true }),
    'accept local match',
  );
  const rehearsed = scenarioNamed('wrong source, rehearsed');
  const designated = { ...rehearsed, foreign: 'designated' } as const;
  assert.equal(
    (await runOnce(site, designated, EFFECTMATCH)).label,
    'accept local match',
    'nothing but the designation is refused',
  );
  const still = { ...scenarioNamed('stale selector'), drift: '' };
  assert.equal(
    (await runOnce(site, still, EFFECTMATCH)).label,
    'exact',
    'nothing but the drift is refused',
  );
});

test('a label follows from what is there and what ran, whatever a condition says about itself', () => {
  const paid: Change = { target: 'payment', before: null, after: { payee: 'acme', amount: 35 } };
  const notice: Change = { target: 'notice', before: null, after: { text: 'paid' } };
  const seen = { id: 7, owner: 'acme', tier: 'basic' };
  const promoted: Change = { target: 'account', before: seen, after: { ...seen, tier: 'gold' } };
  const other = { ...seen, owner: 'initech' };
  const stale: Change = { target: 'account', before: other, after: { ...other, tier: 'gold' } };
  const facts: Facts = {
    changes: [paid],
    approved: [paid],
    local: [paid],
    requests: 1,
    dependent: 1,
    readable: true,
    saved: 'none',
  };
  const cases: readonly (readonly [string, Partial<Facts>])[] = [
    ['exact', {}],
    ['stop without a reason', { dependent: 0 }],
    ['false alarm; stop', { dependent: 0, saved: 'different' }],
    ['reconcile', { dependent: 0, saved: 'open' }],
    ['diverged; stop', { changes: [paid, notice], dependent: 0, saved: 'different' }],
    ['uncertain; stop', { changes: [paid, notice], dependent: 0, saved: 'incomplete' }],
    ['extra; advance', { changes: [paid, notice], saved: 'different' }],
    ['extra commit', { changes: [notice, paid], dependent: undefined }],
    ['resend; duplicate', { changes: [paid, paid], requests: 2 }],
    ['extra; advance', { changes: [paid, paid] }],
    ['wrong commit', { changes: [notice], saved: 'complete' }],
    ['stale commit', { changes: [stale], approved: [promoted], local: [promoted] }],
    ['wrong commit', { changes: [promoted], approved: [paid, promoted] }],
    ['response; advance', { readable: false, saved: 'incomplete' }],
    ['accept local match', { approved: undefined }],
    ['nothing; advance', { changes: [] }],
    ['reject', { changes: [], dependent: 0 }],
    ['stop without a reason', { changes: [], dependent: 0, saved: 'complete' }],
    ['uncertain; stop', { changes: [], dependent: 0, saved: 'incomplete' }],
    ['dependent work repeated', { dependent: 2 }],
  ];
  for (const [label, changed] of cases)
    assert.equal(labelOf({ ...facts, ...changed }), label, JSON.stringify(changed));
});

test('our own column is read from the journal: a verdict without its evidence is not believed', () => {
  using folder = temporaryFolder();
  const place = { folder: folder.path } as Place;
  using db = new DatabaseSync(join(folder.path, 'ledger.db'));
  db.exec('create table journal (seq integer primary key, kind text, occurrence text, text text)');
  const add = (kind: string, occurrence: string, record: object) =>
    db
      .prepare('insert into journal (kind, occurrence, text) values (?, ?, ?)')
      .run(kind, occurrence, JSON.stringify(record));
  const saved = () => readLedgerFile(place, ['first', 'second']);
  assert.equal(saved(), 'none');
  add('terminal', 'first', { execution: 'refused', kind: 'rejected' });
  assert.equal(saved(), 'none', 'nothing was claimed');
  add('claim', 'first', { execution: 'one' });
  assert.equal(saved(), 'incomplete', 'a claim without a terminal');
  add('terminal', 'first', { execution: 'one', kind: 'committed' });
  add('terminal', 'first', { execution: 'again', kind: 'rejected' });
  assert.equal(saved(), 'complete', 'a replay does not shadow the execution');
  add('claim', 'second', { execution: 'two' });
  const none = { extra: [], missing: [], altered: [], omitted: 0 };
  add('terminal', 'second', { execution: 'two', kind: 'diverged', outcome: { diff: none } });
  assert.equal(saved(), 'complete', 'a divergence without a difference');
  const diff = { ...none, extra: [{}] };
  add('terminal', 'second', { execution: 'two', kind: 'diverged', outcome: { diff } });
  assert.equal(saved(), 'different');
});
