import type {
  AttemptName,
  ClaimEntry,
  ClaimRequest,
  ClaimResult,
  Standing,
} from '../../contract/ledgers.ts';
import { invariant } from '../../errors.ts';
import type { ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import { CLAIM_SLOT, type OpenedRow, RESOLUTION_SLOT, tampered, terminalSlot } from '../journal.ts';
import { nonceReused, notNext, planSuperseded, spent } from '../refusals.ts';
import { type CheckedRequest, makeClaim } from '../rules.ts';
import { countClaim, findIssued, insertIssuance, openIssuance } from './issuances.ts';
import { appendRow, findRow, NOW_MS, type Session } from './session.ts';

/**
 * The whole of a claim, inside one immediate transaction: what it returns is decided by rows, never
 * by timing.
 */
export function claimOccurrence(
  session: Session,
  checked: CheckedRequest,
  request: ClaimRequest,
): ClaimResult {
  const { license, bindingText } = checked;
  const { announced, issued, traces } = findIssued(session, checked);
  if (announced !== undefined && license.planRevision < announced)
    return planSuperseded(license, announced);
  if (issued !== undefined && issued.binding !== bindingText) return nonceReused(license);

  const { occurrences } = checked.binding;
  const occurrence =
    issued === undefined ? occurrences[0] : nextUnclaimed(session, occurrences, issued.claimed);
  if (occurrence === undefined) return spent(license);
  if (request.only !== undefined && request.only !== occurrence)
    return notNext(occurrences, request.only, occurrence);
  const untouched = issued === undefined && traces === 0;
  if (!untouched) requireUnclaimed(session, occurrence);

  const claim = makeClaim(session.context, checked, request.claim, occurrence);
  const { execution } = claim.record;
  invariant(
    untouched || !findRow(session, occurrence, terminalSlot(execution)),
    'an attempt claims before it ends',
  );
  if (issued !== undefined) countClaim(session, issued.id);
  const issuance = issued?.id ?? insertIssuance(session, checked, claim.seal.key);
  const seq = appendRow(session, 'claim', CLAIM_SLOT, claim, issuance);
  session.sql(ENTER).run(seq, execution, Math.ceil(request.leaseMs));
  if (session.underWay.size === UNDER_WAY_MAX) session.underWay.clear();
  session.underWay.add(occurrence);
  return { kind: 'claimed', claim };
}

/** Attempts that another process ended would else add up. */
const UNDER_WAY_MAX = 256;

const ENTER = `insert into unsettled (claim, execution, lease_until_ms) values (?, ?, ${NOW_MS} + ?)`;

/**
 * Occurrences are claimed in order, so the last one counted must be in the journal and the next one
 * must not.
 */
function nextUnclaimed(
  session: Session,
  occurrences: readonly OccurrenceId[],
  claimed: number,
): OccurrenceId | undefined {
  const last = occurrences[claimed - 1];
  if (last === undefined || findRow(session, last, CLAIM_SLOT) === undefined) {
    throw tampered(`occurrence ${last}`, 'it was claimed and its claim is missing');
  }
  return occurrences[claimed];
}

/**
 * Before its claim the journal has nothing of an occurrence but attempts that were refused without
 * one.
 */
function requireUnclaimed(session: Session, occurrence: OccurrenceId): void {
  const row = session.sql(CLAIMED_TRACE).get(occurrence);
  if (row === undefined) return;
  throw tampered(
    Number(row.seq),
    'its occurrence was claimed, and the claim or what it was claimed under is missing',
  );
}

const CLAIMED_TRACE =
  "select seq from journal where occurrence = ? and (kind <> 'terminal' or text ->> '$.claim' is not null) limit 1";

/** Raises the announced revision; a lower one changes nothing. Returns the one that stands. */
export function raiseRevision(session: Session, task: string, revision: number): number {
  return Number(session.sql(RAISE).get(task, revision)?.revision);
}

const RAISE =
  'insert into plan (task, revision) values (?, ?) ' +
  'on conflict (task) do update set revision = max(plan.revision, excluded.revision) returning revision';

/**
 * Extends the lease of the execution that holds the occurrence, never shortens it. A settled claim
 * has none.
 */
export function renewLease(
  session: Session,
  occurrence: string,
  execution: ExecutionId,
  leaseMs: number,
): boolean {
  const { changes } = session.sql(RENEW).run(Math.ceil(leaseMs), occurrence, execution);
  return changes === 1 || isHolder(session, occurrence, execution);
}

const RENEW =
  `update unsettled set lease_until_ms = max(lease_until_ms, ${NOW_MS} + ?) ` +
  `where claim = (select seq from journal where occurrence = ? and slot = '${CLAIM_SLOT}') and execution = ?`;

/** Ends the lease of the execution that holds the occurrence, if it has not run out. */
export function endLease(session: Session, occurrence: string, execution: ExecutionId): void {
  session.sql(END_LEASE).run(occurrence, execution);
}

const END_LEASE =
  `update unsettled set lease_until_ms = min(lease_until_ms, ${NOW_MS}) ` +
  `where claim = (select seq from journal where occurrence = ? and slot = '${CLAIM_SLOT}') and execution = ?`;

/**
 * The announced plan, and whether the claim and, as long as it is unsettled, its entry name this
 * execution.
 */
export function findStanding(
  session: Session,
  task: string,
  { occurrence, execution }: AttemptName,
): Standing {
  const row = session.sql(STANDING).get(task, occurrence, execution) as {
    announced: number | null;
    holds: number;
  };
  const holds =
    row.holds === 1 ||
    (isHolder(session, occurrence, execution) && !isResolved(session, occurrence));
  return { announced: row.announced ?? undefined, holds };
}

const STANDING =
  'select (select revision from plan where task = ?) as announced, exists (select 1 from journal ' +
  `join unsettled on claim = seq where occurrence = ? and slot = '${CLAIM_SLOT}' and execution = ?) as holds`;

function isHolder(session: Session, occurrence: string, execution: ExecutionId): boolean {
  const row = findRow(session, occurrence, CLAIM_SLOT);
  return row?.kind === 'claim' && row.sealed.record.execution === execution;
}

function isResolved(session: Session, occurrence: OccurrenceId): boolean {
  return findRow(session, occurrence, RESOLUTION_SLOT) !== undefined;
}

/**
 * Takes the entry of a claim away once a verdict or a decision has ended it; false when that was
 * done before.
 */
export function settleClaim(session: Session, occurrence: string): boolean {
  return session.sql(SETTLE).run(occurrence).changes === 1;
}

const SETTLE = `delete from unsettled where claim = (select seq from journal where occurrence = ? and slot = '${CLAIM_SLOT}')`;

/** Who holds the occurrence, with the license and the outcome it was claimed under, all checked. */
export function findHolder(session: Session, occurrence: string): ClaimEntry | undefined {
  const row = findRow(session, occurrence, CLAIM_SLOT);
  if (row === undefined) return undefined;
  const entry = session.sql(`${ENTRIES} where claim = ?`).get(row.seq) as Entry | undefined;
  return openHolder(session, row, entry);
}

/**
 * Claims without a conclusive terminal, oldest first; without `includeLeased` only those past their
 * lease.
 */
export function listUnsettled(session: Session, includeLeased: boolean): readonly ClaimEntry[] {
  const entries = session
    .sql(`${ENTRIES} where claim > 0 and (? or lease_until_ms <= ${NOW_MS}) order by claim`)
    .all(includeLeased ? 1 : 0);
  return entries.map((found) => {
    const entry = found as unknown as Entry;
    const row =
      entry.occurrence === null ? undefined : findRow(session, entry.occurrence, CLAIM_SLOT);
    if (row?.seq !== entry.claim)
      throw tampered(entry.claim, 'it is among the unsettled claims and is none');
    return openHolder(session, row, entry);
  });
}

const ENTRIES =
  `select claim, execution, lease_until_ms as leaseUntilMs, lease_until_ms <= ${NOW_MS} as expired, ` +
  '(select occurrence from journal where seq = claim) as occurrence from unsettled';

/** What is kept of a claim until it is settled. */
interface Entry {
  readonly claim: number;
  readonly execution: string;
  readonly leaseUntilMs: number;
  readonly expired: number;
  readonly occurrence: string | null;
}

function openHolder(session: Session, row: OpenedRow, entry: Entry | undefined): ClaimEntry {
  if (row.kind !== 'claim') throw tampered(row.seq, 'it stands in place of a claim');
  if (entry !== undefined && entry.execution !== row.sealed.record.execution) {
    throw tampered(row.seq, 'its entry among the unsettled claims names another execution');
  }
  const { license, approvedText } = openIssuance(session, row.seq, row.sealed);
  const leaseUntilMs = entry?.leaseUntilMs ?? 0;
  return {
    claim: row.sealed,
    license,
    approvedText,
    leaseUntilMs,
    leaseExpired: entry?.expired !== 0,
  };
}
