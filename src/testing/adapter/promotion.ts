import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PromotableAdapter, Promotion } from '../../contract/adapter.ts';
import { isName } from '../../protocol/record.ts';
import { mintProofs, type Proofs } from '../proofs.ts';
import { type AdapterBench, type AdapterKit, type HeldStage, openBench, proofsOn } from './kit.ts';

/**
 * State and marker become durable together, once. If promotion and recovery compete, the second
 * finds what the first wrote.
 */
export function promotionTests(kit: AdapterKit): void {
  test('promotion makes state and marker durable together', async () => {
    await using bench = await openBench(kit);
    const held = await bench.hold('promoted');
    const { occurrence } = held.proofs;
    assert.equal(await bench.adapter.markers.find(occurrence), undefined);
    const { promotion, marker } = await promote(held);
    assert.equal(promotion.kind, 'confirmed');
    assert.notDeepEqual(await bench.specimen.readDurable(), bench.before);
    assert.deepEqual(await (await bench.again()).markers.find(occurrence), marker);
  });

  test('after promotion the candidate is over', async () => {
    await using bench = await openBench(kit);
    const held = await bench.hold('over');
    await promote(held);
    const after = await bench.specimen.readDurable();
    await held.stage.discard();
    await held.stage[Symbol.asyncDispose]();
    assert.deepEqual(
      await bench.specimen.readDurable(),
      after,
      'a discard after the commit takes nothing back',
    );
    const other = await bench.again();
    assert.deepEqual(await other.markers.void(mintProofs(other, 'next').voidMarker()), {
      kind: 'inserted',
    });
  });

  test('a discarded candidate is never promoted', async () => {
    await using bench = await openBench(kit);
    const held = await bench.hold('discarded');
    const facts = await held.stage.observe();
    await held.stage.discard();
    const promotion = await held.stage.promote(held.proofs.permit(facts)).catch(() => undefined);
    assert.notEqual(promotion?.kind, 'confirmed');
    await assertNothing(bench, held);
  });

  test('a second promotion of the same occurrence, by another instance, is refused and leaves nothing', async () => {
    await using bench = await openBench(kit);
    const first = await bench.hold('twice');
    const { marker } = await promote(first);
    const after = await bench.specimen.readDurable();
    const other = await bench.again();
    const proofs = await proofsOn(other, 'twice', 'another execution');
    await assertFenced(bench, other, proofs);
    assert.deepEqual(await bench.specimen.readDurable(), after);
    assert.deepEqual(await other.markers.find(proofs.occurrence), marker);
    assert.deepEqual(await other.markers.void(mintProofs(other, 'next').voidMarker()), {
      kind: 'inserted',
    });
  });

  test('of two candidates that change the same row only the first is promoted', async (context) => {
    await using bench = await openBench(kit);
    const { specimen } = bench;
    if (specimen.effect.leaves.every(({ op }) => op === 'insert'))
      return context.skip('the kit has no way to race for a row: `effect` only inserts');
    const first = await bench.hold('first');
    await first.stage.observe();
    const other = await bench.again();
    const proofs = await proofsOn(other, 'second');
    const action = other.parseAction(specimen.effect.action);
    const staged = await other.stage(proofs.claim, proofs.certificate, action);
    const facts = staged.kind === 'held' ? await staged.stage.observe() : undefined;
    assert.equal((await promote(first)).promotion.kind, 'confirmed');
    if (staged.kind === 'failed' || facts === undefined) return;
    const after = await specimen.readDurable();
    // Promotes without a recheck on purpose: something could change between a recheck and the
    // commit, so the commit itself must refuse.
    const promotion = await staged.stage.promote(proofs.permit(facts));
    assert.notEqual(promotion.kind, 'confirmed', 'it was made for a state that has passed');
    assert.deepEqual(await specimen.readDurable(), after);
  });

  test('a void marker fences a later promotion', async () => {
    await using bench = await openBench(kit);
    const other = await bench.again();
    const proofs = await proofsOn(other, 'fenced');
    const marker = proofs.voidMarker();
    assert.deepEqual(await other.markers.void(marker), { kind: 'inserted' });
    await assertFenced(bench, bench.adapter, proofs);
    await bench.assertUntouched();
    assert.deepEqual(await bench.adapter.markers.find(proofs.occurrence), marker);
    await bench.hold('next', undefined, other);
  });

  test('a void marker that meets a held candidate of its occurrence either fences it or waits for it', async () => {
    await using bench = await openBench(kit);
    const held = await bench.hold('race');
    const facts = await held.stage.observe();
    const permit = held.proofs.permit(facts);
    const result = await (await bench.again()).markers.void(held.proofs.voidMarker());
    const promotion = await held.stage.promote(permit);
    const found = await bench.adapter.markers.find(held.proofs.occurrence);
    if (result.kind === 'inserted') {
      assertRefused(promotion);
      assert.equal(found?.disposition, 'void');
      await bench.assertUntouched();
    } else {
      assert.equal(result.kind, 'busy');
      assert.equal(promotion.kind, 'confirmed');
      assert.deepEqual(found, permit.marker);
    }
  });

  test('a void marker that had to wait is not stored', async () => {
    await using bench = await openBench(kit);
    const { stage } = await bench.hold('in the way');
    const other = await bench.again();
    const { voidMarker, occurrence } = mintProofs(other, 'elsewhere');
    const first = await other.markers.void(voidMarker());
    assert.equal((await other.markers.find(occurrence)) === undefined, first.kind === 'busy');
    await stage.discard();
    const second = await other.markers.void(voidMarker());
    assert.equal(second.kind, first.kind === 'busy' ? 'inserted' : 'conflict');
  });

  test('a void marker over a committed one reports the committed one', async () => {
    await using bench = await openBench(kit);
    const held = await bench.hold('committed');
    const { marker } = await promote(held);
    const other = await bench.again();
    assert.deepEqual(await other.markers.void(held.proofs.voidMarker()), {
      kind: 'conflict',
      marker,
    });
    assert.deepEqual(await other.markers.find(held.proofs.occurrence), marker);
  });

  test('a void marker over a void one reports the first', async () => {
    await using bench = await openBench(kit);
    const first = mintProofs(bench.adapter, 'void', 'first').voidMarker();
    const second = mintProofs(bench.adapter, 'void', 'second').voidMarker();
    assert.deepEqual(await bench.adapter.markers.void(first), { kind: 'inserted' });
    assert.deepEqual(await (await bench.again()).markers.void(second), {
      kind: 'conflict',
      marker: first,
    });
  });

  test('markers are found by their occurrence alone, and forgetting one forgets no other', async () => {
    await using bench = await openBench(kit);
    const { markers } = bench.adapter;
    const kept = mintProofs(bench.adapter, 'kept');
    const gone = mintProofs(bench.adapter, 'gone');
    await markers.void(kept.voidMarker());
    await markers.void(gone.voidMarker());
    await markers.forget(gone.occurrence);
    await markers.forget(gone.occurrence);
    assert.equal(await markers.find(gone.occurrence), undefined);
    assert.deepEqual(await markers.find(kept.occurrence), kept.voidMarker());
    assert.deepEqual(await markers.void(gone.voidMarker()), { kind: 'inserted' });
  });

  test('closing with a held candidate leaves nothing and frees the backend', async () => {
    await using bench = await openBench(kit);
    const other = await bench.again();
    const held = await bench.hold('closed', undefined, other);
    const facts = await held.stage.observe();
    await other.close();
    await bench.assertUntouched();
    const promotion = await held.stage.promote(held.proofs.permit(facts)).catch(() => undefined);
    assert.notEqual(promotion?.kind, 'confirmed');
    await assertNothing(bench, held);
    await bench.hold('next');
  });
}

async function promote({ stage, proofs }: HeldStage) {
  const permit = proofs.permit(await stage.observe());
  return { promotion: await stage.promote(permit), marker: permit.marker };
}

/**
 * A decided occurrence is refused with a valid reason, when it is staged or else when it is
 * promoted.
 */
async function assertFenced(
  bench: AdapterBench,
  adapter: PromotableAdapter,
  proofs: Proofs,
): Promise<void> {
  const action = adapter.parseAction(bench.specimen.effect.action);
  const staged = await adapter.stage(proofs.claim, proofs.certificate, action);
  if (staged.kind === 'failed') assertName(staged.reason);
  else assertRefused((await promote({ stage: staged.stage, proofs })).promotion);
}

function assertRefused(promotion: Promotion): void {
  assert.ok(promotion.kind === 'refused', `expected a refusal and got ${promotion.kind}`);
  assertName(promotion.reason);
}

function assertName(reason: string): void {
  assert.ok(isName(reason), `"${reason}" is not a name that a terminal can carry`);
}

async function assertNothing(bench: AdapterBench, held: HeldStage): Promise<void> {
  await bench.assertUntouched();
  assert.equal(await (await bench.again()).markers.find(held.proofs.occurrence), undefined);
}
