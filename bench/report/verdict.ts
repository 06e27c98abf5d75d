import type { RawRecord } from '../raw.ts';
import type { StudyResult, WrittenCell } from '../results.ts';
import type { PlotTone } from './charts.ts';

/** What a figure says. A figure with neither target nor expectation is only reported. */
export type Verdict =
  | 'matches the paper'
  | 'DIFFERS FROM THE PAPER'
  | 'meets its target'
  | 'MISSES ITS TARGET'
  | 'reported';

export const VERDICTS: readonly Verdict[] = [
  'matches the paper',
  'DIFFERS FROM THE PAPER',
  'meets its target',
  'MISSES ITS TARGET',
  'reported',
];

/** How each verdict is coloured, in the order of {@link VERDICTS}. */
export const TONES: readonly PlotTone[] = ['good', 'bad', 'fair', 'bad', 'plain'];

export function toneOf(cell: WrittenCell): PlotTone {
  return TONES[VERDICTS.indexOf(verdictOf(cell))] ?? 'plain';
}

/**
 * Judged from the figure and its target once more: a study that called its own failure a success is
 * not believed.
 */
export function verdictOf({ value, target, paper, ok }: WrittenCell): Verdict {
  const isGood = ok && value !== null && (target === undefined || holds(value, target));
  if (target === undefined && isGood) return 'reported';
  if (paper !== undefined && target === `= ${paper}`)
    return isGood ? 'matches the paper' : 'DIFFERS FROM THE PAPER';
  return isGood ? 'meets its target' : 'MISSES ITS TARGET';
}

/** Whether a verdict needs somebody's attention. */
export function isBad(verdict: Verdict): boolean {
  return verdict === 'DIFFERS FROM THE PAPER' || verdict === 'MISSES ITS TARGET';
}

/** A target that cannot be read is not met. */
function holds(value: number, target: string): boolean {
  const [, sign, text] = /^(=|<=|>=) (-?[\d.]+(?:e[+-]?\d+)?)$/.exec(target) ?? [];
  const bound = Number(text);
  switch (sign) {
    case '=':
      return value === bound;
    case '<=':
      return value <= bound;
    case '>=':
      return value >= bound;
    default:
      return false;
  }
}

/** A study of the report with how it last ended, if it ever ran. */
export interface Entry {
  readonly name: string;
  readonly about: string;
  readonly result: StudyResult | undefined;
  /** Whether the code has changed since. */
  readonly isStale: boolean;
  /** The runs behind its figures; absent where it keeps none or did not finish. */
  readonly raw?:
    | {
        readonly records: readonly RawRecord[];
        /** How many figures have kept samples. */
        readonly samples?: number;
      }
    | undefined;
}

/** The figures of a study; none where it was not run or failed. */
export function cellsOf({ result }: Entry): readonly WrittenCell[] {
  return result !== undefined && 'cells' in result ? result.cells : [];
}

/** What became of a study, in a few words. */
export function stateOf({ result, isStale }: Entry): string {
  if (result === undefined) return 'not run';
  if ('notRun' in result) return `not run: ${result.notRun}`;
  if ('failed' in result) return `FAILED: ${result.failed}`;
  const quick = result.context.quick ? 'quick: too few repetitions to quote' : 'complete';
  return isStale ? `${quick}; the code has changed since` : quick;
}

/** The same for a narrow column. */
export function shortStateOf({ result, isStale }: Entry): string {
  if (result === undefined || 'notRun' in result) return 'not run';
  if ('failed' in result) return 'FAILED';
  const quick = result.context.quick ? 'quick' : 'complete';
  return isStale ? `${quick}, older code` : quick;
}

export function countVerdicts(entry: Entry): ReadonlyMap<Verdict, number> {
  const counts = new Map(VERDICTS.map((verdict) => [verdict, 0]));
  for (const cell of cellsOf(entry)) {
    const verdict = verdictOf(cell);
    counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  }
  return counts;
}

/** Figures that need attention, with the study they are from. */
export function listBad(
  entries: readonly Entry[],
): readonly { readonly study: string; readonly cell: WrittenCell }[] {
  return entries.flatMap((entry) =>
    cellsOf(entry)
      .filter((cell) => isBad(verdictOf(cell)))
      .map((cell) => ({ study: entry.name, cell })),
  );
}

/** A figure as people read it: counts whole, measurements with three digits. */
export function showValue(value: number | null): string {
  if (value === null) return 'none';
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** What the figures were made with. */
export function describeRun({ context }: StudyResult): string {
  const { node, cpu, cores, at, seconds, seed, seeded } = context;
  const drawn = seeded === null ? 'nothing in it is drawn at random' : `it decides ${seeded}`;
  return `${at}, ${seconds} s; Node.js ${node}; ${cpu}, ${cores} cores; seed ${seed}: ${drawn}`;
}
