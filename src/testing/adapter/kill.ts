import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { AdapterFactory, PromotableAdapter, VoidResult } from '../../contract/adapter.ts';
import { systemClock } from '../../contract/clock.ts';
import { unobserved } from '../../contract/steps.ts';
import { proofsOn } from './kit.ts';

/** What {@link killAtEveryStep} needs: an adapter that a separate process can open. */
export interface KillKit {
  /**
   * A module whose default export makes the adapter for a place:
   * `export default (file: string) => keyValue({ file })`.
   */
  readonly module: URL;
  /** Creates a backend that no other test uses, always with the same contents. */
  fresh(): Promise<KillSpecimen>;
}

/** One backend, and an action that changes it. */
export interface KillSpecimen {
  /** The backend's path or address, as the module takes it. */
  readonly place: string;
  /** Everything of business value, read without the adapter. Equal states are deeply equal. */
  readDurable(): Promise<unknown>;
  /** An action that an agent would submit. It must be representable as JSON. */
  readonly action: unknown;
  close(): Promise<void>;
}

/** The orders for a process that will be killed. */
export interface KillOrder {
  readonly module: string;
  readonly place: string;
  readonly attempt: string;
  readonly action: unknown;
  readonly role: 'attempt' | 'recover';
  readonly step: string;
}

const NOTHING_DURABLE = [
  ...['adapter:stage-opened', 'adapter:action-done', 'staged', 'observed', 'rechecked'],
  'adapter:marker-written',
];
const DURABLE = ['adapter:commit-returned', 'promoted'];
const VOIDED = ['adapter:void-written', 'adapter:void-committed'];
/** How long a dead process's locks may take to disappear. */
const RECOVERY_MS = 10_000;

/**
 * Kills a process (SIGKILL) at every step of an attempt and of its recovery. This process then
 * recovers as a runtime would, by inserting a void marker. No change may be durable without its
 * committed marker, or only in part, and the backend must keep working.
 */
export function killAtEveryStep(name: string, kit: KillKit): void {
  describe(`${name}: killed at every step`, () => {
    for (const step of NOTHING_DURABLE) {
      test(`${step}: nothing is durable, and the attempt can never commit`, async () => {
        await using scene = await openScene(kit);
        await scene.kill('attempt', step);
        await scene.assertUndone('inserted');
      });
    }
    for (const step of DURABLE) {
      test(`${step}: the whole change is durable with its marker`, async () => {
        await using scene = await openScene(kit);
        await scene.kill('attempt', step);
        const found = await scene.recover();
        assert.ok(found.kind === 'conflict', `a void marker was ${found.kind} after the commit`);
        assert.equal(found.marker.disposition, 'committed');
        assert.notDeepEqual(await scene.readDurable(), scene.before);
        assert.deepEqual(await scene.readDurable(), await stateAfter(kit));
      });
    }
    for (const step of VOIDED) {
      test(`${step}: the recovery is finished by the next one`, async (context) => {
        await using scene = await openScene(kit);
        const isOptional = step === 'adapter:void-written';
        if (!(await scene.kill('recover', step, isOptional)))
          return context.skip('the marker is written and made durable in one step');
        await scene.assertUndone(isOptional ? 'inserted' : 'conflict');
      });
    }
  });
}

async function openScene(kit: KillKit) {
  const specimen = await kit.fresh();
  const { place, action } = specimen;
  const { default: open } = (await import(kit.module.href)) as {
    readonly default: (place: string) => AdapterFactory;
  };
  const adapter = (await open(place).open({
    name: 'adapter',
    clock: systemClock,
    reached: unobserved,
  })) as PromotableAdapter;
  const before = await specimen.readDurable();

  /** Returns whether the process died at the given step. */
  async function kill(role: KillOrder['role'], step: string, isOptional = false) {
    const module = kit.module.href;
    const order: KillOrder = { module, place, attempt: 'killed', action, role, step };
    const died = await runWorker(order);
    assert.ok(died || isOptional, `${step} was never reached; call reached('${step}') there`);
    return died;
  }

  async function recover(): Promise<VoidResult> {
    const proofs = await proofsOn(adapter, 'killed');
    const until = performance.now() + RECOVERY_MS;
    for (;;) {
      const result = await adapter.markers.void(proofs.voidMarker());
      if (result.kind !== 'busy') return result;
      assert.ok(performance.now() < until, `the dead process is still in the way: ${result.why}`);
      await sleep(50);
    }
  }

  async function assertUndone(expected: VoidResult['kind']): Promise<void> {
    const found = await recover();
    assert.equal(found.kind, expected);
    if (found.kind === 'conflict') assert.equal(found.marker.disposition, 'void');
    assert.deepEqual(await specimen.readDurable(), before, 'nothing of the attempt is durable');
    assert.notEqual(await promote(adapter, 'killed', action), 'confirmed', 'a void marker fences');
    assert.deepEqual(await specimen.readDurable(), before);
    assert.equal(await promote(adapter, 'next', action), 'confirmed', 'the backend keeps working');
  }

  async function close(): Promise<void> {
    await adapter.close();
    await specimen.close();
  }
  const { readDurable } = specimen;
  const read = readDurable.bind(specimen);
  return { before, kill, recover, assertUndone, readDurable: read, [Symbol.asyncDispose]: close };
}

/** The state after an attempt that nothing interrupts. */
async function stateAfter(kit: KillKit): Promise<unknown> {
  await using scene = await openScene(kit);
  assert.equal(await scene.kill('attempt', 'never', true), false);
  return await scene.readDurable();
}

async function promote(adapter: PromotableAdapter, name: string, action: unknown): Promise<string> {
  const proofs = await proofsOn(adapter, name);
  const parsed = adapter.parseAction(action);
  const staged = await adapter.stage(proofs.claim, proofs.certificate, parsed);
  if (staged.kind === 'failed') return staged.reason;
  const promotion = await staged.stage.promote(proofs.permit(await staged.stage.observe()));
  await staged.stage.discard();
  return promotion.kind;
}

async function runWorker(order: KillOrder): Promise<boolean> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const file = fileURLToPath(new URL(`kill-worker.${extension}`, import.meta.url));
  const stdio = ['ignore', 'pipe', 'pipe'] as const;
  const child = spawn(process.execPath, [file, JSON.stringify(order)], { stdio: [...stdio] });
  let where = '';
  let words = '';
  child.stdout?.on('data', (text) => (where += text));
  child.stderr?.on('data', (text) => (words += text));
  const [code, signal] = await once(child, 'close');
  if (signal === 'SIGKILL' && where === order.step) return true;
  assert.equal(code, 0, `the process did not die at ${order.step}: ${words}`);
  return false;
}
