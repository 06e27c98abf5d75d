import assert from 'node:assert/strict';
import type { AdapterFactory, PromotableAdapter, Stage } from '../../contract/adapter.ts';
import { systemClock } from '../../contract/clock.ts';
import { unobserved } from '../../contract/steps.ts';
import { draftManifest } from '../../protocol/draft.ts';
import type { ApprovedEffect, StateRead } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import { mintProofs, type Proofs } from '../proofs.ts';

/**
 * What the author of a PROMOTABLE adapter hands to {@link adapterConformance}. For a store of keys
 * and values this is about ten lines: a new store, an action that sets a key, one that also sets
 * another, one that fails.
 */
export interface AdapterKit {
  /** A backend that no other test uses, in the state that every case starts from. */
  fresh(): Promise<Specimen>;
}

/** One backend with known contents, and actions whose effects on it are known. */
export interface Specimen {
  /** Opens the adapter on this backend, any number of times, as several processes would. */
  readonly factory: AdapterFactory;
  /**
   * Everything of business value in the backend, read past the adapter. Equal states are deeply
   * equal.
   */
  readDurable(): Promise<unknown>;
  /**
   * What an agent would submit, and the effects that it leaves: these and no others. Best it changes
   * a row that exists; if it only inserts, one case is skipped. Run again after it was promoted, it
   * must not fail, whatever it leaves then.
   */
  readonly effect: { readonly action: unknown; readonly leaves: readonly ApprovedEffect[] };
  /** Leaves the same and something more. */
  readonly extra: unknown;
  /** Fails, best after it has written something. */
  readonly failing: unknown;
  /**
   * State to read; best a row that `effect` changes, one that it does not touch and one that does
   * not exist.
   */
  readonly reads: readonly StateRead[];
  /**
   * Writes into a held candidate after its action is done, if anything can; without it two cases are
   * skipped.
   */
  writeInto?(stage: Stage): Promise<void>;
  close(): Promise<void>;
}

/** A specimen for the length of one test. */
export interface AdapterBench extends AsyncDisposable {
  readonly specimen: Specimen;
  /** The first instance of the adapter. */
  readonly adapter: PromotableAdapter;
  /** The state that the test started from. */
  readonly before: unknown;
  /** One more instance on the same backend; closed with the rest. */
  again(): Promise<PromotableAdapter>;
  /** What `effect` leaves, as a manifest. */
  manifest(): Manifest;
  /** Stages an action and fails where no candidate is held. */
  hold(name: string, action?: unknown, on?: PromotableAdapter): Promise<HeldStage>;
  /** Asserts that nothing of business value has changed since the test started. */
  assertUntouched(): Promise<void>;
}

/** A held candidate with the proofs under which it was staged. */
export interface HeldStage {
  readonly stage: Stage;
  readonly proofs: Proofs;
}

/** The proofs of an attempt that was certified as the adapter is now. */
export async function proofsOn(
  adapter: PromotableAdapter,
  name: string,
  execution = name,
): Promise<Proofs> {
  const { credentials } = await adapter.survey();
  return mintProofs(adapter, name, execution, credentials);
}

/** Opens a fresh specimen and closes it with all its adapters when the test ends. */
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
