import type { ClaimEntry, ClaimRequest, ClaimResult, LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { invariant } from '../../errors.ts';
import { type Binding, bindingRecord, type ClaimRecord } from '../../protocol/binding.ts';
import { type License, licenseRecord } from '../../protocol/license.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import { CLAIM_SLOT, tampered, terminalSlot } from '../journal.ts';
import { APPROVED_TEXT_DOMAIN, issuanceRecord } from '../records.ts';
import { nonceReused, planSuperseded, spent } from '../refusals.ts';
import { type CheckedRequest, makeClaim, sealIssuance } from '../rules.ts';
import { appendRow, findRow, NOW_MS, type Session } from './session.ts';

const ISSUANCE =
  'id, issuer, nonce, license, approved, seal_key as sealKey, seal_mac as sealMac, ' +
  'binding, binding_key as bindingKey, binding_mac as bindingMac';

/** The whole of a claim, inside one immediate transaction: what it returns is decided by rows, never by timing. */
export function claimOccurrence(session: Session, checked: CheckedRequest, request: ClaimRequest): ClaimResult {
  const { context } = session;
  const { license, binding } = checked;
  const announced = announcedRevision(session, license.task);
  if (announced !== undefined && license.planRevision < announced) return planSuperseded(license, announced);

  const issued = findBinding(session, license);
  if (issued !== undefined && issued.binding.text !== binding.text) return nonceReused(license);

  const occurrence = firstUnspent(session, binding.record);
  if (occurrence === undefined) return spent(license);
  const claim = makeClaim(context, checked, request.claim, occurrence);
  const { execution } = claim.record;
  invariant(!findRow(session, occurrence, terminalSlot(execution)), 'an attempt claims before it ends');

  const issuance = issued?.id ?? insertIssuance(session, checked);
  const seq = appendRow(session, 'claim', CLAIM_SLOT, claim);
  session
    .sql(
      `insert into occurrence (occurrence, seq, issuance, execution, lease_until_ms) values (?, ?, ?, ?, ${NOW_MS} + ?)`,
    )
    .run(occurrence, seq, issuance, execution, Math.ceil(request.leaseMs));
  return { kind: 'claimed', claim };
}

/** The highest plan revision announced for a task. */
export function announcedRevision(session: Session, task: string): number | undefined {
  const row = session.sql('select revision from plan where task = ?').get(task);
  return row === undefined ? undefined : Number(row.revision);
}

/** Raises the announced revision; a lower one changes nothing. */
export function raiseRevision(session: Session, task: string, revision: number): void {
  session
    .sql(
      'insert into plan (task, revision) values (?, ?) ' +
        'on conflict (task) do update set revision = excluded.revision where excluded.revision > revision',
    )
    .run(task, revision);
}

/** Extends the lease of the execution that holds the occurrence, never shortens it. */
export function renewLease(session: Session, occurrence: string, execution: ExecutionId, leaseMs: number): boolean {
  const { changes } = session
    .sql(
      `update occurrence set lease_until_ms = max(lease_until_ms, ${NOW_MS} + ?) where occurrence = ? and execution = ?`,
    )
    .run(Math.ceil(leaseMs), occurrence, execution);
  return changes === 1;
}

/** Whether the entry among the occurrences, and the claim in the journal that it stands for, name this execution. */
export function holdsOccurrence(session: Session, occurrence: string, execution: ExecutionId): boolean {
  const row = session
    .sql(
      `select 1 from occurrence join journal using (seq, occurrence) where occurrence = ? and execution = ? and slot = '${CLAIM_SLOT}'`,
    )
    .get(occurrence, execution);
  return row !== undefined;
}

/** Who holds the occurrence, with the license and the outcome it was claimed under, all checked. */
export function findHolder(session: Session, occurrence: string): ClaimEntry | undefined {
  const row = session.sql(`${LEASES} where occurrence = ?`).get(occurrence);
  return row && openHolder(session, row as unknown as LeaseRow);
}

/** Claims without a conclusive terminal, oldest first; without `includeLeased` only those past their lease. */
export function listUnsettled(session: Session, includeLeased: boolean): readonly ClaimEntry[] {
  const rows = session
    .sql(`${LEASES} where settled = 0 and (? or lease_until_ms <= ${NOW_MS}) order by seq`)
    .all(includeLeased ? 1 : 0);
  return rows.map((row) => openHolder(session, row as unknown as LeaseRow));
}

const LEASES =
  `select occurrence, seq, issuance, execution, lease_until_ms as leaseUntilMs, ` +
  `lease_until_ms <= ${NOW_MS} as expired, settled from occurrence`;

interface LeaseRow {
  readonly occurrence: string;
  readonly seq: number;
  readonly issuance: number;
  readonly execution: string;
  readonly leaseUntilMs: number;
  readonly expired: number;
}

function openHolder(session: Session, lease: LeaseRow): ClaimEntry {
  const row = findRow(session, lease.occurrence, CLAIM_SLOT);
  if (row?.kind !== 'claim' || row.seq !== lease.seq || row.sealed.record.execution !== lease.execution) {
    throw tampered(lease.seq, 'its entry among the occurrences does not fit it');
  }
  const { license, approvedText } = openIssuance(session, lease.issuance, row.seq, row.sealed);
  const { leaseUntilMs, expired } = lease;
  return { claim: row.sealed, license, approvedText, leaseUntilMs, leaseExpired: expired === 1 };
}

/** What was signed and kept for a claim; every part is bound by a digest in the sealed claim, or by a seal. */
export function openIssuance(
  session: Session,
  id: number,
  seq: number,
  claim: Sealed<ClaimRecord>,
): { readonly license: License; readonly approvedText: string } {
  const { context } = session;
  const row = session.sql(`select ${ISSUANCE} from issuance where id = ?`).get(id) as IssuanceRow | undefined;
  if (row === undefined) throw tampered(seq, 'the issuance it was claimed under is missing');
  const binding = openBinding(context, row);
  const bindingDigest = context.digest(bindingRecord.domain, row.binding);
  const { occurrence, license: lineage } = claim.record;
  if (bindingDigest !== claim.record.binding || !binding.record.occurrences.includes(occurrence)) {
    throw tampered(seq, 'it was claimed under another binding than the one stored');
  }
  if (context.digest(licenseRecord.domain, row.license) !== lineage) {
    throw tampered(seq, 'it was claimed under another license than the one stored');
  }
  openApproved(context, row, bindingDigest);
  return { license: licenseRecord.parseText(row.license), approvedText: row.approved };
}

interface IssuanceRow {
  readonly id: number;
  readonly issuer: string;
  readonly nonce: string;
  readonly license: string;
  readonly approved: string;
  readonly sealKey: string;
  readonly sealMac: string;
  readonly binding: string;
  readonly bindingKey: string;
  readonly bindingMac: string;
}

/** The index columns are what makes a nonce usable once, so they must say what the sealed binding says. */
function openBinding(context: LedgerContext, row: Omit<IssuanceRow, 'license' | 'approved'>): Sealed<Binding> {
  const sealed = context.sealer.open(bindingRecord, row.binding, { key: row.bindingKey, mac: row.bindingMac });
  const { issuer, nonce } = sealed.record;
  if (issuer !== row.issuer || nonce !== row.nonce) {
    throw tampered(`issuance ${row.nonce} of ${row.issuer}`, 'its binding names another issuer or nonce');
  }
  return sealed;
}

function openApproved(context: LedgerContext, row: IssuanceRow, binding: Digest): void {
  const approvedText = context.digest(APPROVED_TEXT_DOMAIN, row.approved);
  const text = issuanceRecord.text({ version: 1, binding, approvedText });
  context.sealer.open(issuanceRecord, text, { key: row.sealKey, mac: row.sealMac });
}

function findBinding(
  session: Session,
  { issuer, nonce }: License,
): { readonly id: number; readonly binding: Sealed<Binding> } | undefined {
  const row = session
    .sql(
      'select id, issuer, nonce, binding, binding_key as bindingKey, binding_mac as bindingMac ' +
        'from issuance where issuer = ? and nonce = ?',
    )
    .get(issuer, nonce) as IssuanceRow | undefined;
  return row && { id: row.id, binding: openBinding(session.context, row) };
}

/** The journal says what is spent, so that an entry missing among the occurrences cannot free one. */
function firstUnspent(session: Session, binding: Binding): OccurrenceId | undefined {
  const look = session.sql(
    `select (select seq from journal where occurrence = :occurrence and slot = '${CLAIM_SLOT}') as claimed, ` +
      '(select seq from occurrence where occurrence = :occurrence) as entered',
  );
  return binding.occurrences.find((occurrence) => {
    const row = look.get({ occurrence });
    if (row?.claimed !== row?.entered) {
      throw tampered(Number(row?.claimed ?? row?.entered), 'journal and occurrences do not agree on this claim');
    }
    return row?.claimed === null;
  });
}

function insertIssuance(session: Session, checked: CheckedRequest): number {
  const { license, licenseText, approvedText, binding } = checked;
  const issuance = sealIssuance(session.context, checked);
  const { lastInsertRowid } = session
    .sql(
      'insert into issuance (issuer, nonce, license, approved, seal_key, seal_mac, binding, binding_key, binding_mac) ' +
        'values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    .run(
      license.issuer,
      license.nonce,
      licenseText,
      approvedText,
      issuance.seal.key,
      issuance.seal.mac,
      binding.text,
      binding.seal.key,
      binding.seal.mac,
    );
  return Number(lastInsertRowid);
}
