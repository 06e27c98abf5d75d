// Recomputes the figures of the attempts to get past the boundary, from the verdicts and from what
// was found to be durable.
import { type Figures, FigureTally, listIn, partsOf, type ReadRecord } from './record.ts';

interface KeptAttempt {
  readonly name: string;
  /** The ending that the catalogue demands, with words of the explanation if it names any. */
  readonly expected: string;
  readonly found: string;
  readonly detail: string;
  /** What became durable or was sent without approval. */
  readonly violation: string | null;
  /** Absent if the runtime refused before there could be one. */
  readonly verdict?: { readonly kind: string; readonly at?: string; readonly reason?: string };
}

const TIERS: { readonly [tier: string]: string } = {
  server: 'server boundary',
  gate: 'statement gate of the managed boundary',
  managed: 'the same catalogue behind the managed boundary',
};
/** Before the class of an attempt; the classes of the server boundary have nothing before them. */
const PREFIXES: { readonly [tier: string]: string } = {
  gate: 'statement gate, ',
  managed: 'managed boundary, ',
};
const ENDINGS = ['observed', 'denied', 'refused', 'committed'];
/** Smaller classes are combined into one figure. */
const LEAST = 6;

const EXPECTED = /^(.*?)(?: because "(.*)")?$/s;
/** Demanded where several endings are right. */
const ANY = ['refused, denied or observed', 'nothing unapproved'];

/** How an attempt ended: by its verdict, or else by the error that kept it from having one. */
function endingOf({ found, verdict }: KeptAttempt): string {
  if (verdict === undefined)
    return ENDINGS.slice(1, 3).find((one) => found.startsWith(`${one} ERR_EM_`)) ?? found;
  const { kind, at = '', reason } = verdict;
  if (kind !== 'rejected') return kind;
  if (at === 'comparison' && reason !== 'fault') return 'observed';
  const isDenied = at === 'action' || (reason !== 'fault' && /^(stage|promotion)$/.test(at));
  return isDenied ? 'denied' : 'refused';
}

/** Whether an attempt left nothing unapproved, and ended in the demanded way. */
function isAsDemanded(attempt: KeptAttempt): boolean {
  const { expected, found, detail, violation } = attempt;
  if (violation !== null) return false;
  const [, wanted = '', because = ''] = EXPECTED.exec(expected) ?? [];
  const ending = endingOf(attempt);
  if (ANY.includes(wanted)) return ending !== 'committed' || wanted === ANY[1];
  if (wanted === 'committed') return ending === wanted;
  if (ending === 'refused' && because === '') return false;
  return wanted.startsWith(ending) && wanted === found && detail.includes(because);
}

/** `escapes`. */
export function recomputeEscapes(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  const attempts = records.flatMap((record) =>
    listIn<KeptAttempt>(record, 'ended').map((one) => ({ ...one, tier: partsOf(record)[0] ?? '' })),
  );
  const classOf = ({ name }: KeptAttempt) => name.split(':')[0] ?? '';
  const placeOf = (one: KeptAttempt & { readonly tier: string }) => `${one.tier}|${classOf(one)}`;
  const sizes = Map.groupBy(attempts, placeOf);
  for (const attempt of attempts) {
    const { tier, violation } = attempt;
    const words = TIERS[tier] ?? tier;
    tally.count(`${words}, cases`, true);
    tally.count(`${words}, ended as they must`, isAsDemanded(attempt));
    tally.count(
      `${words}, unapproved changes that became durable or were sent`,
      violation !== null,
    );
    const isLarge = (sizes.get(placeOf(attempt))?.length ?? 0) >= LEAST;
    const place = `${PREFIXES[tier] ?? ''}${isLarge ? classOf(attempt) : 'others'}`;
    tally.count(`${place}: ${endingOf(attempt)}`, true);
  }
  return tally.figures;
}
