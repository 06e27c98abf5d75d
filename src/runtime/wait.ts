import { setTimeout as sleep } from 'node:timers/promises';
import { deadlineIn, isOver } from '../contract/clock.ts';
import type { Ledgers } from '../contract/ledgers.ts';
import { EffectMatchError } from '../errors.ts';
import { type OccurrenceId, occurrenceSchema } from '../protocol/record.ts';
import { accepts } from '../protocol/schema.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { Deployment } from './deployment.ts';
import { recoverTraced } from './recover.ts';

/** How long to wait for a verdict. */
export interface VerdictWaitOptions {
  /** The default is one minute. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

const WAIT_MS = 60_000;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

/**
 * Waits for the conclusive verdict about an occurrence. Executes nothing, but recovers an attempt
 * whose lease has expired. Undefined if there is no verdict in time, which is a halt. Returns an
 * `indeterminate` verdict that recovery cannot settle: only a person can.
 */
export async function waitForVerdict(
  deployment: Deployment,
  occurrence: OccurrenceId,
  { waitMs = WAIT_MS, signal }: VerdictWaitOptions = {},
): Promise<Terminal | undefined> {
  if (!accepts(occurrenceSchema, occurrence))
    throw new EffectMatchError('ERR_EM_USAGE', 'wait needs an occurrence: occ_ and 40 digits');
  if (!(waitMs >= 0))
    throw new EffectMatchError('ERR_EM_USAGE', 'waitMs must be a number of milliseconds');
  const until = deadlineIn(deployment.clock, waitMs);
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    const found = await findConclusive(deployment, occurrence);
    if (found !== undefined || isOver(deployment.clock, until)) return found;
    await pauseForChange(deployment.ledgers, occurrence, Math.min(pauseMs, waitMs), signal);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

async function findConclusive(
  deployment: Deployment,
  occurrence: OccurrenceId,
): Promise<Terminal | undefined> {
  const { ledgers } = deployment;
  const recorded = await ledgers.terminal(occurrence);
  if (recorded !== undefined && recorded.kind !== 'indeterminate') return recorded;
  const holder = await ledgers.holder(occurrence);
  if (holder === undefined || !holder.leaseExpired) return undefined;
  await recoverTraced(deployment, { occurrence });
  return await ledgers.terminal(occurrence);
}

/** Waits until the ledger reports a change, if it can; otherwise for this long. */
export async function pauseForChange(
  ledgers: Ledgers,
  occurrence: OccurrenceId,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (ledgers.changed !== undefined) await ledgers.changed(occurrence, ms, signal);
  else await sleep(ms, undefined, { ...(signal && { signal }) });
}
