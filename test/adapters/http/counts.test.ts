// Goal: a small license that stands for very many effects costs nothing: it is refused before
// anything is claimed or sent, and a read-back of such an approval gives up at once. Method: counts
// of ten million on HTTP adapters, in licenses that no `prepare` has made; time and memory are
// measured.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RemoteAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { any, count, insert } from '../../../src/protocol/draft.ts';
import { prepareApproved } from '../../../src/protocol/match.ts';
import { classify } from '../../../src/protocol/outcome.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import type { AdmittedRemote } from '../../../src/runtime/deployment.ts';
import { readBack } from '../../../src/runtime/remote.ts';
import { multiply } from '../../runtime/multiply.ts';
import { openRig, PAYMENT } from './rig.ts';

const MANY = 10_000_000;
const OCCURRENCE = `occ_${'0'.repeat(40)}` as OccurrenceId;

/** Runs the work and demands that it took neither long nor much. */
async function cheaply<T>(work: () => Promise<T>): Promise<T> {
  const before = process.memoryUsage().heapUsed;
  const { user } = process.cpuUsage();
  const result = await work();
  assert.ok(process.cpuUsage().user - user < 3_000_000, 'it took seconds');
  assert.ok(process.memoryUsage().heapUsed - before < 200 << 20, 'it took hundreds of megabytes');
  return result;
}

for (const capability of ['MEDIATED', 'OPAQUE'] as const) {
  test(`${capability}: ten million effects are refused before the claim, and nothing is sent`, async () => {
    await using rig = await openRig(capability);
    const runtime = await rig.start();
    const license = rig.sign(multiply(await runtime.prepare(PAYMENT), MANY));
    const arrived = rig.account.arrivals.size;
    const terminal = await cheaply(() => runtime.execute(license, rig.action));
    assert.equal(
      terminal.kind === 'rejected' && `${terminal.at} ${terminal.reason}`,
      'authority too-many-effects',
    );
    assert.match(renderTerminal(terminal), /10000000 changes .* 10000/);
    assert.equal(rig.account.arrivals.size, arrived);
    assert.deepEqual(await runtime.recover({ now: true }), []);
  });

  test(`${capability}: ten million effects cannot be prepared`, async () => {
    await using rig = await openRig(capability);
    const runtime = await rig.start();
    const effects = PAYMENT.effects.map((effect) => count(effect, MANY));
    await cheaply(() =>
      assert.rejects(runtime.prepare({ ...PAYMENT, effects }), { code: 'ERR_EM_MANIFEST_INVALID' }),
    );
  });

  test(`${capability}: an adapter that is asked to read ten million effects back gives up`, async () => {
    await using rig = await openRig(capability);
    const runtime = await rig.start();
    const { approved } = multiply(await runtime.prepare(PAYMENT), MANY);
    const opened = await rig
      .factory()
      .open({ name: 'bank', clock: systemClock, reached: unobserved });
    const adapter = opened as RemoteAdapter;
    const evidence = await cheaply(() =>
      adapter.readBack(OCCURRENCE, undefined, approved).catch(() => undefined),
    );
    assert.ok(evidence === undefined || evidence.channels.every(({ kind }) => kind === 'silent'));
  });
}

test('a claim of ten million effects that is already in the ledger is left to an operator, and no adapter is asked', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const { approved } = multiply(await runtime.prepare(PAYMENT), MANY);
  const adapter = { readBack: () => assert.fail('the adapter was asked') };
  const admitted = { adapter, registration: approved.registration } as unknown as AdmittedRemote;
  const { outcome } = await readBack(admitted, OCCURRENCE, approved, undefined);
  assert.equal(outcome.kind, 'INDETERMINATE');
  assert.match(JSON.stringify(outcome), /10000000 changes/);
});

test('ten million approved effects that one observed effect is compared with cost nothing', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const effects = [insert('payment', { id: any(), payee: 'acme', amount: any(), memo: null })];
  const { approved } = multiply(await runtime.prepare({ ...PAYMENT, effects }), MANY);
  const seen = {
    op: 'insert',
    target: 'payment',
    key: { id: 'x' },
    after: { payee: 'acme', amount: 1, memo: null },
  };
  const outcome = await cheaply(async () =>
    classify(
      prepareApproved(approved),
      { kind: 'complete', effects: [seen as never] },
      { assigned: [], window: { fromMs: 0, toMs: 0 } },
    ),
  );
  assert.equal(outcome.kind, 'DIVERGED');
});
