import type {
  ClaimEntry,
  ClaimRequest,
  ClaimResult,
  LedgerContext,
  Ledgers,
} from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { invariant } from '../../errors.ts';
import { type Binding, bindingRecord, type ClaimRecord } from '../../protocol/binding.ts';
import { type License, licenseRecord } from '../../protocol/license.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import { CLAIM_SLOT, type OpenedRow, RESOLUTION_SLOT, tampered, terminalSlot } from '../journal.ts';
import {
  type CheckedRequest,
  checkRequest,
  macIssuance,
  makeClaim,
  nonceReused,
  notNext,
  planSuperseded,
  spent,
} from '../rules.ts';
import { GroupCommit } from './group.ts';
import {
  appendRow,
  findRow,
  guarded,
  read,
  type Session,
  writeFlushed,
  writeRelaxed,
} from './session.ts';

type ClaimMethods =
  | 'announcePlan'
  | 'claim'
  | 'renew'
  | 'abandon'
  | 'standing'
  | 'holder'
  | 'unsettled';

/** Plans, claims and leases. */
export function claimLedger(session: Session): Pick<Ledgers, ClaimMethods> {
  const { sql, store } = session;
  const { clock } = store;
  const claims = new GroupCommit(session);
  return {
    announcePlan: (task, revision) =>
      writeFlushed(session, () => Number(sql(RAISE).get(task, revision)?.revision)),

    async claim(request) {
      const checked = checkRequest(session.context, request);
      const claiming = claims.run(() => claimOccurrence(session, checked, request));
      return await guarded(store, claiming);
    },

    // Not flushed: a lease that a power cut takes back belonged to a process that the power cut
    // ended.
    renew: (occurrence, execution, leaseMs) =>
      writeRelaxed(session, () => {
        const until = clock.now() + Math.ceil(leaseMs);
        const { changes } = sql(RENEW).run(until, occurrence, execution);
        return changes === 1 || isHolder(session, occurrence, execution);
      }),

    // Not flushed either: a power cut leaves a lease that runs out.
    abandon: (occurrence, execution) =>
      writeRelaxed(session, () => {
        sql(END_LEASE).run(clock.now(), occurrence, execution);
      }),

    standing: (task, { occurrence, execution }) =>
      read(session, () => {
        const row = sql(STANDING).get(task, occurrence, execution);
        const isResolved = () => findRow(session, occurrence, RESOLUTION_SLOT) !== undefined;
        const holds =
          row?.holds === 1 || (isHolder(session, occurrence, execution) && !isResolved());
        return { announced: (row?.announced as number | null) ?? undefined, holds };
      }),

    holder: (occurrence) => read(session, () => findHolder(session, occurrence)),

    unsettled: ({ includeLeased = false } = {}) =>
      read(session, () => {
        const latest = includeLeased ? Number.MAX_SAFE_INTEGER : clock.now();
        const entries = sql(UNSETTLED).all(latest) as unknown as readonly Entry[];
        return entries.map((entry) => openUnsettled(session, entry));
      }),
  };
}

/** Raises the announced revision; a lower one changes nothing. */
const RAISE =
  'insert into plan (task, revision) values (?, ?) ' +
  'on conflict (task) do update set revision = max(plan.revision, excluded.revision) returning revision';
const CLAIM_OF = `claim = (select seq from journal where occurrence = ? and slot = '${CLAIM_SLOT}')`;
const RENEW = `update unsettled set lease_until_ms = max(lease_until_ms, ?) where ${CLAIM_OF} and execution = ?`;
const END_LEASE = `update unsettled set lease_until_ms = min(lease_until_ms, ?) where ${CLAIM_OF} and execution = ?`;
const SETTLE = `delete from unsettled where ${CLAIM_OF}`;
const ENTER = 'insert into unsettled (claim, execution, lease_until_ms) values (?, ?, ?)';
const STANDING =
  'select (select revision from plan where task = ?) as announced, exists (select 1 from journal ' +
  `join unsettled on claim = seq where occurrence = ? and slot = '${CLAIM_SLOT}' and execution = ?) as holds`;
const ENTRIES =
  'select claim, execution, lease_until_ms as leaseUntilMs, ' +
  '(select occurrence from journal where seq = claim) as occurrence from unsettled';
const UNSETTLED = `${ENTRIES} where claim > 0 and lease_until_ms <= ? order by claim`;
const CLAIMED_TRACE =
  "select seq from journal where occurrence = ? and (kind <> 'terminal' or text ->> '$.claim' is not null) limit 1";

/** Attempts that another process ended would otherwise add up. */
const UNDER_WAY_MAX = 256;

/**
 * The whole of a claim, inside one immediate transaction: what it returns is decided by rows, never
 * by timing.
 */
function claimOccurrence(
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
  const leaseUntilMs = session.store.clock.now() + Math.ceil(request.leaseMs);
  session.sql(ENTER).run(seq, execution, leaseUntilMs);
  if (session.underWay.size === UNDER_WAY_MAX) session.underWay.clear();
  session.underWay.add(occurrence);
  return { kind: 'claimed', claim };
}

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

/** The claim that holds an occurrence. */
export function findClaim(session: Session, occurrence: string): Sealed<ClaimRecord> | undefined {
  const row = findRow(session, occurrence, CLAIM_SLOT);
  return row?.kind === 'claim' ? row.sealed : undefined;
}

function isHolder(session: Session, occurrence: string, execution: string): boolean {
  return findClaim(session, occurrence)?.record.execution === execution;
}

/**
 * Takes the entry of a claim away once a verdict or a decision has ended it; false when that was
 * done before.
 */
export function settleClaim(session: Session, occurrence: string): boolean {
  return session.sql(SETTLE).run(occurrence).changes === 1;
}

/** What is kept of a claim until it is settled. */
interface Entry {
  readonly claim: number;
  readonly execution: string;
  readonly leaseUntilMs: number;
  readonly occurrence: string | null;
}

function findHolder(session: Session, occurrence: string): ClaimEntry | undefined {
  const row = findRow(session, occurrence, CLAIM_SLOT);
  if (row === undefined) return undefined;
  const entry = session.sql(`${ENTRIES} where claim = ?`).get(row.seq) as Entry | undefined;
  return openHolder(session, row, entry);
}

function openUnsettled(session: Session, entry: Entry): ClaimEntry {
  const { occurrence, claim } = entry;
  const row = occurrence === null ? undefined : findRow(session, occurrence, CLAIM_SLOT);
  if (row?.seq !== claim)
    throw tampered(claim, 'it is listed as an unsettled claim and is not one');
  return openHolder(session, row, entry);
}

function openHolder(session: Session, row: OpenedRow, entry: Entry | undefined): ClaimEntry {
  if (row.kind !== 'claim') throw tampered(row.seq, 'it stands in place of a claim');
  if (entry !== undefined && entry.execution !== row.sealed.record.execution) {
    throw tampered(row.seq, 'its entry among the unsettled claims names another execution');
  }
  const { license, approvedText } = openIssuance(session, row.seq, row.sealed);
  const leaseUntilMs = entry?.leaseUntilMs ?? 0;
  const leaseExpired = leaseUntilMs <= session.store.clock.now();
  return { claim: row.sealed, license, approvedText, leaseUntilMs, leaseExpired };
}

/** What a new claim under a license depends on besides its occurrence. */
interface Issued {
  /** The highest plan revision announced for the task. */
  readonly announced: number | undefined;
  /** How many rows the journal has of the first occurrence that the license buys. */
  readonly traces: number;
  /** The nonce of the license, where it was used before. */
  readonly issued:
    | { readonly id: number; readonly claimed: number; readonly binding: string }
    | undefined;
}

const ISSUED =
  'select (select revision from plan where task = ?) as announced, ' +
  '(select count(*) from journal where occurrence = ?) as traces, id, claimed, binding ' +
  'from (select 1) left join issuance on issuer = ? and nonce = ?';

/** A binding that is not the one in hand, which was checked, is checked here. */
function findIssued(
  { context, sql }: Session,
  { license, binding, bindingText }: CheckedRequest,
): Issued {
  const first = binding.occurrences[0] ?? null;
  const row = sql(ISSUED).get(
    license.task,
    first,
    license.issuer,
    license.nonce,
  ) as unknown as IssuedRow;
  const { traces, id } = row;
  const announced = row.announced ?? undefined;
  if (id === null) return { announced, traces, issued: undefined };
  if (row.binding !== bindingText)
    openBinding(context, sql(BY_ID).get(id) as unknown as IssuanceRow);
  return { announced, traces, issued: { id, claimed: row.claimed, binding: row.binding } };
}

/** Keeps what was signed, for the first claim under it, which was sealed with that key. */
function insertIssuance(session: Session, checked: CheckedRequest, key: string): number {
  const { license, licenseText, approvedText, bindingText } = checked;
  const mac = macIssuance(session.context, key, bindingText, approvedText);
  const { lastInsertRowid } = session
    .sql(ISSUE)
    .run(license.issuer, license.nonce, licenseText, approvedText, bindingText, key, mac);
  return Number(lastInsertRowid);
}

const ISSUE =
  'insert into issuance (issuer, nonce, claimed, license, approved, binding, seal_key, mac) values (?, ?, 1, ?, ?, ?, ?, ?)';

/** Counts one claim more under what was signed. */
function countClaim(session: Session, id: number): void {
  session.sql('update issuance set claimed = claimed + 1 where id = ?').run(id);
}

/**
 * What was signed and kept for a claim. Every part is bound by a digest in the sealed claim, or by
 * a keyed digest.
 */
export function openIssuance(
  session: Session,
  seq: number,
  claim: Sealed<ClaimRecord>,
): { readonly license: License; readonly approvedText: string } {
  const { context } = session;
  const row = session.sql(OF_CLAIM).get(seq) as IssuanceRow | undefined;
  if (row === undefined) throw tampered(seq, 'the issuance it was claimed under is missing');
  const { occurrences } = openBinding(context, row);
  const { occurrence, license: lineage } = claim.record;
  const index = occurrences.indexOf(occurrence);
  if (context.digest(bindingRecord.domain, row.binding) !== claim.record.binding || index < 0) {
    throw tampered(seq, 'it was claimed under another binding than the one stored');
  }
  if (index >= row.claimed)
    throw tampered(seq, 'the issuance it was claimed under does not count it');
  if (context.digest(licenseRecord.domain, row.license) !== lineage) {
    throw tampered(seq, 'it was claimed under another license than the one stored');
  }
  return { license: licenseRecord.parseText(row.license), approvedText: row.approved };
}

const ISSUANCES =
  'select issuer, nonce, claimed, license, approved, binding, seal_key as sealKey, mac from issuance';
const BY_ID = `${ISSUANCES} where id = ?`;
const OF_CLAIM = `${ISSUANCES} where id = (select issuance from journal where seq = ?)`;

interface IssuanceRow {
  readonly issuer: string;
  readonly nonce: string;
  readonly claimed: number;
  readonly license: string;
  readonly approved: string;
  readonly binding: string;
  readonly sealKey: string;
  readonly mac: string;
}

type IssuedRow = { readonly announced: number | null; readonly traces: number } & (
  | { readonly id: null }
  | (Pick<IssuanceRow, 'claimed' | 'binding'> & { readonly id: number })
);

/** The index columns are what makes a nonce usable once, so they must say what the binding says. */
function openBinding(context: LedgerContext, row: IssuanceRow): Binding {
  const where = `issuance ${row.nonce} of ${row.issuer}`;
  if (macIssuance(context, row.sealKey, row.binding, row.approved) !== row.mac) {
    throw tampered(where, 'it is not what was kept');
  }
  const binding = bindingRecord.parseText(row.binding);
  if (binding.issuer !== row.issuer || binding.nonce !== row.nonce) {
    throw tampered(where, 'its binding names another issuer or nonce');
  }
  return binding;
}
