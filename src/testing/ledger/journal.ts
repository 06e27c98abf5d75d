import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkpointRecord } from '../../protocol/checkpoint.ts';
import type { Digest } from '../../protocol/record.ts';
import { failsWith } from '../fails-with.ts';
import {
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixtureLicense,
  fixturePermit,
  fixtureReplay,
  fixtureRequest,
  fixtureTerminal,
  rotatedContext,
} from './fixtures.ts';
import { type LedgerKit, openBench } from './kit.ts';

/** Releases, the journal, and how tampering with it is detected. */
export function journalTests(kit: LedgerKit): void {
  test('a continuation is released once and completed once, and each continuation by itself', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'done');
    await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'relaxed');
    const released = fixtureAcknowledgement(context, claim);
    assert.deepEqual(await ledgers.uncompleted(), []);
    const racing = await Promise.all(
      Array.from({ length: 5 }, () => ledgers.acknowledge(released)),
    );
    assert.equal(racing.filter(Boolean).length, 1);
    const later = fixtureAcknowledgement(context, claim, { at: '2026-01-01T12:00:00.000Z' });
    assert.equal(await ledgers.acknowledge(later), false);
    assert.deepEqual(await ledgers.uncompleted(), [released.record]);
    const completed = fixtureAcknowledgement(context, claim, { state: 'completed' });
    assert.equal(await ledgers.acknowledge(completed), true);
    assert.equal(await ledgers.acknowledge(completed), false);
    const other = fixtureAcknowledgement(context, claim, { continuation: 'notify' });
    assert.equal(await ledgers.acknowledge(other), true);
    const stored = await ledgers.acknowledgements(claim.occurrence);
    assert.deepEqual(stored, [released.record, completed.record, other.record]);
  });

  test('nothing is acknowledged without a committed terminal of the same lineage and a registered name', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'open');
    const refuse = (overrides = {}): Promise<void> =>
      failsWith(
        'ERR_EM_INVARIANT',
        ledgers.acknowledge(fixtureAcknowledgement(context, claim, overrides)),
      );
    await refuse();
    await ledgers.record(fixtureTerminal(context, claim, 'indeterminate'), 'flushed');
    await refuse();
    await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'flushed');
    await refuse({ lineage: fixtureDigest('another license') });
    await refuse({ continuation: 'unregistered' });
    await refuse({ state: 'completed' });
    assert.deepEqual(await ledgers.acknowledgements(claim.occurrence), []);
    assert.equal(await ledgers.acknowledge(fixtureAcknowledgement(context, claim)), true);
  });

  test('the journal holds every decision in the order in which it was made, and can be paged through', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'a');
    const permit = fixturePermit(context, claim);
    const replay = fixtureReplay(context, claim, 'replay');
    const terminal = fixtureTerminal(context, claim, 'committed');
    const acknowledgement = fixtureAcknowledgement(context, claim);
    await ledgers.consumePermit(permit);
    await ledgers.record(replay, 'flushed');
    await ledgers.record(terminal, 'relaxed');
    await ledgers.acknowledge(acknowledgement);
    const { record: second } = await claimFixture(ledgers, context, 'b');
    await ledgers.voidPermit(second.occurrence, second.execution);

    const all = await ledgers.journal();
    assert.deepEqual(
      all.slice(0, 6).map(({ kind, record }) => ({ kind, record })),
      [
        { kind: 'claim', record: claim },
        { kind: 'permit', record: permit.record },
        { kind: 'terminal', record: replay.record },
        { kind: 'terminal', record: terminal.record },
        { kind: 'acknowledgement', record: acknowledgement.record },
        { kind: 'claim', record: second },
      ],
    );
    const voided = all[6];
    assert.ok(
      all.length === 7 && voided?.kind === 'void' && voided.record.execution === second.execution,
    );
    const order = all.map(({ seq }) => seq);
    assert.ok(order.every((seq, index) => index === 0 || seq > (order[index - 1] ?? seq)));

    assert.deepEqual(await ledgers.journal({ limit: 2 }), all.slice(0, 2));
    assert.deepEqual(await ledgers.journal({ afterSeq: order[1] ?? 0, limit: 3 }), all.slice(2, 5));
    assert.deepEqual(await ledgers.journal({ last: true, limit: 2 }), all.slice(5));
    assert.deepEqual(
      await ledgers.journal({ last: true, afterSeq: order[5] ?? 0, limit: 5 }),
      all.slice(6),
    );
    assert.deepEqual(await ledgers.journal({ afterSeq: order[6] ?? 0 }), []);
    const { occurrence } = second;
    const narrowed = await ledgers.journal({ occurrence });
    assert.deepEqual(
      narrowed.filter(({ record }) => record.occurrence === occurrence),
      all.slice(5),
      'asked for one occurrence, a ledger may return more, never less',
    );
  });

  test('occurrences are found by a prefix of their id, at most ten, also those that were only refused', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    await using elsewhere = await openBench(kit);
    const ids: string[] = [];
    for (let index = 0; index < 12; index += 1) {
      const { record: claim } = await claimFixture(elsewhere.ledgers, context, `known ${index}`);
      ids.push(claim.occurrence);
      if (index % 2 === 0) await claimFixture(ledgers, context, `known ${index}`);
      else await ledgers.record(fixtureReplay(context, claim, `refused ${index}`), 'flushed');
    }
    for (const id of ids) assert.deepEqual(await ledgers.search(id), [id]);
    assert.deepEqual(await ledgers.search('occ_'), ids.toSorted().slice(0, 10));
    assert.deepEqual(await ledgers.search('exe_'), []);
    assert.deepEqual(await ledgers.search('%'), []);
    assert.deepEqual(await ledgers.search('occ*'), []);
  });

  test('a checkpoint covers every row so far, and is made again only when there are new rows', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    assert.equal(await ledgers.checkpoint(), undefined);
    assert.deepEqual(await ledgers.verify(), { kind: 'intact', rows: 0, checkpointed: 0 });
    await claimFixture(ledgers, context, 'a');
    const first = await ledgers.checkpoint();
    assert.equal(first?.record.rows, 1);
    assert.deepEqual(await ledgers.checkpoint(), first);
    const { record: claim } = await claimFixture(ledgers, context, 'b');
    await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'relaxed');
    const [second, again] = await Promise.all([ledgers.checkpoint(), ledgers.checkpoint()]);
    assert.equal(second?.record.rows, 3);
    assert.deepEqual(again, second);
    await claimFixture(ledgers, context, 'c');
    assert.deepEqual(await ledgers.verify(), { kind: 'intact', rows: 4, checkpointed: 3 });
    assert.deepEqual(await ledgers.verify(first), { kind: 'intact', rows: 4, checkpointed: 3 });
    assert.deepEqual(await ledgers.verify(second), { kind: 'intact', rows: 4, checkpointed: 3 });
  });

  test('an exported checkpoint shows that the journal ends early or is not the one it was made from', async () => {
    await using bench = await openBench(kit);
    await using other = await openBench(kit);
    const { context, ledgers } = bench;
    for (const name of ['a', 'b', 'c']) await claimFixture(ledgers, context, name);
    const exported = await ledgers.checkpoint();
    assert.ok(exported !== undefined);
    for (const name of ['a', 'b']) await claimFixture(other.ledgers, context, name);
    assert.deepEqual(
      (await other.ledgers.verify(exported)).kind,
      'tampered',
      'the third row is missing',
    );
    await claimFixture(other.ledgers, context, 'd');
    assert.deepEqual(
      (await other.ledgers.verify(exported)).kind,
      'tampered',
      'the third row differs',
    );
    assert.deepEqual(
      (await other.ledgers.verify()).kind,
      'intact',
      'without the export there is nothing to see',
    );
    assert.deepEqual((await ledgers.verify(exported)).kind, 'intact');
    const forged = fixtureContext('another deployment').sealer.seal(
      checkpointRecord,
      exported.record,
    );
    await failsWith('ERR_EM_SEAL_INVALID', ledgers.verify(forged));
  });

  test('after a key rotation everything is readable and still decides; without the old key nothing is returned', async () => {
    await using bench = await openBench(kit);
    const { record: claim } = await claimFixture(bench.ledgers, bench.context, 'before');
    const terminal = await bench.ledgers.record(
      fixtureTerminal(bench.context, claim, 'committed'),
      'relaxed',
    );
    const exported = await bench.ledgers.checkpoint();

    const rotated = rotatedContext({ keepsOld: true });
    const ledgers = await bench.store.open(rotated);
    const again = await ledgers.claim(
      fixtureRequest(rotated, fixtureLicense('before'), fixtureExecution('again')),
    );
    assert.ok(
      again.kind === 'refused' && again.reason === 'spent',
      'the binding agrees although another key is in use',
    );
    assert.deepEqual(await ledgers.terminal(claim.occurrence), terminal);
    await claimFixture(ledgers, rotated, 'after');
    assert.equal(await ledgers.acknowledge(fixtureAcknowledgement(rotated, claim)), true);
    await ledgers.checkpoint();
    assert.deepEqual(await ledgers.verify(exported), { kind: 'intact', rows: 4, checkpointed: 4 });
    await ledgers.close();

    const forgetful = await bench.store.open(rotatedContext({ keepsOld: false }));
    await failsWith('ERR_EM_KEY_UNKNOWN', forgetful.terminal(claim.occurrence));
    await failsWith('ERR_EM_KEY_UNKNOWN', forgetful.journal());
    await forgetful.close();
  });

  test('a document is kept once under its digest, and another text under the same digest is refused', async () => {
    await using bench = await openBench(kit);
    const digest: Digest = fixtureDigest('document');
    assert.equal(await bench.ledgers.document(digest), undefined);
    await bench.ledgers.keep(digest, '{"outlets":[]}');
    await bench.ledgers.keep(digest, '{"outlets":[]}');
    assert.equal(await bench.ledgers.document(digest), '{"outlets":[]}');
    await failsWith('ERR_EM_INVARIANT', bench.ledgers.keep(digest, '{}'));
    assert.equal(await bench.ledgers.document(digest), '{"outlets":[]}');
  });
}
