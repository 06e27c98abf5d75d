import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import { parseDuration } from '../crypto/duration.ts';
import { EffectMatchError } from '../errors.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { Arguments, Flags } from './arguments.ts';
import { usageError } from './guided-error.ts';
import { ENTRY_KINDS, timeOf } from './journal-entries.ts';

const DISPOSITIONS = [
  'committed',
  'rejected',
  'diverged',
  'indeterminate',
] as const satisfies Terminal['kind'][];

/** How rows are chosen by what they are about. */
export const FILTER_FLAGS = {
  kind: { value: 'KIND', about: `only rows of one kind: ${ENTRY_KINDS.join(', ')}` },
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
    about: 'only rows from then on: 2026-11-15, 2026-11-15T08:00:00Z, or 90m, 2h, 3d ago',
  },
  until: { value: 'TIME', about: 'only rows before then' },
} satisfies Flags;

/** What a row must be; what is undefined does not matter. */
export interface Filter {
  readonly kind: JournalEntry['kind'] | undefined;
  readonly task: string | undefined;
  readonly operation: string | undefined;
  readonly disposition: Terminal['kind'] | undefined;
  readonly adapter: string | undefined;
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

export function readFilter(args: Arguments, nowMs: number): Filter {
  return {
    kind: readWord(args, 'kind', ENTRY_KINDS),
    task: args.value('task'),
    operation: args.value('operation'),
    disposition: readWord(args, 'disposition', DISPOSITIONS),
    adapter: args.value('adapter'),
    sinceMs: readTime(args, 'since', nowMs),
    untilMs: readTime(args, 'until', nowMs),
  };
}

function readWord<W extends string>(
  args: Arguments,
  flag: string,
  words: readonly W[],
): W | undefined {
  const given = args.value(flag);
  const word = words.find((known) => known === given);
  if (given === undefined || word !== undefined) return word;
  throw usageError(`--${flag} takes one of ${words.join(', ')}, not "${given}"`, 'journal');
}

const DATE = /^\d{4}-\d\d-\d\d$/;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;
const AGO_MAX_MS = 100 * 365 * 86_400_000;

/**
 * A day in UTC, an instant that says its zone, or a duration back from now. A time without a zone
 * would mean two things.
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
    if (!(error instanceof EffectMatchError)) throw error;
    const forms = '2026-11-15, 2026-11-15T08:00:00Z or 2h';
    throw usageError(`--${flag} takes a time such as ${forms}, not "${text}"`, 'journal');
  }
}

/**
 * Whether a calendar has this day: the thirtieth of February would silently be read as one in
 * March.
 */
function isDay(text: string): boolean {
  return new Date(Date.parse(text)).toISOString().startsWith(text);
}

/**
 * Decides about rows; undefined where every row will do. What a row does not say itself is asked of
 * its occurrence's claim.
 */
export function createMatcher(
  ledgers: Pick<Ledgers, 'holder'>,
  filter: Filter,
): ((entry: JournalEntry) => Promise<boolean>) | undefined {
  if (Object.values(filter).every((wanted) => wanted === undefined)) return undefined;
  const claims = new Map<OccurrenceId, Promise<About>>();
  const claimOf = (occurrence: OccurrenceId) => {
    const known = claims.get(occurrence) ?? readClaim(ledgers, occurrence);
    claims.set(occurrence, known);
    return known;
  };
  const {
    kind,
    task,
    operation,
    disposition,
    adapter,
    sinceMs = -Infinity,
    untilMs = Infinity,
  } = filter;
  return async (entry) => {
    const { record } = entry;
    if (kind !== undefined && entry.kind !== kind) return false;
    if (
      disposition !== undefined &&
      (entry.kind !== 'terminal' || entry.record.kind !== disposition)
    )
      return false;
    const atMs = Date.parse(timeOf(entry));
    if (atMs < sinceMs || atMs >= untilMs) return false;
    if (task === undefined && adapter === undefined && operation === undefined) return true;
    const claimed = await claimOf(record.occurrence);
    const about =
      'task' in record ? { ...claimed, task: record.task, adapter: record.adapter } : claimed;
    return (
      (task === undefined || about.task === task) &&
      (adapter === undefined || about.adapter === adapter) &&
      (operation === undefined || about.operation === operation)
    );
  };
}

interface About {
  readonly task?: string;
  readonly adapter?: string;
  readonly operation?: string | undefined;
}

async function readClaim(
  ledgers: Pick<Ledgers, 'holder'>,
  occurrence: OccurrenceId,
): Promise<About> {
  const holder = await ledgers.holder(occurrence);
  if (holder === undefined) return {};
  const { task, adapter } = holder.claim.record;
  return { task, adapter, operation: holder.license.operation };
}
