import type {
  ClaimEntry,
  ClaimRequest,
  ClaimResult,
  LedgerContext,
  Ledgers,
} from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { invariant } from '../errors.ts';
import { type Binding, bindingRecord, type ClaimRecord } from '../protocol/binding.ts';
import { type License, licenseRecord } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { CLAIM_SLOT, type OpenedRow, RESOLUTION_SLOT, tampered, terminalSlot } from './journal.ts';
import {
  type CheckedRequest,
  checkRequest,
  macIssuance,
  makeClaim,
  nonceReused,
  notNext,
  planSuperseded,
  spent,
} from './rules.ts';
import type {
  IssuanceRow,
  IssuedBefore,
  LedgerTables,
  TableStore,
  UnsettledEntry,
} from './store.ts';

type ClaimMethods =
  | 'announcePlan'
  | 'claim'
  | 'renew'
  | 'abandon'
  | 'standing'
  | 'holder'
  | 'unsettled';

/** Plans, claims and leases. */
export function claimLedger(store: TableStore): Pick<Ledgers, ClaimMethods> {
  return {
    announcePlan: (task, revision) =>
      store.decide({ task }, 'flushed', (tables) => tables.announce(task, revision)),

    async claim(request) {
      const checked = checkRequest(store.context, request);
      const { binding, license } = checked;
      const plan = { task: license.task, revision: license.planRevision };
      const decide = (tables: LedgerTables) => claimOccurrence(tables, checked, request);
      return await store.decide({ binding, plan }, 'claim', decide, request.log);
    },

    // Not flushed: if a power cut loses the lease, it also ended the process that held it.
    renew: (occurrence, execution, leaseMs) =>
      store.decide({ occurrences: [occurrence] }, 'relaxed', (tables) => {
        const until = tables.now() + Math.ceil(leaseMs);
        const extended = tables.extendLease({ occurrence, execution }, until);
        return extended || isHolder(tables, occurrence, execution);
      }),

    // Not flushed either: if a power cut loses the change, the lease still expires.
    abandon: (occurrence, execution) =>
      store.decide({ occurrences: [occurrence] }, 'relaxed', (tables) => {
        tables.endLease({ occurrence, execution }, tables.now());
      }),

    async standing(task, attempt) {
      const { occurrence, execution } = attempt;
      const { announced, open } = await store.read({ standing: { task, attempt } }, (tables) =>
        tables.standing(task, attempt),
      );
      if (open) return { announced, holds: true };
      const holds = await store.read({ occurrences: [occurrence] }, (tables) => {
        const isResolved = () => tables.find(occurrence, RESOLUTION_SLOT) !== undefined;
        return isHolder(tables, occurrence, execution) && !isResolved();
      });
      return { announced, holds };
    },

    holder: (occurrence) =>
      store.read({ occurrences: [occurrence], issuances: true }, (tables) =>
        findHolder(tables, occurrence),
      ),

    unsettled: ({ includeLeased = false } = {}) => {
      const unsettled = includeLeased ? 'all' : 'expired';
      return store.read({ unsettled }, (tables) =>
        tables.unsettled(unsettled).map((entry) => openUnsettled(tables, entry)),
      );
    },
  };
}

/** Makes a claim inside one transaction. The result depends on rows, never on timing. */
function claimOccurrence(
  tables: LedgerTables,
  checked: CheckedRequest,
  request: ClaimRequest,
): ClaimResult {
  const { license, bindingText } = checked;
  const { announced, issued, traces } = findIssued(tables, checked);
  if (announced !== undefined && license.planRevision < announced)
    return planSuperseded(license, announced);
  if (issued !== undefined && issued.binding !== bindingText) return nonceReused(license);

  const { occurrences } = checked.binding;
  const occurrence =
    issued === undefined ? occurrences[0] : nextUnclaimed(tables, occurrences, issued.claimed);
  if (occurrence === undefined) return spent(license);
  if (request.only !== undefined && request.only !== occurrence)
    return notNext(occurrences, request.only, occurrence);
  const untouched = issued === undefined && traces === 0;
  if (!untouched) requireUnclaimed(tables, occurrence);

  const claim = makeClaim(tables.context, checked, request.claim, occurrence);
  const { execution } = claim.record;
  invariant(
    untouched || !tables.find(occurrence, terminalSlot(execution)),
    'an attempt claims before it ends',
  );
  if (issued !== undefined) tables.countClaim(issued.id);
  const issuance = issued?.id ?? issue(tables, checked, claim.seal.key);
  const seq = tables.append('claim', CLAIM_SLOT, claim, issuance);
  tables.enter(seq, execution, tables.now() + Math.ceil(request.leaseMs));
  return { kind: 'claimed', claim };
}

/**
 * Occurrences are claimed in order, so the last one counted must be in the journal, and the next
 * one must not be.
 */
function nextUnclaimed(
  tables: LedgerTables,
  occurrences: readonly OccurrenceId[],
  claimed: number,
): OccurrenceId | undefined {
  const last = occurrences[claimed - 1];
  if (last === undefined || tables.find(last, CLAIM_SLOT) === undefined) {
    throw tampered(`occurrence ${last}`, 'it was claimed and its claim is missing');
  }
  return occurrences[claimed];
}

/**
 * Until an occurrence is claimed, its only journal rows are attempts that were refused without a
 * claim.
 */
function requireUnclaimed(tables: LedgerTables, occurrence: OccurrenceId): void {
  const seq = tables.findClaimedTrace(occurrence);
  if (seq === undefined) return;
  throw tampered(
    seq,
    'its occurrence was claimed, and the claim or what it was claimed under is missing',
  );
}

/** The claim that holds an occurrence. */
export function findClaim(
  tables: LedgerTables,
  occurrence: string,
): Sealed<ClaimRecord> | undefined {
  const row = tables.find(occurrence, CLAIM_SLOT);
  return row?.kind === 'claim' ? row.sealed : undefined;
}

function isHolder(tables: LedgerTables, occurrence: string, execution: string): boolean {
  return findClaim(tables, occurrence)?.record.execution === execution;
}

function findHolder(tables: LedgerTables, occurrence: string): ClaimEntry | undefined {
  const row = tables.find(occurrence, CLAIM_SLOT);
  if (row === undefined) return undefined;
  return openHolder(tables, row, tables.entry(row.seq));
}

function openUnsettled(tables: LedgerTables, entry: UnsettledEntry): ClaimEntry {
  const { occurrence, claim } = entry;
  const row = occurrence === null ? undefined : tables.find(occurrence, CLAIM_SLOT);
  if (row?.seq !== claim)
    throw tampered(claim, 'it is listed as an unsettled claim and is not one');
  return openHolder(tables, row, entry);
}

function openHolder(
  tables: LedgerTables,
  row: OpenedRow,
  entry: UnsettledEntry | undefined,
): ClaimEntry {
  if (row.kind !== 'claim') throw tampered(row.seq, 'it stands in place of a claim');
  if (entry !== undefined && entry.execution !== row.sealed.record.execution) {
    throw tampered(row.seq, 'its entry among the unsettled claims names another execution');
  }
  const { license, approvedText } = openIssuance(tables, row.seq, row.sealed);
  const leaseUntilMs = entry?.leaseUntilMs ?? 0;
  const leaseExpired = leaseUntilMs <= tables.now();
  return { claim: row.sealed, license, approvedText, leaseUntilMs, leaseExpired };
}

/** Checks the stored binding if it differs from the request's, which was checked already. */
function findIssued(tables: LedgerTables, checked: CheckedRequest): IssuedBefore {
  const before = tables.issuedBefore(checked);
  const { issued } = before;
  if (issued === undefined || issued.binding === checked.bindingText) return before;
  const row = tables.issuance(issued.id);
  invariant(row !== undefined, 'an issuance that was found is there');
  openBinding(tables.context, row);
  return before;
}

/**
 * Stores what was signed, for the first claim under it. `sealKey` is the key that sealed that
 * claim.
 */
function issue(tables: LedgerTables, checked: CheckedRequest, sealKey: string): number {
  const { license, licenseText, approvedText, bindingText } = checked;
  const { issuer, nonce } = license;
  const mac = macIssuance(tables.context, sealKey, bindingText, approvedText);
  const texts = { license: licenseText, approved: approvedText, binding: bindingText };
  return tables.issue({ issuer, nonce, claimed: 1, ...texts, sealKey, mac });
}

/**
 * The signed license and outcome that were stored for a claim. Each part is bound by a digest in
 * the sealed claim, or by a keyed digest.
 */
export function openIssuance(
  tables: LedgerTables,
  seq: number,
  claim: Sealed<ClaimRecord>,
): { readonly license: License; readonly approvedText: string } {
  const { context } = tables;
  const row = tables.issuanceOf(seq);
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

/** The index columns make a nonce usable only once, so they must match the binding. */
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
