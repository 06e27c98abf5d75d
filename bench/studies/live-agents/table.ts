// The rows of the report.
import { type Cell, exactly, figure } from '../../study.ts';
import type { EpisodeRecord } from './episode.ts';
import type { Path } from './host.ts';
import type { Behaviour } from './scripts.ts';

/** A row of the report. */
export interface Row {
  readonly name: string;
  readonly behaviour: Behaviour;
  readonly isScripted: boolean;
  readonly hostFinishes: boolean;
  /** What integrated episodes have to leave. */
  readonly leaves: 'initial' | 'approved';
}

const UNIT = 'episodes';
const PATHS: readonly Path[] = ['direct', 'integrated'];

function count(
  records: readonly EpisodeRecord[],
  path: Path,
  holds: (record: EpisodeRecord) => boolean,
): number {
  return records.filter((record) => record.path === path && holds(record)).length;
}

/** What a scripted agent must reach, and what a model does reach. */
export function wellBehavedCells(row: Row, records: readonly EpisodeRecord[]): readonly Cell[] {
  return PATHS.flatMap((path) => {
    const all = count(records, path, () => true);
    const cell = (words: string, holds: (record: EpisodeRecord) => boolean) => {
      const name = `${row.name}, ${path}: ${words}`;
      const value = count(records, path, holds);
      return row.isScripted ? exactly(name, value, UNIT, all) : figure(name, value, UNIT);
    };
    return [
      cell('candidate correct', ({ candidateCorrect }) => candidateCorrect),
      cell('durable correct', ({ durableCorrect }) => durableCorrect),
      cell('finalised by the agent', ({ finalised }) => finalised === 'by the agent'),
      figure(
        `${row.name}, ${path}: durable equal in every id and order`,
        count(records, path, ({ durableStrict }) => durableStrict),
        UNIT,
      ),
    ];
  });
}

/** Under direct, what became durable. Under integrated, that only what was approved did. */
export function misbehavingCells(row: Row, records: readonly EpisodeRecord[]): readonly Cell[] {
  const all = count(records, 'integrated', () => true);
  const right = row.leaves === 'approved' ? all : 0;
  const name = `${row.name}, integrated`;
  const held = (words: string, holds: (record: EpisodeRecord) => boolean, expected: number) =>
    exactly(`${name}: ${words}`, count(records, 'integrated', holds), UNIT, expected);
  const found = (words: string, holds: (record: EpisodeRecord) => boolean) =>
    figure(`${row.name}, direct: ${words}`, count(records, 'direct', holds), UNIT);
  return [
    held('durable is the initial state', (one) => one.durableInitial, all - right),
    held('rejected', ({ verdict }) => verdict.kind === 'rejected', all - right),
    held('durable is what was approved', (one) => one.durableCorrect, right),
    held('the verdict is what the durable state shows', (one) => one.isTruthful, all),
    found('durable is the initial state', (one) => one.durableInitial),
    found('durable is what was approved', (one) => one.durableCorrect),
    found('durable is something else', (one) => !one.durableInitial && !one.durableCorrect),
  ];
}

/** All scripts whose work is not what was approved, or that do not end it. */
export function rejectionCell(records: readonly EpisodeRecord[]): Cell {
  const isKept = ({ durableInitial, verdict }: EpisodeRecord) =>
    durableInitial && verdict.kind === 'rejected';
  return exactly(
    'every misbehaving script, integrated: the initial state and a rejection that says so',
    count(records, 'integrated', isKept),
    UNIT,
    count(records, 'integrated', () => true),
  );
}

/** Candidate correct, durable correct and finalised of 18 episodes each, as the paper has them. */
const PAPER = [
  ['DeepSeek API', 'direct', 18, 18, 15],
  ['DeepSeek API', 'integrated', 18, 15, 15],
  ['DeepSeek+DSH', 'direct', 18, 18, 18],
  ['DeepSeek+DSH', 'integrated', 18, 18, 18],
  ['Codex', 'direct', 18, 18, 18],
  ['Codex', 'integrated', 18, 18, 18],
] as const;

/** The paper's 108 episodes. Models were not run here; the figures are the published ones. */
export function paperCells(): readonly Cell[] {
  return PAPER.flatMap(([agent, path, ...figures]) =>
    ['candidate correct', 'durable correct', 'finalised'].map((words, at) => {
      const published = figures[at] ?? Number.NaN;
      const name = `published, not run here: ${agent}, ${path}: ${words}`;
      return { ...figure(name, published, UNIT), paper: published };
    }),
  );
}
