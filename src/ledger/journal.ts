import type { JournalEntry, LedgerContext } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { EffectMatchError } from '../errors.ts';
import { type ClaimRecord, claimRecord } from '../protocol/binding.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import { markerRecord, type VoidMarker } from '../protocol/marker.ts';
import { type PermitRecord, permitRecord } from '../protocol/permit.ts';
import { type Digest, defineRecord, digestSchema, type RecordKind } from '../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { choice, closed } from '../protocol/schema.ts';
import { type Shadow, shadowRecord } from '../protocol/shadow.ts';
import { assertAssured, type Terminal, terminalRecord } from '../protocol/terminal.ts';

/** One journal row as a store keeps it. The unique key (occurrence, slot) decides every race. */
export interface JournalRow {
  readonly seq: number;
  readonly kind: JournalEntry['kind'];
  readonly occurrence: string;
  /** The row's role. An occurrence has at most one row per slot. */
  readonly slot: string;
  readonly text: string;
  readonly sealKey: string;
  readonly sealMac: string;
  readonly digest: string;
}

/** A row whose digest, seal, schema and slot have been checked. */
export type OpenedRow = { readonly seq: number; readonly slot: string; readonly digest: Digest } & (
  | { readonly kind: 'claim'; readonly sealed: Sealed<ClaimRecord> }
  | { readonly kind: 'permit'; readonly sealed: Sealed<PermitRecord> }
  | { readonly kind: 'void'; readonly sealed: Sealed<VoidMarker> }
  | { readonly kind: 'terminal'; readonly sealed: Sealed<Terminal> }
  | { readonly kind: 'acknowledgement'; readonly sealed: Sealed<Acknowledgement> }
  | { readonly kind: 'resolution'; readonly sealed: Sealed<Resolution> }
  | { readonly kind: 'shadow'; readonly sealed: Sealed<Shadow> }
);

/** One claim per occurrence. */
export const CLAIM_SLOT = 'claim';
/** Consuming and voiding a permit compete for this slot. */
export const PERMIT_SLOT = 'permit';
/** One terminal per attempt. A refused replay is a separate attempt. */
export const terminalSlot = (execution: string): string => `terminal:${execution}`;
/** One settlement of an attempt that ended `indeterminate`. */
export const settlementSlot = (execution: string): string => `settlement:${execution}`;
/** One operator's decision per occurrence. */
export const RESOLUTION_SLOT = 'resolution';
/** One shadow per occurrence. The occurrence exists only for the shadow. */
export const SHADOW_SLOT = 'shadow';
/** One completion per continuation, and one release per turn. Continuation names contain no `#`. */
export const acknowledgementSlot = (
  of: Pick<Acknowledgement, 'state' | 'continuation' | 'turn'>,
): string => `${of.state}:${of.continuation}${of.turn === undefined ? '' : `#${of.turn}`}`;

/** The slot that must be filled before an acknowledgement; undefined for the first release. */
export function precedingSlot(of: Acknowledgement): string | undefined {
  const { state, continuation, turn = 1 } = of;
  if (state === 'completed') return acknowledgementSlot({ state: 'released', continuation });
  if (state === 'released')
    return turn === 1 ? undefined : acknowledgementSlot({ state: 'reopened', continuation, turn });
  const before = turn === 2 ? {} : { turn: turn - 1 };
  return acknowledgementSlot({ state: 'released', continuation, ...before });
}

/**
 * Covers the position, kind and slot, and through the seal the content, so a moved row no longer
 * fits. It is keyed, so someone who can write the file but lacks the key cannot close the gap that
 * a removed row leaves.
 */
export function rowDigest(
  { sealer }: LedgerContext,
  { seq, kind, slot, sealKey, sealMac }: Omit<JournalRow, 'occurrence' | 'text' | 'digest'>,
): Digest {
  return sealer.mac(sealKey, 'effectmatch/journal-row/v1', `${seq}\n${kind}\n${slot}\n${sealMac}`);
}

/** The chain before the first row. */
export const CHAIN_START = '0'.repeat(64) as Digest;

/**
 * Extends the chain by one row. The chain at a position depends only on the rows, not on where
 * checkpoints were taken, so processes that checkpoint at the same time need no coordination.
 */
export function extendChain(context: LedgerContext, chain: Digest, row: Digest): Digest {
  return context.digest('effectmatch/journal-chain/v1', `${chain}${row}`);
}

/** Checks a row and parses its record. Every row read from a journal passes through here. */
export function openRow(context: LedgerContext, row: JournalRow): OpenedRow {
  const opened = openKind(context, row);
  const { occurrence } = opened.sealed.record;
  if (row.occurrence !== occurrence || !slotsOf(opened).includes(row.slot)) {
    throw tampered(row.seq, 'its index columns do not match its text');
  }
  if (rowDigest(context, row) !== row.digest)
    throw tampered(row.seq, 'its digest does not match its position and text');
  return opened;
}

/** The entry that the ledger returns for a checked row. */
export function entryOf(opened: OpenedRow): JournalEntry {
  return { seq: opened.seq, kind: opened.kind, record: opened.sealed.record } as JournalEntry;
}

/**
 * Reports that a stored row was altered: a journal row by position, anything else by name. The
 * operator must act; nothing is repaired automatically.
 */
export function tampered(
  where: number | string,
  what: string,
): EffectMatchError<'ERR_EM_JOURNAL_TAMPERED'> {
  return new EffectMatchError(
    'ERR_EM_JOURNAL_TAMPERED',
    `${typeof where === 'number' ? `journal row ${where}` : where}: ${what}; stop using this store, keep a copy as evidence and restore it from a backup`,
  );
}

/** The record in each kind of row. A voided permit is a void marker. */
const RECORDS = {
  claim: claimRecord,
  permit: permitRecord,
  void: markerRecord,
  terminal: terminalRecord,
  acknowledgement: acknowledgementRecord,
  resolution: resolutionRecord,
  shadow: shadowRecord,
} as const;

function openKind({ sealer }: LedgerContext, row: JournalRow): OpenedRow {
  const { seq, kind, slot, text, digest } = row;
  if (!Object.hasOwn(RECORDS, kind)) throw tampered(seq, 'its kind is unknown');
  const seal = { key: row.sealKey, mac: row.sealMac };
  const sealed = sealer.open(
    RECORDS[kind] as RecordKind<OpenedRow['sealed']['record']>,
    text,
    seal,
  );
  const opened = { seq, slot, digest, kind, sealed } as OpenedRow;
  if (opened.kind === 'void' && opened.sealed.record.disposition !== 'void')
    throw tampered(seq, 'a marker that is not void stands in place of a permit');
  if (opened.kind === 'terminal') assertAssured(opened.sealed.record);
  return opened;
}

function slotsOf(opened: OpenedRow): readonly string[] {
  switch (opened.kind) {
    case 'claim':
      return [CLAIM_SLOT];
    case 'permit':
    case 'void':
      return [PERMIT_SLOT];
    case 'terminal': {
      const { execution, kind } = opened.sealed.record;
      return kind === 'indeterminate'
        ? [terminalSlot(execution)]
        : [terminalSlot(execution), settlementSlot(execution)];
    }
    case 'acknowledgement':
      return [acknowledgementSlot(opened.sealed.record)];
    case 'resolution':
      return [RESOLUTION_SLOT];
    case 'shadow':
      return [SHADOW_SLOT];
  }
}

/**
 * Binds a stored document to its digest. The ledger does not know the label that digest was made
 * with.
 */
export const documentRecord = defineRecord(
  'document',
  1,
  1024,
  closed({ version: choice(1), digest: digestSchema, text: digestSchema }),
);

/** The label of the text digest in `documentRecord`. */
export const DOCUMENT_TEXT_DOMAIN = 'effectmatch/document-text/v1';
