import type { FigureSamples, RawRecord } from '../raw.ts';
import type { StudyResult, WrittenCell } from '../results.ts';
import type { PlotTone } from './charts.ts';
import { findFloor } from './floor.ts';

/** The verdict on a figure. A figure without a target is only reported. */
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

/** The colour of each verdict, in the order of {@link VERDICTS}. */
export const TONES: readonly PlotTone[] = ['good', 'bad', 'fair', 'bad', 'plain'];

export function toneOf(cell: WrittenCell): PlotTone {
  return TONES[VERDICTS.indexOf(verdictOf(cell))] ?? 'plain';
}

/**
 * Judges a figure against its target again, so that a study cannot report its own failure as a
 * success.
 */
export function verdictOf({ value, target, paper, ok }: WrittenCell): Verdict {
  const isGood = ok && value !== null && (target === undefined || holds(value, target));
  if (target === undefined && isGood) return 'reported';
  if (paper !== undefined && target === `= ${paper}`)
    return isGood ? 'matches the paper' : 'DIFFERS FROM THE PAPER';
  return isGood ? 'meets its target' : 'MISSES ITS TARGET';
}

/** Whether a verdict needs attention. */
export function isBad(verdict: Verdict): boolean {
  return verdict === 'DIFFERS FROM THE PAPER' || verdict === 'MISSES ITS TARGET';
}

/** Whether a value meets a target. A target that cannot be parsed is not met. */
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

/** A study in the report, with its last result if it ever ran. */
export interface Entry {
  readonly name: string;
  readonly about: string;
  readonly result: StudyResult | undefined;
  /** Whether the code has changed since that run. */
  readonly isStale: boolean;
  /** The runs behind its figures; absent if it keeps none or did not finish. */
  readonly raw?:
    | {
        readonly records: readonly RawRecord[];
        /** The samples of its measured figures. */
        readonly samples?: readonly FigureSamples[];
      }
    | undefined;
}

/** The figures of a study; none if it was not run or failed. */
export function cellsOf({ result }: Entry): readonly WrittenCell[] {
  return result !== undefined && 'cells' in result ? result.cells : [];
}

/** How a study ended, in a few words. */
export function stateOf({ result, isStale }: Entry): string {
  if (result === undefined) return 'not run';
  if ('notRun' in result) return `not run: ${result.notRun}`;
  if ('failed' in result) return `FAILED: ${result.failed}`;
  const quick = result.context.quick ? 'quick: too few repetitions to quote' : 'complete';
  return isStale ? `${quick}; the code has changed since` : quick;
}

/** A shorter {@link stateOf} for a narrow column. */
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

/** A figure that needs attention, with its study and its floor. */
interface BadFigure {
  readonly study: string;
  readonly cell: WrittenCell;
  readonly floor: WrittenCell | undefined;
}

/** Lists the figures that need attention. */
export function listBad(entries: readonly Entry[]): readonly BadFigure[] {
  return entries.flatMap((entry) =>
    cellsOf(entry)
      .filter((cell) => isBad(verdictOf(cell)))
      .map((cell) => ({ study: entry.name, cell, floor: findFloor(cellsOf(entry), cell.name) })),
  );
}

/** Formats a value: integers in full, measurements with three digits. */
export function showValue(value: number | null): string {
  if (value === null) return 'none';
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Describes when, where and with which seed a study ran. */
export function describeRun({ context }: StudyResult): string {
  const { node, cpu, cores, at, seconds, seed, seeded, files } = context;
  const drawn = seeded === null ? 'nothing is drawn at random' : `seed ${seed} decides ${seeded}`;
  const when = `${at.slice(0, 16).replace('T', ' ')} UTC`;
  const where = files === undefined ? '' : `; files ${files === 'disk' ? 'on disk' : 'in memory'}`;
  return `${when}, ${seconds} s; Node.js ${node}; ${cpu}, ${cores} cores${where}; ${drawn}`;
}

/** Where the figures of a study come from: the command, and files relative to the report. */
export interface FigureSources {
  readonly command: string;
  readonly files: readonly { readonly words: string; readonly path: string }[];
}

export function sourcesOf({ name, result, raw }: Entry): FigureSources {
  if (result === undefined) return { command: `npm run bench -- ${name}`, files: [] };
  const { quick, seed } = result.context;
  const file = `${name}${quick ? '-quick' : ''}`;
  const [records, samples] = [raw?.records.length ?? 0, raw?.samples?.length ?? 0];
  return {
    command: `npm run bench -- ${name}${quick ? ' --quick' : ''} --seed ${seed}`,
    files: [
      { words: 'figures', path: `../results/${file}.json` },
      ...(records === 0
        ? []
        : [{ words: countOf(records, 'raw record'), path: `../results/raw/${file}.jsonl` }]),
      ...(samples === 0
        ? []
        : [
            {
              words: `samples of ${countOf(samples, 'figure')}`,
              path: `../results/raw/${file}-samples.jsonl`,
            },
          ]),
    ],
  };
}

function countOf(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count.toLocaleString('en')} ${noun}s`;
}
