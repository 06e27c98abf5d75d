// Goal: waiting for a verdict executes nothing, ends with the verdict, and says when there is none.
// Method: attempts that end elsewhere, never begin, or were interrupted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateApprover } from '../../src/crypto/approver.ts';
import { signReopening } from '../../src/crypto/signed-decision.ts';
import type { OccurrenceId } from '../../src/protocol/record.ts';
import { lineagesOf } from '../../src/runtime/continuation.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { deploy, interrupt, invoiceWorld, LEASE_MS, ofKind, PAY } from './deploy.ts';

test('the verdict that another call makes is returned', async () => {
  await using deployed = await deploy(invoiceWorld(), { store: temporaryLedgers() });
  const { runtime } = deployed;
  const license = await deployed.approve();
  const [{ occurrence }] = lineagesOf(license);
  const waiting = runtime.wait(occurrence);
  const terminal = await runtime.execute(license, PAY);
  assert.deepEqual(await waiting, (({ results: _, ...stored }) => stored)(terminal));
});

test('an occurrence that was never claimed has no verdict when the time is over', async () => {
  await using deployed = await deploy(invoiceWorld());
  const [{ occurrence }] = lineagesOf(await deployed.approve());
  assert.equal(await deployed.runtime.wait(occurrence, { waitMs: 0 }), undefined);
  assert.deepEqual(await deployed.runtime.ledgers.journal(), []);
  for (const wrong of ['occ_1', undefined])
    await assert.rejects(deployed.runtime.wait(wrong as OccurrenceId), { code: 'ERR_EM_USAGE' });
  const over = { waitMs: Number.NaN };
  await assert.rejects(deployed.runtime.wait(occurrence, over), { code: 'ERR_EM_USAGE' });
});

test('an interrupted attempt is recovered once its lease has run out, and not before', async () => {
  const world = invoiceWorld();
  const step = { kind: 'step', step: 'path:promoted', ending: 'die' } as const;
  const { license } = await interrupt(world, step);
  await using deployed = await deploy(world, { recoverAtStart: false });
  const [{ occurrence }] = lineagesOf(license);
  assert.equal(await deployed.runtime.wait(occurrence, { waitMs: 0 }), undefined);
  world.advance(LEASE_MS + 1);
  ofKind('committed', await deployed.runtime.wait(occurrence, { waitMs: 0 }));
});

test('work in a file ledger is released again by a signed decision as well', async () => {
  const key = generateApprover('olga');
  await using deployed = await deploy(invoiceWorld(), {
    store: temporaryLedgers(),
    operators: { olga: { key: key.publicKey } },
  });
  const { runtime } = deployed;
  const terminal = ofKind('committed', await runtime.execute(await deployed.approve(), PAY));
  const gate = runtime.continuation(terminal, 'reconcile');
  const failure = new Error('the printer is on fire');
  await assert.rejects(
    gate.release(() => Promise.reject(failure)),
    failure,
  );
  const { occurrence, lineage } = terminal;
  const work = { occurrence, lineage, continuation: 'reconcile', turn: 2, evidence: 'no paper' };
  const decision = signReopening({ operator: 'olga', privateKey: key.privateKey }, work);
  await runtime.reopen(decision, 'no paper');
  await assert.rejects(
    gate.release(() => Promise.reject(failure)),
    failure,
  );
  const [open, more] = await runtime.continuations();
  assert.deepEqual([open?.turn, more], [2, undefined]);
  assert.deepEqual(await gate.release(() => {}), { kind: 'halted', why: 'already-released' });
  assert.equal((await runtime.verifyJournal()).kind, 'intact');
});
