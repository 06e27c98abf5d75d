import type {
  AdapterContext,
  CallAnswer,
  CandidateFacts,
  Evidence,
  HeldForTask,
  PromotableAdapter,
  Promotion,
  Staged,
  StatementResult,
  Survey,
  TaskStage,
  VoidResult,
} from '../contract/adapter.ts';
import type { ConsumedPermit, MarkerText } from '../contract/proof.ts';
import { EffectMatchError, invariant, messageOf } from '../errors.ts';
import type { StateRead, StateReading } from '../protocol/effect.ts';
import type { Residue } from '../protocol/residue.ts';
import {
  type Applied,
  alreadyDecided,
  type Backend,
  type Candidate,
  type CandidateEnd,
  type HoldRequest,
  refusedPromotion,
} from './candidate.ts';

/** Terminals store details, so details are cut to this many characters. */
const MAX_DETAIL = 1000;

/** Makes an adapter from a backend. Contains everything that does not depend on the engine. */
export function promotable<Action>(
  backend: Backend<Action>,
  context: Pick<AdapterContext, 'clock' | 'reached'>,
): PromotableAdapter<Action> {
  const { identity, registration, profiles, channels, markers, probe } = backend;
  const stages = new OpenStages(backend, context);
  let known: Survey | undefined;

  const report = <T>(work: () => Promise<T>): Promise<T> =>
    reporting(() => {
      stages.assertOpen();
      return work();
    });
  const query = backend.query?.bind(backend);

  return {
    capability: 'PROMOTABLE',
    ...{ identity, registration, profiles, channels },
    normalise: (manifest) => report(() => backend.normalise(manifest)),
    read: async (reads) => (reads.length === 0 ? [] : await report(() => backend.read(reads))),
    ...(backend.readsMany && { readsMany: true as const }),
    parseAction: (input) => backend.parseAction(input),
    describeAction: (action) => backend.describeAction(action),
    ...(query && { query: (action, limits) => report(() => query(action, limits)) }),
    ...(backend.explainChange && { explainChange: backend.explainChange.bind(backend) }),
    ...(backend.reachOf && { reachOf: backend.reachOf.bind(backend) }),
    ...(backend.commitLog && { commitLog: backend.commitLog.bind(backend) }),
    ...(backend.settingRefusal && { settingRefusal: backend.settingRefusal.bind(backend) }),
    async survey() {
      known = keepEqual(known, await report(() => backend.survey()));
      return known;
    },
    stage(claim, certificate, action, reads = [], settings = {}) {
      const { occurrence } = claim.sealed.record;
      const request = { claim, certificate, occurrence, reads, settings };
      return report(() => stages.open(request, action));
    },
    ...(backend.joinActions && { joinActions: backend.joinActions.bind(backend) }),
    ...(backend.holdsTasks && {
      hold(claim, certificate, { reads, settings, deadlineMs }) {
        const { occurrence } = claim.sealed.record;
        const request = { claim, certificate, occurrence, reads, settings, task: { deadlineMs } };
        return report(() => stages.openTask(request));
      },
      ...(backend.taskMaxMs !== undefined && { taskMaxMs: backend.taskMaxMs }),
    }),
    markers: {
      find: async (occurrence) => copyMarker(await report(() => markers.find(occurrence))),
      void: async (marker) => copyConflict(await report(() => markers.void(marker))),
      forget: (occurrence) => report(() => markers.forget(occurrence)),
    },
    probe: { ...probe, durable: (token) => report(() => probe.durable(token)) },
    close: () => stages.close(),
  };
}

/** The held stages of one adapter, until the adapter closes. */
class OpenStages<Action> {
  readonly #backend: Backend<Action>;
  readonly #context: Pick<AdapterContext, 'clock' | 'reached'>;
  readonly #held = new Set<HeldStage<Action>>();
  #closing: Promise<void> | undefined;

  constructor(backend: Backend<Action>, context: Pick<AdapterContext, 'clock' | 'reached'>) {
    this.#backend = backend;
    this.#context = context;
  }

  assertOpen(): void {
    if (this.#closing === undefined) return;
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      'the adapter is closed; open it again',
    );
  }

  async open(request: HoldRequest, action: Action): Promise<Staged> {
    const result = await this.#backend.hold(request);
    if (result.kind === 'failed') return storable(result);
    const { candidate, marker } = result;
    const stage = new HeldStage(candidate, request, () => this.#held.delete(stage));
    const { clock, reached } = this.#context;
    let applied: Applied;
    try {
      reached('adapter:stage-opened');
      const fromMs = clock.now();
      applied = marker === undefined ? await candidate.apply(action) : alreadyDecided(marker);
      if (applied.kind === 'done') {
        // The adapter may have been closed while the action ran.
        this.assertOpen();
        stage.window = { fromMs, toMs: clock.now() };
        if (applied.results !== undefined) stage.results = applied.results;
        this.#held.add(stage);
        reached('adapter:action-done');
        return { kind: 'held', stage };
      }
    } catch (error) {
      // The first error says more. The core settles anything that a failed discard leaves behind.
      await stage.discard().catch(() => {});
      throw error;
    }
    const residue = await stage.end('discarded');
    return storable(residue === undefined ? applied : { ...applied, residue });
  }

  /** Opens a candidate for the calls of a task. */
  async openTask(request: HoldRequest): Promise<HeldForTask<Action>> {
    const result = await this.#backend.hold(request);
    if (result.kind === 'failed') return storable(result);
    const { candidate, marker } = result;
    const stage = new HeldStage(candidate, request, () => this.#held.delete(stage));
    if (marker !== undefined) {
      await stage.end('discarded');
      return storable(alreadyDecided(marker));
    }
    try {
      this.assertOpen();
      stage.begin(this.#context);
      this.#held.add(stage);
      this.#context.reached('adapter:stage-opened');
      return { kind: 'held', stage };
    } catch (error) {
      await stage.discard().catch(() => {});
      throw error;
    }
  }

  /** Discards every held stage. The backend is closed even if a stage cannot be discarded. */
  close(): Promise<void> {
    this.#closing ??= Promise.allSettled([...this.#held].map((stage) => stage.discard())).then(() =>
      this.#backend.close(),
    );
    return this.#closing;
  }
}

/**
 * Turns any error of an engine into `ERR_EM_ADAPTER_UNAVAILABLE`, with its message and the cause.
 * Other EffectMatch errors are kept, because they already say what is wrong.
 */
async function reporting<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw adapterFault(error);
  }
}

/** Thrown by the shared SQLite driver for any file, a ledger or a backend. */
const ENGINE_FAULTS: readonly string[] = ['ERR_EM_STORE_BUSY', 'ERR_EM_STORE_UNAVAILABLE'];

/** Gives an error of an engine the code for a backend that cannot be used. */
export function adapterFault(error: unknown): EffectMatchError {
  if (error instanceof EffectMatchError && !ENGINE_FAULTS.includes(error.code)) return error;
  const words = messageOf(error);
  return new EffectMatchError(
    'ERR_EM_ADAPTER_UNAVAILABLE',
    `the backend could not be used: ${words}`,
    { cause: error },
  );
}

/**
 * Returns the same object while nothing changes: the core digests a frozen list of outlets once.
 */
function keepEqual(known: Survey | undefined, survey: Survey): Survey {
  if (survey === known) return survey;
  if (known !== undefined && JSON.stringify(survey) === JSON.stringify(known)) return known;
  Object.freeze(survey.outlets);
  return survey;
}

/**
 * An engine's row may have more columns, or no prototype. The core compares and seals these five.
 */
function copyMarker<Found extends MarkerText | undefined>(found: Found): Found | MarkerText {
  if (found === undefined) return found;
  const { occurrence, disposition, text, sealKey, sealMac } = found;
  return { occurrence, disposition, text, sealKey, sealMac };
}

function copyConflict(result: VoidResult): VoidResult {
  if (result.kind !== 'conflict') return result;
  return { kind: 'conflict', marker: copyMarker(result.marker) };
}

function storable<T extends { readonly detail: string }>(answer: T): T {
  return { ...answer, detail: answer.detail.slice(0, MAX_DETAIL).toWellFormed() };
}

function storableAnswer(answer: CallAnswer | undefined): CallAnswer {
  if (answer === undefined) return { kind: 'done' };
  return answer.kind === 'failed' ? storable(answer) : answer;
}

/** The life of one candidate, the same for every engine. */
class HeldStage<Action> implements TaskStage<Action> {
  readonly candidate: string;
  /** When the action ran, on the runtime's clock. */
  window: Evidence['window'] = { fromMs: 0, toMs: 0 };
  results?: readonly StatementResult[];
  readonly #held: Candidate<Action>;
  readonly #request: HoldRequest;
  readonly #onEnd: () => void;
  /** The evidence reported last; undefined before an observation, or if it changed since. */
  #evidence: string | undefined;
  /** The runtime's clock and hooks while calls may come; undefined for a stage of one action. */
  #calling: Pick<AdapterContext, 'clock' | 'reached'> | undefined;
  #promoting: Promise<Promotion> | undefined;
  #how: CandidateEnd | undefined;
  #ending: ReturnType<Candidate<Action>['end']> | undefined;

  constructor(held: Candidate<Action>, request: HoldRequest, onEnd: () => void) {
    this.candidate = held.id;
    this.#held = held;
    this.#request = request;
    this.#onEnd = onEnd;
  }

  /** Accepts calls from now on, until `complete`. */
  begin(context: Pick<AdapterContext, 'clock' | 'reached'>): void {
    this.#calling = context;
    const now = context.clock.now();
    this.window = { fromMs: now, toMs: now };
  }

  async call(action: Action): Promise<CallAnswer> {
    const { reached } = this.#assertCalling();
    const held = this.#held;
    invariant(held.call !== undefined, 'a candidate for a task takes calls');
    const answer = storableAnswer(await reporting(async () => await held.call?.(action)));
    reached('adapter:action-done');
    return answer;
  }

  async complete(): Promise<CallAnswer> {
    const { clock } = this.#assertCalling();
    this.#calling = undefined;
    const completed = await reporting(async () => await this.#held.complete?.());
    this.window = { fromMs: this.window.fromMs, toMs: clock.now() };
    return storableAnswer(completed);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    return reads.length === 0 ? [] : await reporting(() => this.#held.read(reads));
  }

  async observe(): Promise<Evidence> {
    this.#assertHeld();
    const observed = await reporting(() => this.#held.observe());
    this.#evidence = observed.evidence;
    return { window: this.window, ...observed, candidate: this.candidate };
  }

  async recheck(): Promise<CandidateFacts> {
    this.#assertHeld();
    const evidence = await reporting(() => this.#held.recheck());
    if (evidence !== this.#evidence) this.#evidence = undefined;
    return { candidate: this.candidate, evidence };
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    this.#assertHeld();
    const mismatch = this.#findMismatch(permit);
    if (mismatch !== undefined) {
      await this.discard();
      const detail = `the permit is for ${mismatch}; nothing was promoted`;
      return refusedPromotion('permit-mismatch', detail);
    }
    this.#promoting = this.#commit(permit);
    return await this.#promoting;
  }

  /**
   * An adapter's own check of a permit, independent of the core: it must name the claim and
   * certificate under which this stage was opened, its candidate, and the evidence reported last.
   */
  #findMismatch({ record, marker }: ConsumedPermit): string | undefined {
    const { claim, certificate } = this.#request;
    const { occurrence, execution } = claim.sealed.record;
    const { bound } = record;
    if (record.occurrence !== occurrence) return 'another occurrence';
    if (record.execution !== execution) return 'another execution';
    if (record.claim !== claim.digest) return 'another claim';
    if (record.certificate !== certificate.digest) return 'another certificate';
    if (!('candidate' in bound)) return 'a request';
    if (bound.candidate !== this.candidate) return 'another candidate';
    if (this.#evidence === undefined)
      return 'a candidate that was not observed, or that changed since';
    if (bound.evidence !== this.#evidence) return 'other evidence';
    const isOwn = marker.occurrence === occurrence && marker.disposition === 'committed';
    return isOwn ? undefined : 'another marker';
  }

  /** If a promotion is under way, it decides how the candidate ends. */
  async discard(): Promise<readonly Residue[] | undefined> {
    await this.#promoting;
    return await this.end('discarded');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard();
  }

  /** Ends the candidate once. If that fails, it can be tried again and ends in the same way. */
  async end(how: CandidateEnd): Promise<readonly Residue[] | undefined> {
    this.#how ??= how;
    this.#ending ??= this.#held.end(this.#how);
    try {
      const residue = await this.#ending;
      this.#onEnd();
      return residue as readonly Residue[] | undefined;
    } catch (error) {
      this.#ending = undefined;
      throw error;
    }
  }

  /** Never throws: an error while a commit may be under way says nothing about its result. */
  async #commit(permit: ConsumedPermit): Promise<Promotion> {
    let promotion: Promotion;
    try {
      promotion = await this.#held.commit(permit.marker, permit);
    } catch (cause) {
      promotion = { kind: 'unknown', cause };
    }
    // If this fails, the core tries again: it discards after every promotion that is not confirmed.
    await this.end(END_OF[promotion.kind]).catch(() => {});
    return promotion.kind === 'refused' ? storable(promotion) : promotion;
  }

  #assertCalling(): Pick<AdapterContext, 'clock' | 'reached'> {
    this.#assertHeld();
    invariant(this.#calling !== undefined, 'calls come before the stage is complete');
    return this.#calling;
  }

  #assertHeld(): void {
    invariant(this.#promoting === undefined && this.#how === undefined, 'the stage is still held');
  }
}

const END_OF = { confirmed: 'committed', refused: 'discarded', unknown: 'unknown' } as const;
