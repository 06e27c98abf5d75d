import assert from 'node:assert/strict';
import type { PostgresAction, PostgresOptions } from '../../../src/adapters/postgres/index.ts';
import type {
  Evidence,
  PromotableAdapter,
  Promotion,
  Stage,
  Staged,
} from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import type { StateRead } from '../../../src/protocol/effect.ts';
import { establish, type Observation } from '../../../src/protocol/observation.ts';
import { mintProofs } from '../../../src/testing/proofs.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';

/** A candidate that is held, and what was seen of it. */
export interface Held {
  readonly kind: 'held';
  readonly stage: Stage;
  readonly evidence: Evidence;
  readonly observation: Observation;
  /** Promotes it, complete or not: what the core would never do is asked of the backend. */
  promote(): Promise<Promotion>;
}

export type Attempt = Held | Extract<Staged, { readonly kind: 'failed' }>;

/**
 * A provisioned database with an open adapter, driven through its port: the core is not there to
 * refuse first.
 */
export interface Port extends AsyncDisposable, Pick<ProtectedDatabase, 'db' | 'options'> {
  readonly adapter: PromotableAdapter;
  hold(action: PostgresAction, reads?: readonly StateRead[]): Promise<Attempt>;
  /** Holds, and promotes what is complete. */
  commit(action: PostgresAction): Promise<Promotion>;
}

let attempts = 0;

export async function openPort(
  schema: string,
  settings: Omit<PostgresOptions, 'control' | 'execution'>,
): Promise<Port> {
  return await drivePort(await protectedDatabase(schema, settings));
}

/** The same for a database that is there already; it is dropped with the port. */
export async function drivePort(place: ProtectedDatabase): Promise<Port> {
  const adapter = await place
    .factory()
    .open({ name: 'port', clock: systemClock, reached: unobserved });
  assert.ok(adapter.capability === 'PROMOTABLE');
  const hold = async (
    action: PostgresAction,
    reads: readonly StateRead[] = [],
  ): Promise<Attempt> => {
    attempts += 1;
    const proofs = mintProofs(adapter, `attempt ${attempts}`);
    const staged = await adapter.stage(
      proofs.claim,
      proofs.certificate,
      adapter.parseAction(action),
      reads,
    );
    if (staged.kind === 'failed') return staged;
    const { stage } = staged;
    const evidence = await stage.observe();
    const seen = establish(evidence, adapter.registration, adapter.channels);
    // E is built when it is read; tests compare it whole.
    const observation: Observation =
      seen.kind === 'complete' ? { kind: seen.kind, effects: seen.effects } : seen;
    return {
      kind: 'held',
      stage,
      evidence,
      observation,
      promote: () => stage.promote(proofs.permit(evidence)),
    };
  };
  return {
    ...{ adapter, hold, db: place.db, options: place.options },
    async commit(action) {
      const held = demandHeld(await hold(action));
      assert.deepEqual(held.observation.kind === 'incomplete' ? held.observation.gaps : [], []);
      return await held.promote();
    },
    async [Symbol.asyncDispose]() {
      await adapter.close();
      await place.db.drop();
    },
  };
}

export function demandHeld(attempt: Attempt): Held {
  assert.ok(
    attempt.kind === 'held',
    attempt.kind === 'failed' ? `${attempt.reason}: ${attempt.detail}` : '',
  );
  return attempt;
}

/** Why an observation is not complete; discards the candidate. */
export async function gapsOf(attempt: Attempt): Promise<readonly string[]> {
  const { observation, stage } = demandHeld(attempt);
  await stage.discard();
  return observation.kind === 'incomplete' ? observation.gaps : [];
}
