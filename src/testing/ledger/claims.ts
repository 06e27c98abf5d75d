import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ledgers } from '../../contract/ledgers.ts';
import { digestRecord, occurrenceId } from '../../crypto/digest.ts';
import { licenseRecord } from '../../protocol/license.ts';
import type { ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import { failsWith } from '../fails-with.ts';
import {
  announcedPlan,
  claimFixture,
  fixtureContext,
  fixtureExecution,
  fixtureLicense,
  fixtureRequest,
  fixtureTerminal,
} from './fixtures.ts';
import { type LedgerKit, openBench } from './kit.ts';

async function holds(
  ledgers: Ledgers,
  occurrence: OccurrenceId,
  execution: ExecutionId,
): Promise<boolean> {
  return (await ledgers.standing('any task', { occurrence, execution })).holds;
}

/** Each occurrence of a license is claimed once, in whatever order attempts ask for it. */
export function claimTests(kit: LedgerKit): void {
  test('a license that buys one occurrence claims once, also when ten attempts ask at once', async () => {
    await using bench = await openBench(kit);
    const license = fixtureLicense('once');
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        bench.ledgers.claim(
          fixtureRequest(bench.context, license, fixtureExecution(`attempt ${index}`)),
        ),
      ),
    );
    const claimed = results.filter((result) => result.kind === 'claimed');
    const refused = results.filter((result) => result.kind === 'refused');
    assert.equal(claimed.length, 1);
    assert.deepEqual(new Set(refused.map(({ reason }) => reason)), new Set(['spent']));
    const occurrence = occurrenceId({
      ...license,
      license: digestRecord(licenseRecord, license),
      index: 0,
    });
    const holder = await bench.ledgers.holder(occurrence);
    assert.deepEqual(holder?.claim, claimed[0]?.claim);
    assert.deepEqual(holder?.license, license);
    assert.equal(holder?.approvedText, JSON.stringify({ outcome: license.approved }));
  });

  test('a license that buys three occurrences claims three different ones in order and then is spent', async () => {
    await using bench = await openBench(kit);
    const license = fixtureLicense('three', { occurrences: 3 });
    const lineage = digestRecord(licenseRecord, license);
    for (const index of [0, 1, 2]) {
      const request = fixtureRequest(bench.context, license, fixtureExecution(`attempt ${index}`));
      const result = await bench.ledgers.claim(request);
      assert.ok(result.kind === 'claimed');
      assert.equal(
        result.claim.record.occurrence,
        occurrenceId({ ...license, license: lineage, index }),
      );
    }
    const fourth = await bench.ledgers.claim(
      fixtureRequest(bench.context, license, fixtureExecution('attempt 3')),
    );
    assert.ok(fourth.kind === 'refused' && fourth.reason === 'spent');
    assert.equal((await bench.ledgers.journal()).length, 3);
  });

  test('a second license with the same issuer and nonce is refused, and the first one keeps its claim', async () => {
    await using bench = await openBench(kit);
    const claim = await claimFixture(bench.ledgers, bench.context, 'first');
    const other = { ...fixtureLicense('first'), task: 'another task' };
    const result = await bench.ledgers.claim(
      fixtureRequest(bench.context, other, fixtureExecution('other')),
    );
    assert.ok(result.kind === 'refused' && result.reason === 'nonce-reused');
    assert.deepEqual((await bench.ledgers.holder(claim.record.occurrence))?.claim, claim);
    assert.equal((await bench.ledgers.journal()).length, 1);
  });

  test('the same nonce of another issuer makes a separate issuance', async () => {
    await using bench = await openBench(kit);
    await claimFixture(bench.ledgers, bench.context, 'shared nonce');
    await claimFixture(bench.ledgers, bench.context, 'shared nonce', {
      license: { issuer: 'another-team' },
    });
    assert.equal((await bench.ledgers.journal()).length, 2);
  });

  test('a license of an older plan revision no longer claims, one of the announced or a newer revision does', async () => {
    await using bench = await openBench(kit);
    const task = 'invoice 4711';
    assert.equal(await announcedPlan(bench.ledgers, task), undefined);
    assert.equal(await bench.ledgers.announcePlan(task, 3), 3);
    assert.equal(await bench.ledgers.announcePlan(task, 2), 3);
    assert.equal(await announcedPlan(bench.ledgers, task), 3);
    const older = fixtureLicense('older', { task, planRevision: 2 });
    const refused = await bench.ledgers.claim(
      fixtureRequest(bench.context, older, fixtureExecution('older')),
    );
    assert.ok(refused.kind === 'refused' && refused.reason === 'plan-superseded');
    assert.deepEqual(await bench.ledgers.journal(), []);
    await claimFixture(bench.ledgers, bench.context, 'announced', {
      license: { task, planRevision: 3 },
    });
    await claimFixture(bench.ledgers, bench.context, 'newer', {
      license: { task, planRevision: 4 },
    });
    await claimFixture(bench.ledgers, bench.context, 'other task', {
      license: { planRevision: 0 },
    });
  });

  test('a claim that this deployment did not seal is refused and spends nothing', async () => {
    await using bench = await openBench(kit);
    const license = fixtureLicense('forged');
    const execution = fixtureExecution('forger');
    const honest = fixtureRequest(bench.context, license, execution);
    const forged = fixtureRequest(fixtureContext('another deployment'), license, execution);
    await failsWith('ERR_EM_SEAL_INVALID', bench.ledgers.claim({ ...honest, claim: forged.claim }));
    assert.deepEqual(await bench.ledgers.journal(), []);
    assert.equal((await bench.ledgers.claim(honest)).kind, 'claimed');
  });

  test('a claim for another occurrence or license than the one chosen is a broken invariant and spends nothing', async () => {
    await using bench = await openBench(kit);
    const honest = fixtureRequest(
      bench.context,
      fixtureLicense('honest'),
      fixtureExecution('honest'),
    );
    const other = fixtureRequest(
      bench.context,
      fixtureLicense('other'),
      fixtureExecution('honest'),
    );
    const elsewhere = occurrenceId({
      issuer: 'x',
      nonce: 'y',
      license: other.binding.license,
      index: 0,
    });
    await failsWith(
      'ERR_EM_INVARIANT',
      bench.ledgers.claim({ ...honest, claim: () => honest.claim(elsewhere) }),
    );
    await failsWith('ERR_EM_INVARIANT', bench.ledgers.claim({ ...honest, claim: other.claim }));
    await failsWith('ERR_EM_INVARIANT', bench.ledgers.claim({ ...honest, binding: other.binding }));
    const rebound = { ...honest.binding, occurrences: [elsewhere] };
    await failsWith('ERR_EM_INVARIANT', bench.ledgers.claim({ ...honest, binding: rebound }));
    assert.deepEqual(await bench.ledgers.journal(), []);
    assert.equal((await bench.ledgers.claim(honest)).kind, 'claimed');
  });

  test('an attempt that fails while its claim is made spends nothing', async () => {
    await using bench = await openBench(kit);
    const request = fixtureRequest(
      bench.context,
      fixtureLicense('failing'),
      fixtureExecution('failing'),
    );
    const failing = (): never => {
      throw new Error('no claim today');
    };
    await assert.rejects(bench.ledgers.claim({ ...request, claim: failing }), /no claim today/);
    assert.equal((await bench.ledgers.claim(request)).kind, 'claimed');
  });

  test('only the holder extends a lease, and it never becomes shorter', async () => {
    await using bench = await openBench(kit);
    const { occurrence, execution } = (
      await claimFixture(bench.ledgers, bench.context, 'leased', { leaseMs: 0 })
    ).record;
    const before = await bench.ledgers.holder(occurrence);
    assert.equal(before?.leaseExpired, true);
    assert.equal(
      await bench.ledgers.renew(occurrence, fixtureExecution('someone else'), 60_000),
      false,
    );
    assert.equal(await holds(bench.ledgers, occurrence, fixtureExecution('someone else')), false);
    assert.equal(await holds(bench.ledgers, occurrence, execution), true);
    assert.equal((await bench.ledgers.holder(occurrence))?.leaseExpired, true);
    assert.equal(await bench.ledgers.renew(occurrence, execution, 60_000), true);
    const renewed = await bench.ledgers.holder(occurrence);
    assert.equal(renewed?.leaseExpired, false);
    assert.ok((renewed?.leaseUntilMs ?? 0) >= (before?.leaseUntilMs ?? 0) + 60_000);
    assert.equal(await bench.ledgers.renew(occurrence, execution, 1), true);
    assert.equal((await bench.ledgers.holder(occurrence))?.leaseUntilMs, renewed?.leaseUntilMs);
    await bench.ledgers.abandon(occurrence, fixtureExecution('someone else'));
    assert.equal(
      (await bench.ledgers.holder(occurrence))?.leaseExpired,
      false,
      'only who holds it gives it up',
    );
    await bench.ledgers.abandon(occurrence, execution);
    assert.equal((await bench.ledgers.holder(occurrence))?.leaseExpired, true);
    const unknown = occurrenceId({
      ...fixtureLicense('unknown'),
      license: renewed?.claim.record.license ?? before.claim.record.license,
      index: 0,
    });
    assert.equal(await bench.ledgers.renew(unknown, execution, 60_000), false);
    assert.equal(await holds(bench.ledgers, unknown, execution), false);
    assert.equal(await bench.ledgers.holder(unknown), undefined);
  });

  test('a settled claim is still held by its execution, and has no lease that could be waited for or extended', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record } = await claimFixture(ledgers, context, 'settled');
    await ledgers.record(fixtureTerminal(context, record, 'committed'), 'flushed');
    for (const renewed of [false, true]) {
      if (renewed)
        assert.equal(await ledgers.renew(record.occurrence, record.execution, 60_000), true);
      const holder = await ledgers.holder(record.occurrence);
      assert.deepEqual([holder?.leaseUntilMs, holder?.leaseExpired], [0, true]);
      assert.equal(await holds(ledgers, record.occurrence, record.execution), true);
    }
    const other = fixtureExecution('someone else');
    assert.equal(await ledgers.renew(record.occurrence, other, 60_000), false);
    assert.equal(await holds(ledgers, record.occurrence, other), false);
    assert.deepEqual(await ledgers.unsettled({ includeLeased: true }), []);
  });

  test('unsettled lists claims past their lease that have no conclusive terminal, oldest first', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const names = [
      'none',
      'indeterminate',
      'committed',
      'rejected',
      'diverged',
      'leased',
      'replayed',
    ];
    const claims = new Map<string, Awaited<ReturnType<typeof claimFixture>>['record']>();
    for (const name of names) {
      const leaseMs = name === 'leased' ? 60_000 : 0;
      claims.set(name, (await claimFixture(ledgers, context, name, { leaseMs })).record);
    }
    for (const kind of ['indeterminate', 'committed', 'rejected', 'diverged'] as const) {
      await ledgers.record(
        fixtureTerminal(context, claims.get(kind) ?? assert.fail(), kind),
        'flushed',
      );
    }
    const replay = { execution: fixtureExecution('replay') };
    await ledgers.record(
      fixtureTerminal(context, claims.get('replayed') ?? assert.fail(), 'rejected', replay),
      'flushed',
    );
    const listed = async (includeLeased: boolean): Promise<readonly string[]> =>
      (await ledgers.unsettled({ includeLeased })).map(({ claim }) => claim.record.task);
    assert.deepEqual(await listed(false), ['task none', 'task indeterminate', 'task replayed']);
    assert.deepEqual(await listed(true), [
      'task none',
      'task indeterminate',
      'task leased',
      'task replayed',
    ]);
    await ledgers.record(
      fixtureTerminal(context, claims.get('indeterminate') ?? assert.fail(), 'committed'),
      'flushed',
    );
    assert.deepEqual(await listed(false), ['task none', 'task replayed']);
  });
}
