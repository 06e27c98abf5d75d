import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import type { Envelope } from '../crypto/dsse.ts';
import type { ReceiptSigner } from '../crypto/receipt.ts';
import type { ExecutionId, OccurrenceId } from '../protocol/record.ts';

const PAGE = 500;

/** A journal row that holds a terminal. */
export type TerminalEntry = Extract<JournalEntry, { kind: 'terminal' }>;
/** A journal row that holds a shadow. */
export type ShadowEntry = Extract<JournalEntry, { kind: 'shadow' }>;

/** Which receipt to make. */
export interface ReceiptOptions {
  /** The attempt; by default the one that holds the claim. */
  readonly execution?: ExecutionId;
  /** Instead: the receipt of dependent work of the occurrence that has completed. */
  readonly continuation?: string;
}

/**
 * A receipt of how an attempt ended, made from the stored terminal; undefined if there is none. If
 * the attempt was settled later, the receipt is about the settlement.
 */
export async function receiptOf(
  parts: { readonly ledgers: Ledgers; readonly signer: ReceiptSigner },
  occurrence: OccurrenceId,
  options: ReceiptOptions = {},
): Promise<Envelope | undefined> {
  const { ledgers, signer } = parts;
  if (options.continuation !== undefined)
    return await completionReceipt(parts, occurrence, options.continuation);
  const execution = options.execution ?? (await ledgers.terminal(occurrence))?.execution;
  if (execution === undefined) return undefined;
  let found: TerminalEntry | undefined;
  for await (const entry of terminalEntries(ledgers, { occurrence })) {
    if (entry.record.execution === execution) found = entry;
  }
  return found && signer.receipt(found.record, found.seq);
}

/** The receipt of completed dependent work; undefined until the completion is recorded. */
async function completionReceipt(
  { ledgers, signer }: { readonly ledgers: Ledgers; readonly signer: ReceiptSigner },
  occurrence: OccurrenceId,
  continuation: string,
): Promise<Envelope | undefined> {
  for await (const entry of entriesOf(ledgers, 'acknowledgement', { occurrence })) {
    if (entry.kind !== 'acknowledgement') continue;
    const { state, continuation: name } = entry.record;
    if (state === 'completed' && name === continuation)
      return signer.completion(entry.record, entry.seq);
  }
  return undefined;
}

/**
 * The journal's terminals in order, read page by page: of one occurrence, or all after a position.
 */
export function terminalEntries(ledgers: Ledgers, which: Which): AsyncGenerator<TerminalEntry> {
  return entriesOf(ledgers, 'terminal', which) as AsyncGenerator<TerminalEntry>;
}

/** The same for shadows, which are not verdicts. */
export function shadowEntries(ledgers: Ledgers, which: Which): AsyncGenerator<ShadowEntry> {
  return entriesOf(ledgers, 'shadow', which) as AsyncGenerator<ShadowEntry>;
}

interface Which {
  readonly occurrence?: OccurrenceId;
  readonly afterSeq?: number;
}

async function* entriesOf(
  ledgers: Ledgers,
  kind: JournalEntry['kind'],
  which: Which,
): AsyncGenerator<JournalEntry> {
  const { occurrence } = which;
  for (let afterSeq = which.afterSeq ?? 0; ; ) {
    const page = await ledgers.journal({
      afterSeq,
      limit: PAGE,
      ...(occurrence && { occurrence }),
    });
    const last = page.at(-1);
    if (last === undefined) return;
    for (const entry of page) {
      if (
        entry.kind === kind &&
        (occurrence ?? entry.record.occurrence) === entry.record.occurrence
      )
        yield entry;
    }
    afterSeq = last.seq;
  }
}
