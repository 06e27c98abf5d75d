import { deadlineIn, isOver } from '../contract/clock.ts';
import type { ClaimEntry } from '../contract/ledgers.ts';
import { actionDigest, digestRecord, occurrenceId } from '../crypto/digest.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { EffectMatchError } from '../errors.ts';
import { type License, licenseRecord, type SignedLicense } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { readAction } from './attempt.ts';
import { adapterNamed, type Deployment } from './deployment.ts';
import {
  type ExecuteOptions,
  executeSigned,
  type OccurrenceOptions,
  type Submitted,
} from './execute.ts';
import type { Executed } from './promotable.ts';
import { recoverTraced } from './recover.ts';
import { pauseForChange } from './wait.ts';

/** Options of `ensure`. */
export interface EnsureOptions extends ExecuteOptions {
  /**
   * Which execution of the license, counted from 1. Required if the license is for more than one.
   */
  readonly use?: number;
  /** How long to wait for an attempt that runs elsewhere. The default is one minute. */
  readonly waitMs?: number;
  /** Stops waiting. Does not affect the attempt. */
  readonly signal?: AbortSignal;
  /**
   * Called before each wait for another attempt's verdict, with the reason why there is none yet.
   */
  readonly onWait?: (why: string) => void;
}

/** The verdict about one execution of a license. */
export type Ensured = Executed & {
  /** Whether the verdict existed before this call, or another process made it. */
  readonly earlier: boolean;
};

const WAIT_MS = 60_000;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

/**
 * Executes the license if it is unused. Otherwise waits for the attempt that holds it, recovers
 * that attempt once its lease has expired, or returns the recorded verdict. The license is executed
 * at most once, however often and from however many processes this is called, and every caller gets
 * the same verdict. Not async, so as not to hold on to a license that is a long text.
 */
export function ensure(
  deployment: Deployment,
  license: unknown,
  action: unknown,
  options: EnsureOptions = {},
): Promise<Ensured> {
  return Promise.try(() => ensureSigned(deployment, parseSignedLicense(license), action, options));
}

async function ensureSigned(
  deployment: Deployment,
  signed: SignedLicense,
  action: unknown,
  options: EnsureOptions,
): Promise<Ensured> {
  const occurrence = occurrenceOf(signed.license, options.use);
  const { waitMs = WAIT_MS, signal, revision, onWait } = options;
  if (!(waitMs >= 0))
    throw new EffectMatchError('ERR_EM_USAGE', 'waitMs must be a number of milliseconds');
  signal?.throwIfAborted();
  const waitUntil = deadlineIn(deployment.clock, waitMs);
  const once = { occurrence, ...(revision !== undefined && { revision }) };
  const submitted = { kind: 'action', untrusted: action } as const;
  // A verdict about one action says nothing about another, so another action is refused before the
  // claim.
  if (isOtherAction(deployment, signed, action))
    return { ...(await executeSigned(deployment, signed, submitted, once)), earlier: false };
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    const holder = await deployment.ledgers.holder(occurrence);
    const found =
      holder === undefined
        ? await execute(deployment, signed, submitted, once)
        : await findVerdict(deployment, holder);
    if (found.kind === 'ended') return { ...found.terminal, earlier: found.isEarlier };
    if (isOver(deployment.clock, waitUntil)) throw stillOpen(occurrence, found.why);
    onWait?.(found.why);
    await pauseForChange(deployment.ledgers, occurrence, pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

/** The occurrence for one use of a license, counted from 1. */
export function occurrenceOf(license: License, use: number | undefined): OccurrenceId {
  const { issuer, nonce, occurrences } = license;
  const wanted = use ?? (occurrences === 1 ? 1 : undefined);
  if (wanted === undefined || !Number.isInteger(wanted) || wanted < 1 || wanted > occurrences) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      `this license is for ${occurrences} executions: say which one, as use: 1 to ${occurrences}`,
    );
  }
  const digest = digestRecord(licenseRecord, license);
  return occurrenceId({ issuer, nonce, license: digest, index: wanted - 1 });
}

type Found =
  | { readonly kind: 'ended'; readonly terminal: Executed; readonly isEarlier: boolean }
  | { readonly kind: 'open'; readonly why: string };

const EXECUTING = {
  kind: 'open',
  why: 'another process is executing it; if that one died, it is recovered when its lease ends',
} as const;

/**
 * The verdict of this execution, unless another process claimed the occurrence first. That process
 * may also have changed the state that this execution needs, so that it was refused.
 */
async function execute(
  deployment: Deployment,
  signed: SignedLicense,
  submitted: Submitted,
  once: OccurrenceOptions & { readonly occurrence: OccurrenceId },
): Promise<Found> {
  const terminal = await executeSigned(deployment, signed, submitted, once);
  const ended = { kind: 'ended', terminal, isEarlier: false } as const;
  if (terminal.kind !== 'rejected' || terminal.claim !== undefined) return ended;
  const isTaken = (await deployment.ledgers.holder(once.occurrence)) !== undefined;
  return isTaken ? EXECUTING : ended;
}

/** Whether the license is bound to an action, and this is not it. */
function isOtherAction(
  deployment: Deployment,
  { license, approved }: SignedLicense,
  untrusted: unknown,
): boolean {
  if (license.action === undefined) return false;
  const admitted = adapterNamed(deployment, license.adapter);
  const read = readAction(admitted, untrusted);
  if (read.kind === 'refused') return true;
  const described = admitted.adapter.describeAction(read.action);
  return actionDigest(described, approved.salt) !== license.action;
}

const earlier = (terminal: Terminal): Found => ({ kind: 'ended', terminal, isEarlier: true });

/** The verdict about a claimed execution. Recovers the execution if its lease has expired. */
async function findVerdict(deployment: Deployment, holder: ClaimEntry): Promise<Found> {
  const { occurrence } = holder.claim.record;
  const recorded = await deployment.ledgers.terminal(occurrence);
  if (recorded !== undefined && recorded.kind !== 'indeterminate') return earlier(recorded);
  if (!holder.leaseExpired) return EXECUTING;
  const [result] = await recoverTraced(deployment, { occurrence });
  if (result?.kind === 'settled') return earlier(result.terminal);
  const left = await deployment.ledgers.terminal(occurrence);
  if (left !== undefined) return earlier(left);
  return { kind: 'open', why: result?.why ?? 'its recovery has not ended' };
}

function stillOpen(occurrence: OccurrenceId, why: string): EffectMatchError<'ERR_EM_ATTEMPT_OPEN'> {
  return new EffectMatchError(
    'ERR_EM_ATTEMPT_OPEN',
    `${occurrence} has no verdict yet: ${why}. Call ensure again later; it never runs twice`,
  );
}
