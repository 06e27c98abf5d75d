import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type Output, printableLine, type Tone } from './output.ts';

/** Every kind of row, by the word that `--kind` takes. */
export const ENTRY_KINDS = [
  'claim',
  'permit',
  'void',
  'terminal',
  'acknowledgement',
  'resolution',
  'shadow',
] as const satisfies readonly JournalEntry['kind'][];

const PAGE = 500;

/** Whether a row is one of those asked for. */
export type Matcher = (entry: JournalEntry) => Promise<boolean>;

/**
 * The rows asked for, in order. With `after` they are the first that follow it, else the newest.
 * Reads page by page when only some rows are asked for, because how many lie between two of them is
 * not known.
 */
export async function readEntries(
  ledgers: Ledgers,
  asked: {
    readonly limit: number;
    readonly after: number | undefined;
    readonly matches?: Matcher | undefined;
  },
): Promise<readonly JournalEntry[]> {
  const { limit, after, matches } = asked;
  if (matches === undefined) {
    return await ledgers.journal(
      after === undefined ? { last: true, limit } : { afterSeq: after, limit },
    );
  }
  return after === undefined
    ? await readBackwards(ledgers, matches, limit)
    : await readForwards(ledgers, matches, limit, after);
}

async function readForwards(
  ledgers: Ledgers,
  matches: Matcher,
  limit: number,
  after: number,
): Promise<JournalEntry[]> {
  const found: JournalEntry[] = [];
  for (let afterSeq = after; found.length < limit; ) {
    const page = await ledgers.journal({ afterSeq, limit: PAGE });
    const last = page.at(-1);
    if (last === undefined) break;
    found.push(...(await choose(page, matches)));
    afterSeq = last.seq;
  }
  return found.slice(0, limit);
}

async function readBackwards(
  ledgers: Ledgers,
  matches: Matcher,
  limit: number,
): Promise<JournalEntry[]> {
  const [newest] = await ledgers.journal({ last: true, limit: 1 });
  let found: JournalEntry[] = [];
  for (let upTo = newest?.seq ?? 0; upTo > 0 && found.length < limit; upTo -= PAGE) {
    const afterSeq = Math.max(0, upTo - PAGE);
    const page = await ledgers.journal({ afterSeq, limit: upTo - afterSeq });
    found = [...(await choose(page, matches)), ...found];
  }
  return found.slice(-limit);
}

async function choose(page: readonly JournalEntry[], matches: Matcher): Promise<JournalEntry[]> {
  const chosen: JournalEntry[] = [];
  for (const entry of page) if (await matches(entry)) chosen.push(entry);
  return chosen;
}

/** When a row was recorded, by the clock of whoever recorded it. */
export function timeOf(entry: JournalEntry): string {
  return describe(entry).at;
}

/** Formats rows one line each: number, time, kind, what became of it, occurrence, task, reason. */
export function createLineWriter(
  ledgers: Ledgers,
  output: Output,
): (entry: JournalEntry) => Promise<string> {
  const tasks = new Map<OccurrenceId, string>();
  return async (entry) => {
    const { occurrence } = entry.record;
    if ('task' in entry.record) tasks.set(occurrence, entry.record.task);
    const known =
      tasks.get(occurrence) ?? (await ledgers.holder(occurrence))?.claim.record.task ?? '-';
    tasks.set(occurrence, known);
    const { at, state, tone, reason } = describe(entry);
    const columns = [
      String(entry.seq).padStart(5),
      `${at.slice(0, 19)}Z`,
      entry.kind.padEnd(15),
      output.paint(tone, state.padEnd(13)),
      shortId(occurrence),
      printableLine(known),
      printableLine(reason),
    ];
    return columns.join('  ').trimEnd();
  };
}

/** Enough of an id to name it: `show` takes any unique prefix. */
export function shortId(occurrence: OccurrenceId): string {
  return occurrence.slice(0, 16);
}

function describe(entry: JournalEntry): { at: string; state: string; tone: Tone; reason: string } {
  switch (entry.kind) {
    case 'claim':
      return {
        at: entry.record.claimedAt,
        state: '',
        tone: 'plain',
        reason: `on ${entry.record.adapter}`,
      };
    case 'permit':
      return { at: entry.record.consumedAt, state: 'consumed', tone: 'plain', reason: '' };
    case 'void':
      return { at: entry.record.voidedAt, state: 'voided', tone: 'plain', reason: '' };
    case 'terminal': {
      const { kind, recordedAt } = entry.record;
      return { at: recordedAt, state: kind, tone: toneOf(kind), reason: reasonOf(entry.record) };
    }
    case 'acknowledgement': {
      const { at, state, continuation } = entry.record;
      return { at, state, tone: 'plain', reason: continuation };
    }
    case 'resolution': {
      const { at, finding, operator } = entry.record;
      return { at, state: 'resolved', tone: 'caution', reason: `${finding}, says ${operator}` };
    }
    case 'shadow': {
      const { recordedAt, would } = entry.record;
      const reason =
        would === 'reject' ? `would be rejected: ${entry.record.reason}` : WOULD[would];
      return { at: recordedAt, state: 'no verdict', tone: 'plain', reason };
    }
  }
}

const WOULD = {
  commit: 'would commit',
  propose: 'nothing approved to compare with',
  unknown: 'could not be rehearsed',
};

/** Green for the one verdict that releases work, red and yellow for those that do not. */
export function toneOf(kind: Terminal['kind']): Tone {
  return kind === 'committed' ? 'good' : kind === 'indeterminate' ? 'caution' : 'bad';
}

function reasonOf(terminal: Terminal): string {
  switch (terminal.kind) {
    case 'committed':
      return terminal.reconciled ? 'established by recovery' : '';
    case 'rejected':
      return `${terminal.at}: ${terminal.reason}`;
    case 'diverged':
      return 'durable, and not what was approved';
    case 'indeterminate':
      return terminal.gap;
  }
}
