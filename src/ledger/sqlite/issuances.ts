import type { LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { type Binding, bindingRecord, type ClaimRecord } from '../../protocol/binding.ts';
import { type License, licenseRecord } from '../../protocol/license.ts';
import { tampered } from '../journal.ts';
import { type CheckedRequest, macIssuance } from '../rules.ts';
import type { Session } from './session.ts';

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
export function findIssued(
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
export function insertIssuance(session: Session, checked: CheckedRequest, key: string): number {
  const { license, licenseText, approvedText, bindingText } = checked;
  const mac = macIssuance(session.context, key, bindingText, approvedText);
  const { lastInsertRowid } = session
    .sql(INSERT)
    .run(license.issuer, license.nonce, licenseText, approvedText, bindingText, key, mac);
  return Number(lastInsertRowid);
}

const INSERT =
  'insert into issuance (issuer, nonce, claimed, license, approved, binding, seal_key, mac) values (?, ?, 1, ?, ?, ?, ?, ?)';

/** Counts one claim more under what was signed. */
export function countClaim(session: Session, id: number): void {
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
