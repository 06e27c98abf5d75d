// Goal: every recorded verdict can be had as a receipt, and nothing that is not recorded. Method:
// executions and interruptions in the world with one fault; receipts verified with the public keys
// alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyReceipt } from '../../src/crypto/receipt.ts';
import type { ExecutionId, OccurrenceId } from '../../src/protocol/record.ts';
import { deploy, interrupt, invoiceWorld, ofKind, onlyOne, PAY } from './deploy.ts';

async function receiptOf(
  runtime: Awaited<ReturnType<typeof deploy>>['runtime'],
  occurrence: OccurrenceId,
  execution?: ExecutionId,
) {
  const envelope = await runtime.receipt(occurrence, execution === undefined ? {} : { execution });
  assert.ok(envelope, 'there is a receipt');
  const verified = verifyReceipt(runtime.receiptKeys, envelope);
  assert.ok(verified.kind === 'receipt');
  return verified.receipt;
}

test('a committed attempt has a receipt with its terminal, lineage and journal row; a replay has one of its own', async () => {
  await using deployed = await deploy(invoiceWorld());
  const { runtime } = deployed;
  const license = await deployed.approve();
  const committed = ofKind('committed', await runtime.execute(license, PAY));
  const replayed = ofKind('rejected', await runtime.execute(license, PAY));
  assert.equal(replayed.occurrence, committed.occurrence);

  const receipt = await receiptOf(runtime, committed.occurrence);
  assert.deepEqual(receipt.terminal, committed);
  assert.equal(receipt.lineage, committed.lineage);
  const row = (await runtime.ledgers.journal()).find(({ seq }) => seq === receipt.position);
  assert.deepEqual(row?.record, committed);

  const second = await receiptOf(runtime, committed.occurrence, replayed.execution);
  assert.deepEqual(second.terminal, replayed);
  assert.ok(second.position > receipt.position);
  assert.deepEqual(
    await runtime.receipt(committed.occurrence),
    await runtime.receipt(committed.occurrence),
    'the same terminal gives the same receipt',
  );
});

test('an unknown occurrence, an unknown attempt and an attempt without a verdict have no receipt', async () => {
  const world = invoiceWorld();
  await interrupt(world, { kind: 'step', step: 'path:claimed', ending: 'die' });
  await using deployed = await deploy(world, { recoverAtStart: false });
  const { runtime } = deployed;
  const [claim] = await runtime.ledgers.journal();
  assert.equal(claim?.kind, 'claim');
  const occurrence = claim.record.occurrence;
  assert.equal(await runtime.receipt(occurrence), undefined);
  assert.equal(await runtime.receipt(`occ_${'0'.repeat(40)}` as OccurrenceId), undefined);
  const unknown = `exe_${'0'.repeat(32)}` as ExecutionId;
  assert.equal(await runtime.receipt(occurrence, { execution: unknown }), undefined);

  const recovered = onlyOne(await runtime.recover({ now: true }));
  assert.ok(recovered.kind === 'settled');
  assert.deepEqual((await receiptOf(runtime, occurrence)).terminal, recovered.terminal);
});

test('a ledger that does not narrow its journal to an occurrence leads to the same receipt', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const { runtime } = deployed;
  const licenses = [await deployed.approve(), await deployed.approve({ task: 'another' })];
  const first = await runtime.execute(licenses[0], PAY);
  const second = await runtime.execute(licenses[1], PAY);
  assert.notEqual(first.occurrence, second.occurrence);
  const expected = await runtime.receipt(first.occurrence);
  const journal = runtime.ledgers.journal.bind(runtime.ledgers);
  runtime.ledgers.journal = (options = {}) => {
    const { occurrence, ...rest } = options;
    assert.equal(occurrence, first.occurrence, 'the runtime asks for the rows of one occurrence');
    return journal({ ...rest, limit: 2 });
  };
  assert.deepEqual(await runtime.receipt(first.occurrence), expected);
});
