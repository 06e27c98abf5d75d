import type { Ledgers, LedgerTransaction } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { digestRecord, occurrencesOf } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import {
  type Acknowledgement,
  acknowledgementRecord,
  continuationOf,
  type Halt,
} from '../protocol/continuation.ts';
import { licenseRecord, type SignedLicense } from '../protocol/license.ts';
import { permitRecord } from '../protocol/permit.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import type { TerminalOf } from '../protocol/terminal.ts';
import { type Deployment, isPromotable, nowInstant } from './deployment.ts';
import { openMarker } from './settle.ts';

/** What a worker presents: the occurrence, and the license under which its work was registered. */
export interface Lineage {
  readonly occurrence: OccurrenceId;
  readonly lineage: Digest;
}

/**
 * The occurrences of a license in the order in which they are claimed, as `continuation` and
 * `terminal` expect them. With these, the holder of a license can ask what became of it, even if
 * the executing process died before it returned a verdict. Does not check whether the license is
 * valid or was used.
 */
export function lineagesOf({ license }: SignedLicense): readonly [Lineage, ...Lineage[]] {
  const lineage = digestRecord(licenseRecord, license);
  const [first, ...further] = occurrencesOf(license, lineage);
  return [
    { occurrence: first, lineage },
    ...further.map((occurrence) => ({ occurrence, lineage })),
  ];
}

/** What became of dependent work: it ran, with this result, or it was halted, and why. */
export type Release<T> =
  | { readonly kind: 'released'; readonly value: T }
  | { readonly kind: 'halted'; readonly why: Halt };

/** Options for a release. */
export interface ReleaseOptions {
  /**
   * Continuations of the same occurrence that this one depends on. It is halted until each of them
   * has recorded its receipt.
   */
  readonly after?: readonly string[];
}

/** The transaction of a hand-over, and the only key that its job may have. */
export interface HandOverTransaction extends LedgerTransaction {
  /** `occurrence/continuation`: the unique key of the job in the queue. */
  readonly key: string;
}

/** The gate that dependent work of one occurrence asks before it runs. */
export interface ContinuationGate {
  /**
   * Runs the work if the occurrence is committed. The release is durable before the work starts, so
   * the work runs at most once, even if this process dies while it runs.
   */
  release<T>(work: () => T | Promise<T>, options?: ReleaseOptions): Promise<Release<T>>;
  /**
   * For work that runs elsewhere, for example behind HTTP: releases it durably, once. The worker
   * then calls {@link ContinuationGate.perform} to record the receipt.
   */
  begin(options?: ReleaseOptions): Promise<Release<undefined>>;
  /**
   * Inserts a job instead: the release and what `insert` writes are committed together. The ledger
   * must be in the PostgreSQL database of the queue. The job calls {@link
   * ContinuationGate.perform}.
   */
  handOver<T>(
    insert: (transaction: HandOverTransaction) => T | Promise<T>,
    options?: ReleaseOptions,
  ): Promise<Release<T>>;
  /**
   * Runs delayed work that was handed over, then records its receipt. If the queue delivers the job
   * again before that, the work runs again, so use `ensure` for its effects.
   */
  perform<T>(work: () => T | Promise<T>): Promise<Release<T>>;
}

/** The gate of one continuation. */
export function continuationGate(
  deployment: Deployment,
  from: Lineage,
  name: string,
): ContinuationGate {
  return {
    release: (work, options) => release(deployment, from, name, work, options),
    begin: (options) => begin(deployment, from, name, options),
    handOver: (insert, options) => handOver(deployment, from, name, insert, options),
    perform: (work) => perform(deployment, from, name, work),
  };
}

/** Runs dependent work in this process, at most once. */
async function release<T>(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
  work: () => T | Promise<T>,
  options?: ReleaseOptions,
): Promise<Release<T>> {
  demandArguments(from, continuation, work, 'release needs the work, as a function');
  const begun = await begin(deployment, from, continuation, options);
  if (begun.kind === 'halted') return begun;
  const value = await work();
  deployment.reached('continuation:work-done');
  await deployment.ledgers.acknowledge(acknowledge(deployment, from, continuation, 'completed'));
  return { kind: 'released', value };
}

/** Records the release of work that runs elsewhere. */
async function begin(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
  options?: ReleaseOptions,
): Promise<Release<undefined>> {
  const asked = await askRelease(deployment, from, continuation, options);
  if (asked.kind === 'halted') return asked;
  if (!(await deployment.ledgers.acknowledge(asked.acknowledgement)))
    return { kind: 'halted', why: 'already-released' };
  deployment.reached('continuation:acknowledged');
  return { kind: 'released', value: undefined };
}

/** Releases work to a queue: the job and the release are committed together. */
async function handOver<T>(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
  insert: (transaction: HandOverTransaction) => T | Promise<T>,
  options?: ReleaseOptions,
): Promise<Release<T>> {
  const { ledgers } = deployment;
  demandArguments(from, continuation, insert, 'handOver needs a function that inserts the job');
  if (ledgers.handOver === undefined)
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'handOver needs the ledger in the PostgreSQL database of the queue; use release with this ledger',
    );
  const asked = await askRelease(deployment, from, continuation, options);
  if (asked.kind === 'halted') return asked;
  const key = `${from.occurrence}/${continuation}`;
  const handed = await ledgers
    .handOver(asked.acknowledgement, (transaction) => insert({ ...transaction, key }))
    .catch(async (error: unknown) => {
      // If two hand over at once, the queue's unique key stops the second.
      const recorded = await ledgers.acknowledgements(from.occurrence);
      if (stateOf(recorded, continuation).isReleased) return { released: false as const };
      throw error;
    });
  if (!handed.released) return { kind: 'halted', why: 'already-released' };
  deployment.reached('continuation:acknowledged');
  return { kind: 'released', value: handed.value };
}

/** Runs work that was handed over, and records its receipt. */
async function perform<T>(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
  work: () => T | Promise<T>,
): Promise<Release<T>> {
  const { ledgers } = deployment;
  demandArguments(from, continuation, work, 'perform needs the work, as a function');
  const decided = await decide(deployment, from, continuation);
  if (decided.kind === 'halted') return decided;
  const states = stateOf(await ledgers.acknowledgements(from.occurrence), continuation);
  if (states.isCompleted) return { kind: 'halted', why: 'already-completed' };
  if (!states.isReleased) return { kind: 'halted', why: 'not-released' };
  const value = await work();
  deployment.reached('continuation:work-done');
  await ledgers.acknowledge(acknowledge(deployment, from, continuation, 'completed'));
  return { kind: 'released', value };
}

/** Checks the arguments before the release is recorded, because it is recorded only once. */
function demandArguments(from: Lineage, continuation: string, work: unknown, what: string): void {
  const { occurrence, lineage } = from ?? {};
  if (![occurrence, lineage, continuation].every((name) => typeof name === 'string')) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'a continuation is asked for with a terminal (or its occurrence and lineage) and a name',
    );
  }
  if (typeof work !== 'function') throw new EffectMatchError('ERR_EM_USAGE', what);
}

type Halted = { readonly kind: 'halted'; readonly why: Halt };

/** Whether the work may be released now, and the record that releases it. */
async function askRelease(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
  { after = [] }: ReleaseOptions = {},
): Promise<
  Halted | { readonly kind: 'release'; readonly acknowledgement: Sealed<Acknowledgement> }
> {
  const decided = await decide(deployment, from, continuation);
  if (decided.kind === 'halted') return decided;
  const recorded = await deployment.ledgers.acknowledgements(from.occurrence);
  if (!after.every((name) => stateOf(recorded, name).isCompleted))
    return { kind: 'halted', why: 'not-completed' };
  const { turn, isReleased, isCompleted } = stateOf(recorded, continuation);
  if (isReleased || isCompleted) return { kind: 'halted', why: 'already-released' };
  deployment.reached('continuation:checked');
  const acknowledgement = acknowledge(deployment, from, continuation, 'released', turn);
  return { kind: 'release', acknowledgement };
}

/**
 * Halts unless the occurrence is committed, registers the continuation, and its durable state
 * exists.
 */
async function decide(
  deployment: Deployment,
  { occurrence, lineage }: Lineage,
  continuation: string,
): Promise<Halted | { readonly kind: 'committed' }> {
  const { ledgers } = deployment;
  const holder = await ledgers.holder(occurrence);
  const registered = holder?.claim.record.continuations ?? [];
  const fieldMatch = holder?.license.fieldMatch;
  const asked = { continuation, lineage, registered, fieldMatch };
  const decision = continuationOf(await ledgers.terminal(occurrence), asked);
  if (decision.kind === 'halt') return { kind: 'halted', why: decision.why };
  const isThere = await stateIsThere(deployment, decision.terminal);
  return isThere ? { kind: 'committed' } : { kind: 'halted', why: 'state-missing' };
}

/**
 * The state of one continuation. `turn` is the number of the latest release allowed, absent for the
 * first.
 */
export function stateOf(recorded: readonly Acknowledgement[], continuation: string) {
  const own = recorded.filter((one) => one.continuation === continuation);
  const turns = own.filter(({ state }) => state === 'reopened').map(({ turn = 1 }) => turn);
  const turn = turns.length === 0 ? undefined : Math.max(...turns);
  const isReleased = own.some((one) => one.state === 'released' && one.turn === turn);
  return { turn, isReleased, isCompleted: own.some(({ state }) => state === 'completed') };
}

function acknowledge(
  deployment: Deployment,
  { occurrence, lineage }: Lineage,
  continuation: string,
  state: 'released' | 'completed',
  turn?: number,
): Sealed<Acknowledgement> {
  const record = { version: 1 as const, occurrence, continuation, lineage, state };
  return deployment.sealer.seal(acknowledgementRecord, {
    ...record,
    ...(turn !== undefined && { turn }),
    at: nowInstant(deployment),
  });
}

/**
 * Work that was released and has not completed. It is running or queued, or it was interrupted and
 * runs again only if an operator decides so.
 */
export interface OpenContinuation extends Lineage {
  readonly continuation: string;
  readonly task: string;
  readonly releasedAt: string;
  /** The number of the release, from 2, if the work was released again. */
  readonly turn?: number;
}

/** Every release without its completion, oldest first. */
export async function openContinuations(ledgers: Ledgers): Promise<readonly OpenContinuation[]> {
  const open: OpenContinuation[] = [];
  for (const { occurrence, lineage, continuation, turn, at } of await ledgers.uncompleted()) {
    const holder = await ledgers.holder(occurrence);
    const task = holder?.claim.record.task ?? '';
    const again = turn === undefined ? {} : { turn };
    open.push({ occurrence, lineage, continuation, task, releasedAt: at, ...again });
  }
  return open;
}

/**
 * Whether the durable state exists: the marker in the backend, or the consumed permit. A database
 * restored to an earlier time lacks it.
 */
async function stateIsThere(
  deployment: Deployment,
  terminal: TerminalOf<'committed'>,
): Promise<boolean> {
  const admitted = deployment.adapters.get(terminal.adapter);
  if (admitted === undefined) return false;
  if (isPromotable(admitted)) {
    const stored = await admitted.adapter.markers.find(terminal.occurrence);
    if (stored === undefined) return false;
    const marker = openMarker(deployment, stored);
    return (
      marker.kind === 'valid' &&
      marker.record.disposition === 'committed' &&
      marker.record.occurrence === terminal.occurrence &&
      marker.record.execution === terminal.execution &&
      marker.record.observed === terminal.observed &&
      marker.record.permit === terminal.permit
    );
  }
  const permit = await deployment.ledgers.permit(terminal.occurrence);
  return (
    permit?.kind === 'consumed' &&
    digestRecord(permitRecord, permit.permit.record) === terminal.permit
  );
}
