import type { ClaimEntry } from '../contract/ledgers.ts';
import { digestRecord } from '../crypto/digest.ts';
import { claimRecord } from '../protocol/binding.ts';
import { type Approved, approvedRecord } from '../protocol/manifest.ts';
import { permitRecord } from '../protocol/permit.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { AttemptFacts } from './attempt.ts';
import { isRegistered } from './authority.ts';
import {
  type Admitted,
  type AdmittedPromotable,
  type AdmittedRemote,
  type Deployment,
  isPromotable,
} from './deployment.ts';
import { commitment, recordTerminal, rejection, uncertainty } from './finish.ts';
import { readBack, remoteTerminal } from './remote.ts';
import { settle } from './settle.ts';
import { traced } from './telemetry.ts';

/** What recovery did about one claimed occurrence. Only `settled` has a conclusive terminal. */
export type Recovered = { readonly occurrence: OccurrenceId; readonly task: string } & (
  | { readonly kind: 'settled'; readonly terminal: Terminal }
  /** Left alone: its lease is live, or something locks the backend. */
  | { readonly kind: 'running'; readonly why: string }
  /** Needs evidence or a person: no conclusive terminal could be recorded. */
  | { readonly kind: 'unresolved'; readonly why: string }
);

/** Which interrupted attempts to recover. */
export interface RecoverOptions {
  /**
   * Also attempts whose lease has not expired. This is safe: a live attempt then loses and is
   * refused.
   */
  readonly now?: boolean;
  /** Only attempts under the license with this digest. */
  readonly license?: Digest;
  /** Only the attempt at this occurrence. */
  readonly occurrence?: OccurrenceId;
}

/** Runs recovery in a telemetry span. */
export function recoverTraced(
  deployment: Deployment,
  options?: RecoverOptions,
  isStopped?: () => boolean,
): Promise<readonly Recovered[]> {
  const work = (reporting: Deployment) => recover(reporting, options, isStopped);
  return traced(deployment, { kind: 'recover' }, work, (recovered) => {
    const results = { settled: 0, running: 0, unresolved: 0 };
    for (const { kind } of recovered) results[kind] += 1;
    return { kind: 'recovered', results };
  });
}

/**
 * How many occurrences are recovered at once. One that waits for a deadline must not hold up the
 * others.
 */
const CONCURRENT = 8;

/**
 * Decides every claimed occurrence that has no conclusive terminal. Idempotent, and safe with many
 * workers and during executions: the marker (or the permit row, for remote paths) decides, and
 * terminals are inserted only if absent. Starts no further occurrence once `isStopped` returns
 * true.
 */
async function recover(
  deployment: Deployment,
  options: RecoverOptions = {},
  isStopped: () => boolean = () => false,
): Promise<readonly Recovered[]> {
  const open = await deployment.ledgers.unsettled({ includeLeased: true });
  const { license, occurrence } = options;
  const entries = open.filter(
    ({ claim: { record } }) =>
      (license ?? record.license) === record.license &&
      (occurrence ?? record.occurrence) === record.occurrence,
  );
  const results: Recovered[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < entries.length; at = next++) {
      const entry = entries[at] as ClaimEntry;
      const { occurrence, task } = entry.claim.record;
      const result = isStopped()
        ? running('the runtime was closed')
        : await recoverDue(deployment, entry, options);
      results[at] = { occurrence, task, ...result };
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENT, entries.length) }, work));
  return results;
}

async function recoverDue(
  deployment: Deployment,
  entry: ClaimEntry,
  { now }: RecoverOptions,
): Promise<Result> {
  if (!entry.leaseExpired && now !== true) {
    const seconds = Math.ceil((entry.leaseUntilMs - deployment.clock.now()) / 1000);
    return running(`its lease is live for ${Math.max(1, seconds)} s, and longer if it is renewed`);
  }
  return recoverOne(deployment, entry).catch((error: unknown) => unresolved(String(error)));
}

type Result =
  | { readonly kind: 'settled'; readonly terminal: Terminal }
  | { readonly kind: 'running' | 'unresolved'; readonly why: string };
const running = (why: string): Result => ({ kind: 'running', why });
const unresolved = (why: string): Result => ({ kind: 'unresolved', why });

async function recoverOne(deployment: Deployment, entry: ClaimEntry): Promise<Result> {
  deployment.reached('recovery:found');
  const { adapter, backend } = entry.claim.record;
  const admitted = deployment.adapters.get(adapter);
  if (admitted === undefined) return unresolved(`adapter "${adapter}" is not configured here`);
  if (!isPromotable(admitted)) return recoverRemote(deployment, admitted as AdmittedRemote, entry);
  if (admitted.adapter.identity.backend === backend)
    return recoverPromotable(deployment, admitted, entry);
  return leaveOpen(deployment, entry, admitted, elsewhere(adapter));
}

const elsewhere = (adapter: string): string =>
  `"${adapter}" is configured with another backend than the one this claim was made for`;

function attemptOf(entry: ClaimEntry, admitted: Admitted): AttemptFacts {
  const { occurrence, execution, license: lineage } = entry.claim.record;
  return { occurrence, execution, lineage, license: entry.license, admitted };
}

/**
 * The void marker decides. If it can be inserted, the attempt is over; otherwise the existing
 * marker says how it ended.
 */
async function recoverPromotable(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  entry: ClaimEntry,
): Promise<Result> {
  const attempt = attemptOf(entry, admitted);
  const claim = digestRecord(claimRecord, entry.claim.record);
  const settled = await settle(deployment, admitted, entry.claim);
  deployment.reached('recovery:settled');
  switch (settled.kind) {
    case 'void':
      return conclude(deployment, interrupted(deployment, attempt, claim));
    case 'elsewhere': {
      const refusal = {
        reason: 'decided-elsewhere',
        detail: `${settled.why}; this attempt left nothing`,
      };
      return conclude(deployment, rejection(deployment, attempt, 'recovery', refusal, { claim }));
    }
    case 'committed': {
      const { claimedAt } = entry.claim.record;
      return conclude(
        deployment,
        commitment(deployment, attempt, { ...settled.marker, claimedAt, reconciled: true }),
      );
    }
    case 'busy':
      return running(settled.why);
    case 'foreign':
      return leaveOpen(deployment, entry, admitted, settled.why);
  }
}

/**
 * Records as not established what no marker can decide here, so that an operator can close it. A
 * later recovery still settles it if the marker or the backend is found again.
 */
async function leaveOpen(
  deployment: Deployment,
  entry: ClaimEntry,
  admitted: AdmittedPromotable,
  why: string,
): Promise<Result> {
  const claim = digestRecord(claimRecord, entry.claim.record);
  const { terminal } = await conclude(
    deployment,
    uncertainty(deployment, attemptOf(entry, admitted), { claim }, why),
  );
  return terminal.kind === 'indeterminate' ? unresolved(why) : { kind: 'settled', terminal };
}

/**
 * Consuming and voiding the permit compete for one key. Once it is consumed, only positive evidence
 * is conclusive.
 */
async function recoverRemote(
  deployment: Deployment,
  admitted: AdmittedRemote,
  entry: ClaimEntry,
): Promise<Result> {
  const { occurrence, execution, claimedAt, adapter, backend } = entry.claim.record;
  const attempt = attemptOf(entry, admitted);
  const claim = digestRecord(claimRecord, entry.claim.record);
  const state = await deployment.ledgers.voidPermit(occurrence, execution);
  deployment.reached('recovery:settled');
  if (state.kind === 'void') return conclude(deployment, interrupted(deployment, attempt, claim));

  // The ledger knows whether anything may have been sent. Only the service it was sent to knows the
  // result.
  if (admitted.adapter.identity.backend !== backend) return unresolved(elsewhere(adapter));
  const { record } = state.permit;
  const consumed = {
    claim,
    certificate: record.certificate,
    permit: digestRecord(permitRecord, record),
    consumedAt: record.consumedAt,
  };
  const approved = storedApproval(entry, record.approved);
  if (approved === undefined) {
    return unresolved('the approved outcome was stored as digests only; resolve it with evidence');
  }
  if (!isRegistered(admitted, approved)) {
    return unresolved(
      'it was approved for other registered targets than are configured here, so nothing here sees them',
    );
  }
  const { outcome, refused } = await readBack(admitted, occurrence, approved, undefined);
  if (refused !== undefined) {
    return conclude(deployment, rejection(deployment, attempt, 'dispatch', refused, { claim }));
  }
  const concluded = await conclude(
    deployment,
    remoteTerminal(deployment, attempt, consumed, claimedAt, outcome, true),
  );
  return concluded.terminal.kind === 'indeterminate'
    ? unresolved(concluded.terminal.gap)
    : concluded;
}

/** The approved outcome stored with the claim, if it has the approved digest. */
function storedApproval(entry: ClaimEntry, approved: Digest): Approved | undefined {
  if (entry.license.approved !== approved) return undefined;
  const stored = approvedRecord.parseText(entry.approvedText);
  return digestRecord(approvedRecord, stored) === approved ? stored : undefined;
}

function interrupted(deployment: Deployment, attempt: AttemptFacts, claim: Digest): Terminal {
  const detail =
    'the attempt ended without a verdict; its marker is void, so it left nothing and never can';
  return rejection(deployment, attempt, 'recovery', { reason: 'interrupted', detail }, { claim });
}

async function conclude(
  deployment: Deployment,
  terminal: Terminal,
): Promise<Extract<Result, { kind: 'settled' }>> {
  const stored = await recordTerminal(deployment, terminal, 'flushed');
  deployment.reached('recovery:terminal-recorded');
  return { kind: 'settled', terminal: stored };
}
