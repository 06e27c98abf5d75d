// Goal: the boundary inventory and the integrated study end as they must, and would say so if they
// did not. Method: both studies with one repetition on real servers; then constructions with
// expectations that are wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHANNEL, type Construction } from '../../bench/studies/boundary/constructions.ts';
import { listen } from '../../bench/studies/boundary/ear.ts';
import { EXEC, openSite } from '../../bench/studies/boundary/site.ts';
import { runTrial } from '../../bench/studies/boundary/trial.ts';
import { boundaryStudy } from '../../bench/studies/boundary.ts';
import { integratedStudy } from '../../bench/studies/integrated.ts';
import type { Study } from '../../bench/study.ts';
import { demandRecomputed } from './recomputed.ts';

async function runQuickly(study: Study) {
  const said: string[] = [];
  const cells = await study.run({ quick: true, progress: (line) => said.push(line) });
  assert.deepEqual(
    cells.filter(({ ok }) => !ok),
    [],
    said.filter((line) => line.startsWith('NOT')).join('\n'),
  );
  demandRecomputed(study.name, cells);
  return new Map(cells.map(({ name, value }) => [name, value]));
}

test('of the 21 constructions 8 pass and 13 are refused, each for its own reason', async () => {
  const cells = await runQuickly(boundaryStudy);
  assert.equal(cells.get('all, pass'), 8);
  assert.equal(cells.get('all, refuse'), 13);
});

test('every integrated scenario ends as it must, durably', async () => {
  assert.equal((await runQuickly(integratedStudy)).size, 9);
});

const host = {
  group: 'host/network',
  name: 'host role',
  open: `grant pg_write_server_files to ${EXEC}`,
  close: `revoke pg_write_server_files from ${EXEC}`,
} as const;
const WRONG: readonly (readonly [Construction, RegExp])[] = [
  [{ ...host, expected: { kind: 'committed' } }, /rejected at boundary/],
  [
    { ...host, expected: { kind: 'refused', at: 'boundary', open: /dblink/ } },
    /open was .*pg_write_server_files/,
  ],
  [
    { ...host, close: '', expected: { kind: 'refused', at: 'boundary', open: /pg_write/ } },
    /cannot be approved.*pg_write_server_files/,
  ],
];

test('a trial that does not end as expected, or for another reason, does not count', async () => {
  await using site = await openSite();
  await using ear = await listen(site.db, CHANNEL);
  for (const [construction, complaint] of WRONG) {
    assert.match(
      (await runTrial(site, ear, construction)) ?? 'nothing to complain about',
      complaint,
    );
  }
  await site.db.run(host.close);
  const drift = { group: 'function/configuration drift', name: 'none' } as const;
  const nothing = await runTrial(site, ear, {
    ...drift,
    expected: { kind: 'refused', at: 'final-gate' },
  });
  assert.equal(nothing, 'committed');
  await site.db.run(`notify ${CHANNEL}, 'x'`);
  const heard = await runTrial(site, ear, { ...drift, expected: { kind: 'committed' } });
  assert.equal(heard, 'a notification arrived: x');
});
