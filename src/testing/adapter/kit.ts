import assert from 'node:assert/strict';
import type { AdapterFactory, PromotableAdapter, Stage } from '../../contract/adapter.ts';
import { systemClock } from '../../contract/clock.ts';
import { unobserved } from '../../contract/steps.ts';
import { draftManifest } from '../../protocol/draft.ts';
import type { ApprovedEffect, StateRead } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import { mintProofs, type Proofs } from '../proofs.ts';

/**
 * What the author of a PROMOTABLE adapter passes to {@link adapterConformance}. For a key-value
 * store this takes about ten lines: a new store, an action that sets a key, one that also sets
 * another, and one that fails.
 */
export interface AdapterKit {
  /** Creates a backend that no other test uses, in the state that every case starts from. */
  fresh(): Promise<Specimen>;
}

/** One backend with known contents, and actions whose effects on it are known. */
export interface Specimen {
  /** Opens the adapter on this backend, any number of times, as several processes would. */
  readonly factory: AdapterFactory;
  /**
   * Everything of business value in the backend, read without the adapter. Equal states are deeply
   * equal.
   */
  readDurable(): Promise<unknown>;
  /**
   * An action that an agent would submit, and exactly the effects it leaves. Ideally it changes an
   * existing row; if it only inserts, one case is skipped. It must not fail when it runs again
   * after its promotion, whatever it leaves then.
   */
  readonly effect: { readonly action: unknown; readonly leaves: readonly ApprovedEffect[] };
  /** An action that leaves the same effects and at least one more. */
  readonly extra: unknown;
  /** An action that fails, ideally after it has written something. */
  readonly failing: unknown;
  /**
   * State to read: ideally a row that `effect` changes, one that it does not touch, and one that
   * does not exist.
   */
  readonly reads: readonly StateRead[];
  /**
   * Writes into a held candidate after its action is done, if that is possible. Without it, two
   * cases are skipped.
   */
  writeInto?(stage: Stage): Promise<void>;
  close(): Promise<void>;
}

/** A specimen for one test. */
export interface AdapterBench extends AsyncDisposable {
  readonly specimen: Specimen;
  /** The first instance of the adapter. */
  readonly adapter: PromotableAdapter;
  /** The state at the start of the test. */
  readonly before: unknown;
  /** Opens another instance on the same backend, closed with the others. */
  again(): Promise<PromotableAdapter>;
  /** The effects of `effect` as a manifest. */
  manifest(): Manifest;
  /** Stages an action, and throws if no candidate is held. */
  hold(name: string, action?: unknown, on?: PromotableAdapter): Promise<HeldStage>;
  /** Asserts that nothing of business value has changed since the test started. */
  assertUntouched(): Promise<void>;
}

/** A held candidate, with the proofs it was staged under. */
export interface HeldStage {
  readonly stage: Stage;
  readonly proofs: Proofs;
}

/** The proofs of an attempt, certified with the adapter's current credentials. */
export async function proofsOn(
  adapter: PromotableAdapter,
  name: string,
  execution = name,
): Promise<Proofs> {
  const { credentials } = await adapter.survey();
  return mintProofs(adapter, name, execution, credentials);
}

/** Opens a fresh specimen, and closes it with all its adapters when the test ends. */
export async function openBench(kit: AdapterKit): Promise<AdapterBench> {
  const specimen = await kit.fresh();
  const opened: PromotableAdapter[] = [];
  const again = async (): Promise<PromotableAdapter> => {
    const adapter = await specimen.factory.open({
      name: 'adapter',
      clock: systemClock,
      reached: unobserved,
    });
    assert.equal(adapter.capability, 'PROMOTABLE', 'this suite is for PROMOTABLE adapters');
    opened.push(adapter as PromotableAdapter);
    return adapter as PromotableAdapter;
  };
  const first = await again();
  const before = await specimen.readDurable();
  return {
    specimen,
    adapter: first,
    before,
    again,
    manifest: () =>
      draftManifest({
        adapter: 'adapter',
        task: 'task',
        planRevision: 1,
        effects: specimen.effect.leaves,
      }),
    async hold(name, action = specimen.effect.action, on = first) {
      const proofs = await proofsOn(on, name);
      const staged = await on.stage(
        proofs.claim,
        proofs.certificate,
        on.parseAction(action),
        specimen.reads,
      );
      if (staged.kind === 'failed')
        throw new Error(`nothing is held: ${staged.reason}, ${staged.detail}`);
      return { stage: staged.stage, proofs };
    },
    async assertUntouched() {
      assert.deepEqual(await specimen.readDurable(), before, 'something became durable');
    },
    async [Symbol.asyncDispose]() {
      for (const adapter of opened) await adapter.close();
      await specimen.close();
    },
  };
}
