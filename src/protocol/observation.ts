import { type Drawn, findSetBack, findUnused } from './drawn.ts';
import type { ChangeRecords, Effect, Op, TargetCount } from './effect.ts';
import { canonObserved, singleWrites } from './profile.ts';
import type { Registration } from './registration.ts';
import type { Residue } from './residue.ts';
import type { Value } from './value.ts';

/** Identifies a held candidate and the evidence about it. The permit binds both. */
export interface CandidateFacts {
  readonly candidate: string;
  /** Fingerprint of the raw evidence; at most 256 characters. */
  readonly evidence: string;
}

/** What an execution did, as reported at the backend boundary. */
export interface Evidence extends CandidateFacts {
  readonly records: ChangeRecords;
  readonly channels: readonly ChannelReport[];
  /**
   * How many records could not be attributed to this execution. Any such record makes the
   * observation incomplete.
   */
  readonly unattributed: number;
  /** Evidence about identifiers that the backend assigned, for `generated`. */
  readonly assigned: readonly Assigned[];
  /** What the execution drew from registered sequences. Absent if the backend has none. */
  readonly drawn?: readonly Drawn[];
  /**
   * Remote backends: the service states that it refused this request for good and will never carry
   * it out. With complete evidence of no effect, this proves that nothing became durable.
   */
  readonly refused?: string;
  /**
   * What rollback does not undo, whoever caused it. It is only reported; nothing is concluded from
   * it.
   */
  readonly residue?: readonly Residue[];
  /** When the operation ran, on the backend's clock, for `now`. Milliseconds since the epoch. */
  readonly window: { readonly fromMs: number; readonly toMs: number };
}

/**
 * One evidence channel's answer. If a required channel is absent or `silent`, the outcome is
 * INDETERMINATE. `why` is stored unchanged, so it must not quote values.
 */
export type ChannelReport =
  | { readonly channel: string; readonly kind: 'silent'; readonly why: string }
  /** The source of the records. It must have produced exactly the records handed over. */
  | { readonly channel: string; readonly kind: 'records'; readonly count: number }
  /**
   * Targets that may have been written. They must include the target of every record, and all of
   * them must be registered.
   */
  | {
      readonly channel: string;
      readonly kind: 'touched';
      readonly targets: readonly string[];
      /** How an operation can reach a target that it does not name, for people. */
      readonly routes?: ReadonlyMap<string, string>;
    }
  /** Gross writes per target and operation, counted by a second witness. Must equal the records. */
  | { readonly channel: string; readonly kind: 'counts'; readonly counts: readonly TargetCount[] }
  /**
   * Gross writes from a second witness that also counts writes of rolled-back subtransactions, and
   * how many writes the recorders recorded by the same count. If the totals are equal, every write
   * was recorded, and the remaining records are those of the remaining writes. A statement that
   * failed before its recorders ran, and was rolled back, is counted but not recorded. `intact`
   * means that the recorders were shown to be in place and unchanged from before the first write
   * until after the last. Then only such writes can be missing.
   */
  | {
      readonly channel: string;
      readonly kind: 'gross';
      readonly counts: readonly TargetCount[];
      readonly recorded: number;
      readonly intact?: boolean;
    }
  /** Something that must not have changed while the operation ran. */
  | {
      readonly channel: string;
      readonly kind: 'stable';
      readonly before: string;
      readonly after: string;
      /** What the difference means and what to do about it, in sentences without values. */
      readonly meaning?: string;
    };

/**
 * Values of one column that the backend may have assigned during this execution: above < value <=
 * upTo, or the new values.
 */
export type Assigned = {
  readonly target: string;
  readonly column: string;
  /** References to the column that the schema declares. Absent if it declares none. */
  readonly referredBy?: readonly ReferringColumns[];
} & ({ readonly above: string; readonly upTo: string } | { readonly fresh: readonly Value[] });

/** A target with foreign keys, and its columns that refer to one assigned column. */
export interface ReferringColumns {
  readonly target: string;
  /** Empty if its foreign keys refer to other columns. */
  readonly columns: readonly string[];
}

/** E, or why it could not be established. */
export type Observation =
  | {
      readonly kind: 'complete';
      readonly effects: readonly Effect[];
      /**
       * The effects of E one at a time, if no row was written twice; see `singleWrites`. Absent if
       * E depends on more than the records.
       */
      readonly writes?: () => Iterable<Effect | undefined>;
    }
  | { readonly kind: 'incomplete'; readonly gaps: readonly string[] };

const GAPS_MAX = 64;
const GAP_CHARACTERS_MAX = 1000;

/**
 * Decides whether the evidence is complete and, if so, what E is (Definition 2). Adapters only
 * report. Every required channel must answer once, and everything that any channel says must agree
 * with the records. What cannot be established is a gap, never an empty outcome.
 */
export function establish(
  evidence: Evidence,
  registration: Registration,
  requiredChannels: readonly string[],
): Observation {
  const tally = tallyRecords(evidence.records);
  const registered = new Set(registration.targets.map((target) => target.name));
  const { channels, drawn } = evidence;
  // Gaps are stored, and a channel's report may hold values or their digests.
  const quotesValues = registration.values === 'plain';
  // Not spread into arguments: there may be more gaps than the stack holds.
  const gaps = findAbsentChannels(channels, requiredChannels).concat(
    findSilentChannels(channels),
    channels.flatMap((report) =>
      findDisagreements(report, { evidence, tally, registered, quotesValues }),
    ),
    findUnregistered(tally, registered),
    findUnattributed(evidence.unattributed),
    drawn === undefined ? [] : findSetBack(drawn),
  );
  if (gaps.length > 0) return { kind: 'incomplete', gaps: boundGaps(gaps) };
  let listed: readonly Effect[] | undefined;
  return {
    kind: 'complete',
    // Built only when asked for: it may be very large.
    get effects() {
      listed ??= listEffects(evidence, registration);
      return listed;
    },
    ...((drawn ?? []).every(({ times }) => times === 0) && {
      writes: () => singleWrites(registration, evidence.records),
    }),
  };
}

function listEffects(
  { records, drawn, assigned }: Evidence,
  registration: Registration,
): readonly Effect[] {
  const effects = canonObserved(registration, records);
  return drawn === undefined ? effects : effects.concat(findUnused(drawn, assigned, effects));
}

type Tally = ReadonlyMap<string, Record<Op, number>>;

function tallyRecords(records: ChangeRecords): Tally {
  if (records.counts !== undefined) return tallyCounts(records.counts);
  const tally = new Map<string, Record<Op, number>>();
  for (const { target, op } of records) {
    let counts = tally.get(target);
    if (counts === undefined) {
      counts = { insert: 0, update: 0, delete: 0 };
      tally.set(target, counts);
    }
    counts[op] += 1;
  }
  return tally;
}

function findAbsentChannels(
  reports: readonly ChannelReport[],
  required: readonly string[],
): string[] {
  const answers = new Map<string, number>();
  for (const { channel } of reports) answers.set(channel, 1 + (answers.get(channel) ?? 0));
  const gaps: string[] = [];
  for (const channel of required) {
    if (!answers.has(channel)) gaps.push(`${nameOf(channel)} is required and did not report.`);
  }
  for (const [channel, count] of answers) {
    if (count > 1) gaps.push(`${nameOf(channel)} reported ${count} times instead of once.`);
  }
  return gaps;
}

/** One sentence per reason, because channels that depend on the same answer are silent together. */
function findSilentChannels(reports: readonly ChannelReport[]): string[] {
  const silent = reports.filter((report) => report.kind === 'silent');
  return [...Map.groupBy(silent, ({ why }) => why)].map(([why, group]) => {
    const channels = group.map(({ channel }) => quote(channel)).join(', ');
    return `Channel${group.length > 1 ? 's' : ''} ${channels} gave no answer: ${why.toWellFormed()}`;
  });
}

interface Reported {
  readonly evidence: Evidence;
  readonly tally: Tally;
  readonly registered: ReadonlySet<string>;
  readonly quotesValues: boolean;
}

function findDisagreements(
  report: ChannelReport,
  { evidence, tally, registered, quotesValues }: Reported,
): string[] {
  const { channel } = report;
  switch (report.kind) {
    case 'silent':
      return []; // reported by findSilentChannels
    case 'records':
      if (report.count === evidence.records.length) return [];
      return [
        `${nameOf(channel)} produced ${report.count} records, but ${evidence.records.length} were handed over.`,
      ];
    case 'touched': {
      const touched = new Set(report.targets);
      const unseen = [...tally.keys()].filter((target) => !touched.has(target));
      const unknown = [...touched].filter((target) => !registered.has(target));
      return [
        ...unseen.map(
          (target) =>
            `${nameOf(channel)} did not see ${quote(target)} touched, but there are records of it.`,
        ),
        ...unknown.map(
          (target) =>
            `${nameOf(channel)} saw ${quote(target)} touched, which is not registered${describeRoute(report.routes?.get(target))}.`,
        ),
      ];
    }
    case 'counts':
      return findOddCount(channel, report.counts) ?? findMiscounts(channel, report.counts, tally);
    case 'gross':
      return findOddCount(channel, report.counts) ?? findUnrecorded(channel, report, tally);
    case 'stable':
      if (report.before === report.after) return [];
      return [
        `${nameOf(channel)} changed while the operation ran${quotesValues ? `: ${quote(report.before)} became ${quote(report.after)}` : ''}.${report.meaning === undefined ? '' : ` ${report.meaning.toWellFormed()}`}`,
      ];
    default:
      // The types rule this out, but an adapter of another version may still send it.
      return [
        `${nameOf(channel)} gave a kind of report that is not known here, so it cannot be checked.`,
      ];
  }
}

/** Counts are added up, so a negative or fractional count could offset one that is too high. */
function findOddCount(channel: string, counts: readonly TargetCount[]): string[] | undefined {
  const odd = counts.find(({ count }) => !Number.isSafeInteger(count) || count < 0);
  return odd && [`${nameOf(channel)} reported an invalid write count for ${quote(odd.target)}.`];
}

function findMiscounts(channel: string, counts: readonly TargetCount[], tally: Tally): string[] {
  const witnessed = tallyCounts(counts);
  const gaps: string[] = [];
  for (const target of new Set([...tally.keys(), ...witnessed.keys()])) {
    for (const op of ['insert', 'update', 'delete'] as const) {
      const seen = witnessed.get(target)?.[op] ?? 0;
      const recorded = tally.get(target)?.[op] ?? 0;
      if (seen === recorded) continue;
      gaps.push(
        `${nameOf(channel)} counted ${seen} of ${op} on ${quote(target)}, but there are ${recorded} records.`,
      );
    }
  }
  return gaps;
}

function tallyCounts(counts: readonly TargetCount[]): Tally {
  const witnessed = new Map<string, Record<Op, number>>();
  for (const { target, op, count } of counts) {
    const entry = witnessed.get(target) ?? { insert: 0, update: 0, delete: 0 };
    entry[op] += count;
    witnessed.set(target, entry);
  }
  return witnessed;
}

function findUnrecorded(
  channel: string,
  { counts, recorded, intact = false }: Extract<ChannelReport, { readonly kind: 'gross' }>,
  tally: Tally,
): string[] {
  const witnessed = tallyCounts(counts);
  const gaps: string[] = [];
  for (const [target, records] of tally) {
    for (const op of ['insert', 'update', 'delete'] as const) {
      const seen = witnessed.get(target)?.[op] ?? 0;
      if (seen >= records[op]) continue;
      gaps.push(
        `${nameOf(channel)} counted ${seen} of ${op} on ${quote(target)}, but there are ${records[op]} records.`,
      );
    }
  }
  const written = counts.reduce((sum, { count }) => sum + count, 0);
  const rolledBack = intact && written > recorded;
  if (written !== recorded && !rolledBack)
    gaps.push(`${nameOf(channel)} counted ${written} writes, of which ${recorded} were recorded.`);
  return gaps;
}

function findUnregistered(tally: Tally, registered: ReadonlySet<string>): string[] {
  return [...tally]
    .filter(([target]) => !registered.has(target))
    .map(([target, counts]) => {
      const records = counts.insert + counts.update + counts.delete;
      return `There are records (${records}) of ${quote(target)}, which is not registered.`;
    });
}

function findUnattributed(unattributed: number): string[] {
  if (unattributed === 0) return [];
  return [`Records that could not be attributed to this execution: ${unattributed}.`];
}

/** Called only to build a message, which is rarely needed. */
function nameOf(channel: string): string {
  return `Channel ${quote(channel)}`;
}

/**
 * Quotes a name, so that it cannot pass for part of the sentence. JSON escapes also keep the text
 * well-formed.
 */
function quote(name: string): string {
  return JSON.stringify(name);
}

function boundGaps(gaps: readonly string[]): readonly string[] {
  const kept = gaps.length <= GAPS_MAX ? gaps : gaps.slice(0, GAPS_MAX - 1);
  const rest = gaps.length - kept.length;
  return [...kept.map(shorten), ...(rest > 0 ? [`There are ${rest} further gaps.`] : [])];
}

function shorten(gap: string): string {
  if (gap.length <= GAP_CHARACTERS_MAX) return gap;
  return `${gap.slice(0, GAP_CHARACTERS_MAX - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function describeRoute(by: string | undefined): string {
  return by === undefined ? '' : `; it can be written through ${by}`;
}
