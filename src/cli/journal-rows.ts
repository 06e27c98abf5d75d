import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import { parseDuration } from '../crypto/duration.ts';
import { hasCode } from '../errors.ts';
import { type Approved, approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { renderTarget } from '../protocol/render-text.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { Arguments, Flags } from './command.ts';

import { cut, type Output, printableLine, shortId, type Tone, toneOf } from './output.ts';

const KINDS = [
  'claim',
  'permit',
  'void',
  'terminal',
  'acknowledgement',
  'resolution',
  'shadow',
] as const satisfies readonly JournalEntry['kind'][];

const DISPOSITIONS = [
  'committed',
  'rejected',
  'diverged',
  'indeterminate',
] as const satisfies readonly Terminal['kind'][];

/** The flags that select rows by content. */
export const FILTER_FLAGS = {
  kind: { value: 'KIND', about: `only rows of one kind: ${KINDS.join(', ')}` },
  task: { value: 'TEXT', about: 'only rows of this task' },
  operation: {
    value: 'NAME',
    about: 'only rows of occurrences that were claimed for this operation',
  },
  disposition: {
    value: 'WORD',
    about: `only verdicts of one disposition: ${DISPOSITIONS.join(', ')}`,
  },
  adapter: { value: 'NAME', about: 'only rows of this adapter' },
  since: {
    value: 'TIME',
    about: 'only rows from this time on: 2026-11-15, 2026-11-15T08:00:00Z, or 90m, 2h, 3d ago',
  },
  until: { value: 'TIME', about: 'only rows before this time' },
} satisfies Flags;

/** Which rows to show. An undefined field does not restrict them. */
type Filter = ReturnType<typeof readFilter>;

export function readFilter(args: Arguments, nowMs: number) {
  return {
    kind: args.choice('kind', KINDS),
    disposition: args.choice('disposition', DISPOSITIONS),
    about: {
      task: args.value('task'),
      adapter: args.value('adapter'),
      operation: args.value('operation'),
    },
    sinceMs: readTime(args, 'since', nowMs),
    untilMs: readTime(args, 'until', nowMs),
  };
}

const DATE = /^\d{4}-\d\d-\d\d$/;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;
const AGO_MAX_MS = 100 * 365 * 86_400_000;

/**
 * Parses a day in UTC, an instant with a time zone, or a duration before now. A time without a zone
 * is ambiguous and rejected.
 */
function readTime(args: Arguments, flag: string, nowMs: number): number | undefined {
  const text = args.value(flag);
  if (text === undefined) return undefined;
  if (DATE.test(text) || INSTANT.test(text)) {
    const ms = Date.parse(text);
    if (!Number.isNaN(ms) && isDay(text.slice(0, 10))) return ms;
  }
  try {
    return nowMs - parseDuration(text, AGO_MAX_MS);
  } catch (error) {
    if (!hasCode(error, 'ERR_EM_USAGE')) throw error;
    const forms = '2026-11-15, 2026-11-15T08:00:00Z or 2h';
    throw args.wrong(`--${flag} takes a time such as ${forms}, not "${text}"`);
  }
}

/** Whether the day exists: Date silently reads 30 February as a day in March. */
function isDay(text: string): boolean {
  return new Date(Date.parse(text)).toISOString().startsWith(text);
}

/** What an occurrence is about. */
type About = { readonly [field in 'task' | 'adapter' | 'operation']?: string | undefined };

/** Looks up what a row is about. Fields that the row lacks come from its claim. */
function createLookup(ledgers: Pick<Ledgers, 'holder'>): (entry: JournalEntry) => Promise<About> {
  const claims = new Map<OccurrenceId, Promise<About>>();
  const readClaim = async (occurrence: OccurrenceId): Promise<About> => {
    const holder = await ledgers.holder(occurrence);
    if (holder === undefined) return {};
    const { task, adapter } = holder.claim.record;
    return { task, adapter, operation: holder.license.operation };
  };
  return async ({ record }) => {
    const { occurrence } = record;
    const claim = claims.get(occurrence) ?? readClaim(occurrence);
    claims.set(occurrence, claim);
    const { task, adapter } = 'task' in record ? record : await claim;
    return { ...(await claim), task, adapter };
  };
}

/** Whether to show a row. */
export type Matcher = (entry: JournalEntry) => Promise<boolean>;

export function createMatcher(ledgers: Pick<Ledgers, 'holder'>, filter: Filter): Matcher {
  const lookUp = createLookup(ledgers);
  const { kind, disposition, sinceMs = -Infinity, untilMs = Infinity } = filter;
  const wanted = Object.entries(filter.about).filter(([, value]) => value !== undefined);
  return async (entry) => {
    if (kind !== undefined && entry.kind !== kind) return false;
    const verdict = entry.kind === 'terminal' ? entry.record.kind : undefined;
    if (disposition !== undefined && verdict !== disposition) return false;
    const atMs = Date.parse(describe(entry).at);
    if (atMs < sinceMs || atMs >= untilMs) return false;
    if (wanted.length === 0) return true;
    const about = new Map(Object.entries(await lookUp(entry)));
    return wanted.every(([field, value]) => about.get(field) === value);
  };
}

const PAGE = 500;

/** Which rows to read: the first ones after a given row, or else the newest. */
interface RowRequest {
  readonly limit: number;
  readonly after: number | undefined;
  readonly matches: Matcher;
}

/** The matching rows, in order. Reads page by page, because matches may be far apart. */
export async function readJournalRows(
  ledgers: Ledgers,
  { limit, after, matches }: RowRequest,
): Promise<readonly JournalEntry[]> {
  const choose = async (page: readonly JournalEntry[]) => {
    const chosen: JournalEntry[] = [];
    for (const entry of page) if (await matches(entry)) chosen.push(entry);
    return chosen;
  };
  let found: JournalEntry[] = [];
  if (after === undefined) {
    const [newest] = await ledgers.journal({ last: true, limit: 1 });
    for (let upTo = newest?.seq ?? 0; upTo > 0 && found.length < limit; upTo -= PAGE) {
      const afterSeq = Math.max(0, upTo - PAGE);
      const page = await ledgers.journal({ afterSeq, limit: upTo - afterSeq });
      found = [...(await choose(page)), ...found];
    }
    return found.slice(-limit);
  }
  for (let afterSeq = after; found.length < limit; ) {
    const page = await ledgers.journal({ afterSeq, limit: PAGE });
    const last = page.at(-1);
    if (last === undefined) break;
    found.push(...(await choose(page)));
    afterSeq = last.seq;
  }
  return found.slice(0, limit);
}

/** The widths of the columns before the task. */
const COLUMNS = { seq: 5, at: 20, state: 13, id: 16 };
const GAP = '  ';
const TASK_AT = 4 * GAP.length + COLUMNS.seq + COLUMNS.at + COLUMNS.state + COLUMNS.id;
const TASK_MIN = 8;

/**
 * Formats rows. The first line has the number, time, event, occurrence and task. A verdict has a
 * second line with the reason, the changes, and who approved it. No line is wider than the
 * terminal.
 */
export function createLineWriter(
  ledgers: Ledgers,
  output: Output,
): (entry: JournalEntry) => Promise<string> {
  const lookUp = createLookup(ledgers);
  return async (entry) => {
    const { task = '-', adapter = '-' } = await lookUp(entry);
    const { at, state, tone = 'plain', reason } = describe(entry);
    const columns = [
      String(entry.seq).padStart(COLUMNS.seq),
      `${at.slice(0, 19)}Z`,
      output.paint(tone, state.padEnd(COLUMNS.state)),
      shortId(entry.record.occurrence),
      cut(printableLine(task), Math.max(TASK_MIN, output.width - TASK_AT)),
    ];
    const details =
      entry.kind === 'terminal' ? await describeVerdict(ledgers, entry.record, adapter) : [reason];
    const indent = ' '.repeat(COLUMNS.seq + GAP.length);
    const detail = printableLine(details.filter(Boolean).join('; '));
    const second = cut(`${indent}${detail}`, output.width);
    return [columns.join(GAP), ...(detail === '' ? [] : [second])].join('\n');
  };
}

/** The reason of a verdict, the changes, and who approved them. */
async function describeVerdict(
  ledgers: Ledgers,
  terminal: Terminal,
  adapter: string,
): Promise<readonly string[]> {
  const holder = await ledgers.holder(terminal.occurrence);
  const reason = reasonOf(terminal);
  if (holder === undefined) return [reason, `on ${adapter}`];
  const approved = summariseEffects(approvedRecord.parseText(holder.approvedText));
  const what = terminal.kind === 'committed' ? approved : '';
  return [reason, `${what} on ${adapter}`.trim(), `approved by ${holder.license.issuer}`];
}

const SIGNS = { insert: '+', update: '~', delete: '-' } as const;
const SUMMARISED = 3;

/** Summarises how often each table is written: `~1 invoice, +2 line`. */
function summariseEffects({ effects }: Approved): string {
  const groups = Map.groupBy(effects, ({ op, target }) => SIGNS[op] + renderTarget(target));
  const parts = [...groups].map(([name, group]) => {
    const count = group.reduce((sum, effect) => sum + effect.count, 0);
    return `${name.charAt(0)}${count} ${name.slice(1)}`;
  });
  const shown = parts.slice(0, SUMMARISED).join(', ') || 'nothing';
  const more = parts.length - SUMMARISED;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

interface Described {
  readonly at: string;
  readonly state: string;
  readonly tone?: Tone;
  readonly reason: string;
}

function describe(entry: JournalEntry): Described {
  switch (entry.kind) {
    case 'claim':
      return { at: entry.record.claimedAt, state: 'claimed', reason: '' };
    case 'permit':
      return { at: entry.record.consumedAt, state: 'permit used', reason: '' };
    case 'void':
      return { at: entry.record.voidedAt, state: 'permit void', reason: '' };
    case 'terminal': {
      const { kind, recordedAt } = entry.record;
      return { at: recordedAt, state: kind, tone: toneOf(kind), reason: reasonOf(entry.record) };
    }
    case 'acknowledgement': {
      const { at, state, continuation, decision } = entry.record;
      const by = decision === undefined ? '' : `, says ${decision.operator}`;
      return { at, state, reason: `${continuation}${by}` };
    }
    case 'resolution': {
      const { at, finding, operator } = entry.record;
      return { at, state: 'resolved', tone: 'caution', reason: `${finding}, says ${operator}` };
    }
    case 'shadow': {
      const { recordedAt, would } = entry.record;
      const why = would === 'reject' ? `: ${entry.record.reason}` : '';
      return { at: recordedAt, state: 'shadow', reason: `no verdict; ${WOULD[would]}${why}` };
    }
  }
}

const WOULD = {
  commit: 'would commit',
  propose: 'nothing approved to compare with',
  reject: 'would be rejected',
  unknown: 'could not be rehearsed',
};

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
