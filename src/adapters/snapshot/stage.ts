import { PermitCheck, type StagedUnder } from '../../backend/permit-check.ts';
import type {
  AdapterContext,
  CandidateFacts,
  Evidence,
  Promotion,
  Stage,
  Staged,
} from '../../contract/adapter.ts';
import type { ConsumedPermit } from '../../contract/proof.ts';
import { randomIds } from '../../crypto/random-ids.ts';
import { invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { type CheckedAction, probeToken } from './action.ts';
import { digestState, readBase, readVersion, type Version } from './control.ts';
import { fingerprintEvidence, type Held, observeCandidate, settleFacts } from './evidence.ts';
import { type Layout, withWholeLists } from './layout.ts';
import { type PromotionTools, promoteState } from './promotion.ts';
import { readView } from './reading.ts';
import type { CallReport, ToolRunner } from './tools.ts';
import { viewDocument, viewLater } from './view.ts';

/** What a stage needs of the adapter that opens it. */
export interface StageTools extends PromotionTools {
  readonly layout: Layout;
  readonly runner: ToolRunner;
  readonly clock: AdapterContext['clock'];
  /** Called when a held stage is over, however it ended. */
  readonly onEnd: (stage: SnapshotStage) => void;
}

/**
 * Runs the calls once on a private copy of the durable state and holds what they made of it.
 * Nothing is locked meanwhile: the promotion is conditional on the version that the copy was made
 * from, and on the file at the path.
 */
export async function openStage(
  tools: StageTools,
  under: StagedUnder,
  action: CheckedAction,
): Promise<Staged> {
  const { occurrence } = under.claim.sealed.record;
  const base = await tools.connection.read((db) => readBase(db, occurrence), {
    deadlineMs: tools.busyTimeoutMs,
  });
  if (base.backend !== tools.backend) return REPLACED;
  if (base.isDecided)
    return failed(
      'already-decided',
      'a marker of this occurrence exists, so it can no longer commit',
    );
  tools.reached('adapter:stage-opened');
  const fromMs = tools.clock.now();
  const document = tools.connection.documentOf(base.text);
  const ran = await tools.runner.run(document, action);
  if (ran.kind === 'failed') return ran;
  tools.reached('adapter:action-done');
  const { calls, made } = ran;
  const digest = made === document ? base.digest : digestState(made.text);
  const baseView = viewLater(tools.layout, document.state);
  const held: Held = {
    candidate: `snapshot:${tools.backend}:${base.version}:${randomIds.hex(16)}`,
    layout: tools.layout,
    action,
    base: { ...base, view: baseView },
    document: made,
    view: made === document ? baseView : viewLater(tools.layout, made.state),
    digest,
    calls,
    settled: settleFacts(base, digest, calls),
    window: { fromMs, toMs: tools.clock.now() },
  };
  return { kind: 'held', stage: new SnapshotStage(tools, under, held) };
}

/** A candidate state, held in memory as text. */
export class SnapshotStage implements Stage {
  readonly candidate: string;
  readonly #tools: StageTools;
  readonly #permit: PermitCheck;
  readonly #held: Held;
  #ended = false;

  constructor(tools: StageTools, under: StagedUnder, held: Held) {
    this.candidate = held.candidate;
    this.#tools = tools;
    this.#permit = new PermitCheck(under, held.candidate);
    this.#held = held;
  }

  /** How each call ended, recovered errors included. */
  get calls(): readonly CallReport[] {
    return this.#held.calls;
  }

  /**
   * The version that the calls started from; the promotion is refused if it has changed, so it
   * protects itself.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    if (reads.length === 0) return [];
    const { layout, base } = this.#held;
    const whole = withWholeLists(layout);
    return readView(whole, whole === layout ? base.view() : viewDocument(whole, base.text), reads);
  }

  async observe(): Promise<Evidence> {
    this.#assertHeld();
    const evidence = observeCandidate(this.#held, await this.#durable());
    this.#permit.observed(evidence.evidence);
    return evidence;
  }

  async recheck(): Promise<CandidateFacts> {
    this.#assertHeld();
    const evidence = fingerprintEvidence(this.#held, await this.#durable());
    this.#permit.rechecked(evidence);
    return { candidate: this.candidate, evidence };
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    this.#assertHeld();
    const mismatch = this.#permit.refusalOf(permit);
    this.#end();
    if (mismatch !== undefined) return mismatch;
    const { marker } = permit;
    const { base, document, digest, action } = this.#held;
    const next = { version: base.version + 1, digest, text: document.text };
    const promotion = await promoteState(
      { marker, base, next, token: probeToken(action) },
      this.#tools,
    );
    if (promotion.kind === 'confirmed') this.#tools.connection.keep(document);
    return promotion;
  }

  async discard(): Promise<void> {
    this.#end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard();
  }

  #durable(): Promise<Version> {
    return this.#tools.connection.read(readVersion, { deadlineMs: this.#tools.busyTimeoutMs });
  }

  #end(): void {
    this.#ended = true;
    this.#tools.onEnd(this);
  }

  #assertHeld(): void {
    invariant(!this.#ended, 'the stage is still held');
  }
}

const REPLACED = failed(
  'backend-replaced',
  'the file at this path is not the one that was opened; open it again',
);

function failed(reason: string, detail: string): Staged {
  return { kind: 'failed', reason, detail };
}
