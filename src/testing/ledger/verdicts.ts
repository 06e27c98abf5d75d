import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import type { ClaimRecord } from '../../protocol/binding.ts';
import { type Terminal, type TerminalOf, terminalRecord } from '../../protocol/terminal.ts';
import { failsWith } from '../fails-with.ts';
import {
  claimFixture,
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixturePermit,
  fixtureReplay,
  fixtureTerminal,
} from './fixtures.ts';
import { type LedgerKit, openBench } from './kit.ts';

const KINDS = ['committed', 'rejected', 'diverged', 'indeterminate'] as const;
const LATER = { recordedAt: '2026-01-01T11:00:00.000Z' };

/** Terminals and permits: how an attempt ended is decided once. */
export function verdictTests(kit: LedgerKit): void {
  for (const kind of KINDS) {
    test(`the same ${kind} verdict from a second writer is agreement and returns what was stored first`, async () => {
      await using bench = await openBench(kit);
      const { record: claim } = await claimFixture(bench.ledgers, bench.context, kind);
      const first = fixtureTerminal(bench.context, claim, kind);
      assert.deepEqual(await bench.ledgers.record(first, 'flushed'), first.record);
      const second = fixtureTerminal(bench.context, claim, kind, LATER);
      assert.deepEqual(await bench.ledgers.record(second, 'flushed'), first.record);
      assert.deepEqual(await bench.ledgers.terminal(claim.occurrence), first.record);
      assert.deepEqual(await bench.ledgers.attempts(claim.occurrence), [first.record]);
    });
  }

  test('two conclusive verdicts that differ conflict, and the first one stands', async () => {
    const pairs = KINDS.flatMap((first) => KINDS.map((second) => [first, second] as const));
    await using bench = await openBench(kit);
    for (const [first, second] of pairs) {
      if (first === second || first === 'indeterminate') continue;
      const { record: claim } = await claimFixture(
        bench.ledgers,
        bench.context,
        `${first} then ${second}`,
      );
      const stored = await bench.ledgers.record(
        fixtureTerminal(bench.context, claim, first),
        'flushed',
      );
      const other = fixtureTerminal(bench.context, claim, second);
      await failsWith('ERR_EM_TERMINAL_CONFLICT', bench.ledgers.record(other, 'flushed'));
      assert.deepEqual(await bench.ledgers.attempts(claim.occurrence), [stored]);
    }
  });

  test('committed with another observed outcome is a conflict and not agreement', async () => {
    await using bench = await openBench(kit);
    const { record: claim } = await claimFixture(bench.ledgers, bench.context, 'observed');
    await bench.ledgers.record(fixtureTerminal(bench.context, claim, 'committed'), 'relaxed');
    const other = fixtureTerminal(bench.context, claim, 'committed', {
      observed: fixtureDigest('something else'),
    });
    await failsWith('ERR_EM_TERMINAL_CONFLICT', bench.ledgers.record(other, 'relaxed'));
  });

  for (const kind of ['committed', 'rejected', 'diverged'] as const) {
    test(`an indeterminate terminal is settled once, by ${kind}, and then only agreement is accepted`, async () => {
      await using bench = await openBench(kit);
      const { context, ledgers } = bench;
      const { record: claim } = await claimFixture(ledgers, context, kind);
      const open = await ledgers.record(
        fixtureTerminal(context, claim, 'indeterminate'),
        'flushed',
      );
      const settled = await ledgers.record(fixtureTerminal(context, claim, kind), 'flushed');
      assert.equal(settled.kind, kind);
      assert.deepEqual(
        await ledgers.record(fixtureTerminal(context, claim, kind, LATER), 'flushed'),
        settled,
      );
      const late = fixtureTerminal(context, claim, 'indeterminate', LATER);
      assert.deepEqual(
        await ledgers.record(late, 'flushed'),
        settled,
        'a late doubt learns what is settled',
      );
      for (const other of ['committed', 'rejected', 'diverged'] as const) {
        if (other === kind) continue;
        await failsWith(
          'ERR_EM_TERMINAL_CONFLICT',
          ledgers.record(fixtureTerminal(context, claim, other), 'flushed'),
        );
      }
      assert.deepEqual(await ledgers.terminal(claim.occurrence), settled);
      assert.deepEqual(await ledgers.attempts(claim.occurrence), [open, settled]);
    });
  }

  test('replays are separate attempts and never shadow the holder of the claim, before or after it ends', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'held');
    const early = await ledgers.record(fixtureReplay(context, claim, 'early'), 'flushed');
    assert.equal(await ledgers.terminal(claim.occurrence), undefined);
    const committed = await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'relaxed');
    const late = await ledgers.record(fixtureReplay(context, claim, 'late'), 'flushed');
    assert.deepEqual(await ledgers.terminal(claim.occurrence), committed);
    assert.deepEqual(await ledgers.attempts(claim.occurrence), [early, committed, late]);
  });

  test('an attempt refused before anybody claimed is journaled and leaves the license usable', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    await using elsewhere = await openBench(kit);
    const { record: claim } = await claimFixture(elsewhere.ledgers, context, 'stale');
    const refused = await ledgers.record(fixtureReplay(context, claim, 'stale replay'), 'flushed');
    assert.equal(await ledgers.terminal(claim.occurrence), undefined);
    assert.deepEqual(await ledgers.attempts(claim.occurrence), [refused]);
    assert.equal(
      (await claimFixture(ledgers, context, 'stale')).record.occurrence,
      claim.occurrence,
    );
  });

  test('an attempt that does not hold the claim can end as rejected and nothing else', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'held');
    const execution = fixtureExecution('someone else');
    for (const kind of ['committed', 'diverged', 'indeterminate'] as const) {
      const terminal = fixtureTerminal(context, claim, kind, { execution });
      await failsWith('ERR_EM_CLAIM_LOST', ledgers.record(terminal, 'flushed'));
    }
    const named = fixtureTerminal(context, claim, 'rejected', {
      execution,
      claim: fixtureDigest('a claim that is gone'),
    });
    await failsWith('ERR_EM_CLAIM_LOST', ledgers.record(named, 'flushed'));
    assert.deepEqual(await ledgers.attempts(claim.occurrence), []);
  });

  test('a terminal that names another claim, license, outcome or t_c than the stored claim is never recorded', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'held');
    const other = fixtureDigest('other');
    const wrong: readonly Partial<Extract<Terminal, { kind: 'committed' }>>[] = [
      { claim: other },
      { lineage: other },
      { approved: other },
      { claimedAt: '2026-01-01T09:00:00.000Z' },
      { consumedAt: '2026-01-01T09:59:59.999Z' },
    ];
    for (const overrides of wrong) {
      const terminal = fixtureTerminal(context, claim, 'committed', overrides);
      await failsWith('ERR_EM_INVARIANT', ledgers.record(terminal, 'relaxed'));
    }
    assert.equal(await ledgers.terminal(claim.occurrence), undefined);
  });

  test('a terminal or permit that this deployment did not seal is refused', async () => {
    await using bench = await openBench(kit);
    const { record: claim } = await claimFixture(bench.ledgers, bench.context, 'held');
    const stranger = fixtureContext('another deployment');
    const terminal = fixtureTerminal(stranger, claim, 'committed');
    await failsWith('ERR_EM_SEAL_INVALID', bench.ledgers.record(terminal, 'flushed'));
    await failsWith(
      'ERR_EM_SEAL_INVALID',
      bench.ledgers.consumePermit(fixturePermit(stranger, claim)),
    );
    assert.equal((await bench.ledgers.journal()).length, 1);
  });

  test('a permit is consumed once, and voiding it later returns the permit that won', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'remote');
    const permit = fixturePermit(context, claim);
    assert.equal(await ledgers.permit(claim.occurrence), undefined);
    assert.deepEqual(await ledgers.consumePermit(permit), { kind: 'consumed' });
    assert.deepEqual(await ledgers.consumePermit(permit), { kind: 'spent' });
    const state = { kind: 'consumed', permit };
    assert.deepEqual(await ledgers.voidPermit(claim.occurrence, claim.execution), state);
    assert.deepEqual(await ledgers.permit(claim.occurrence), state);
    assert.equal(
      (await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'flushed')).kind,
      'committed',
    );
  });

  test('a voided permit can never be consumed, and nothing but rejected follows it', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'paused');
    assert.deepEqual(await ledgers.voidPermit(claim.occurrence, claim.execution), { kind: 'void' });
    assert.deepEqual(await ledgers.voidPermit(claim.occurrence, claim.execution), { kind: 'void' });
    assert.deepEqual(await ledgers.consumePermit(fixturePermit(context, claim)), { kind: 'void' });
    for (const kind of ['committed', 'diverged', 'indeterminate'] as const) {
      await failsWith(
        'ERR_EM_INVARIANT',
        ledgers.record(fixtureTerminal(context, claim, kind), 'flushed'),
      );
    }
    assert.equal(
      (await ledgers.record(fixtureTerminal(context, claim, 'rejected'), 'flushed')).kind,
      'rejected',
    );
  });

  test('consuming and voiding at once have one winner, and both sides see the same one', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    for (let round = 0; round < 10; round += 1) {
      const { record: claim } = await claimFixture(ledgers, context, `race ${round}`);
      const voiding = (): Promise<unknown> => ledgers.voidPermit(claim.occurrence, claim.execution);
      const consuming = (): Promise<unknown> =>
        ledgers.consumePermit(fixturePermit(context, claim));
      await Promise.all(round % 2 === 0 ? [voiding(), consuming()] : [consuming(), voiding()]);
      const fence = (await ledgers.journal({ last: true, limit: 1 }))[0];
      const state = await ledgers.permit(claim.occurrence);
      assert.equal(fence?.kind, state?.kind === 'consumed' ? 'permit' : 'void');
      assert.equal((await ledgers.journal({ limit: 1000 })).length, (round + 1) * 2);
    }
  });

  test('no permit is consumed after its attempt has ended, or by an execution that does not hold the claim', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'ended');
    const stranger = { ...claim, execution: fixtureExecution('someone else') };
    await failsWith('ERR_EM_INVARIANT', ledgers.consumePermit(fixturePermit(context, stranger)));
    await failsWith('ERR_EM_INVARIANT', ledgers.voidPermit(claim.occurrence, stranger.execution));
    await ledgers.record(fixtureTerminal(context, claim, 'rejected'), 'flushed');
    assert.deepEqual(await ledgers.consumePermit(fixturePermit(context, claim)), { kind: 'spent' });
    assert.equal(await ledgers.permit(claim.occurrence), undefined);
  });

  test('a terminal carries the digest of the permit that was consumed', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'remote');
    await ledgers.consumePermit(fixturePermit(context, claim));
    for (const kind of ['committed', 'diverged', 'indeterminate'] as const) {
      const terminal = fixtureTerminal(context, claim, kind, {
        permit: fixtureDigest('another permit'),
      });
      await failsWith('ERR_EM_INVARIANT', ledgers.record(terminal, 'flushed'));
    }
    await failsWith('ERR_EM_INVARIANT', ledgers.record(withoutPermit(context, claim), 'flushed'));
  });

  test('an attempt without a permit may be indeterminate, and be settled and resolved like any other', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'lost');
    const open = withoutPermit(context, claim);
    assert.deepEqual(await ledgers.record(open, 'flushed'), open.record);
    assert.equal((await ledgers.unsettled({ includeLeased: true })).length, 1);
    const rejected = await ledgers.record(fixtureTerminal(context, claim, 'rejected'), 'flushed');
    assert.deepEqual(await ledgers.terminal(claim.occurrence), rejected);
    assert.equal((await ledgers.verify()).kind, 'intact');
  });
}

/** An indeterminate terminal of an attempt that never got a permit. */
function withoutPermit(context: LedgerContext, claim: ClaimRecord): Sealed<Terminal> {
  const { permit, consumedAt, certificate, ...rest } = fixtureTerminal(
    context,
    claim,
    'indeterminate',
  ).record as TerminalOf<'indeterminate'>;
  return context.sealer.seal(terminalRecord, rest);
}
