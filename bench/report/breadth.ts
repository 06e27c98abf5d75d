import type { RawRecord } from '../raw.ts';
import type { Entry } from './verdict.ts';

/** A block of experiments in the paper, and how many of our executions belong to it. */
export interface PopulationBlock {
  readonly block: string;
  /** The studies whose raw records have these executions. */
  readonly studies: readonly string[];
  readonly cases: string;
  readonly repetitions: string;
  /** Executions that the paper reports. */
  readonly paper: number;
  readonly ours: number;
}

interface Population extends Omit<PopulationBlock, 'ours'> {
  /** The number of executions behind a raw record. Most have one or none. */
  count(study: string, record: RawRecord): number;
}

const isPart = (record: RawRecord, part: string) => record.run.startsWith(`${part}|`);
const isRules = ({ condition }: RawRecord) => condition === 'call-level rules';
/** The compared variants: clean, and with one unapproved write, either visible or hidden. */
const COMPARED: readonly unknown[] = ['clean', 'explicit extra write', 'hidden extra write'];

/** The number of samples in a timing record, both sides together. */
function pairsOf({ direct, held }: RawRecord): number {
  const length = (samples: unknown) => (Array.isArray(samples) ? samples.length : 0);
  return length(direct) + length(held);
}

const POPULATIONS: readonly Population[] = [
  {
    block: 'PostgreSQL: independent approval',
    studies: ['public-outcomes', 'ablations'],
    cases: '3 public tasks',
    repetitions: '3',
    paper: 198,
    count: (study, record) =>
      Number(
        (study === 'public-outcomes' && isPart(record, 'a') && !isRules(record)) ||
          (study === 'ablations' && /, PG /.test(record.run)),
      ),
  },
  {
    block: 'Call-level rules: visible and hidden writes',
    studies: ['public-outcomes'],
    cases: 'the same 3 tasks',
    repetitions: '3',
    paper: 81,
    count: (study, record) =>
      Number(
        study === 'public-outcomes' && isPart(record, 'a') && COMPARED.includes(record.variant),
      ),
  },
  {
    block: 'STATE: independent approval',
    studies: ['public-outcomes', 'ablations'],
    cases: '12 public tasks',
    repetitions: '3',
    paper: 828,
    count: (study, record) =>
      Number(
        (study === 'public-outcomes' && isPart(record, 'b')) ||
          (study === 'ablations' && /, STATE /.test(record.run)),
      ),
  },
  {
    block: 'STATE: comparison with the clean reference',
    studies: ['public-outcomes'],
    cases: '206 public tasks',
    repetitions: '3',
    paper: 7416,
    count: (study, record) => Number(study === 'public-outcomes' && isPart(record, 'c')),
  },
  {
    block: 'Live agents',
    studies: ['live-agents'],
    cases: '6 public tasks',
    repetitions: '3',
    paper: 108,
    count: (study) => Number(study === 'live-agents'),
  },
  {
    block: 'Recovery across processes',
    studies: ['recovery'],
    cases: '18 public tasks',
    repetitions: '5',
    paper: 540,
    count: (study, record) =>
      Number(study === 'recovery' && 'hasTerminal' in record && !isPart(record, 'own tools')),
  },
  {
    block: 'Cost of an execution',
    studies: ['cost'],
    cases: 'the same 18 tasks',
    repetitions: '30 pairs',
    paper: 1080,
    count: (study, record) => (study === 'cost' && isPart(record, 'state') ? pairsOf(record) : 0),
  },
  {
    block: 'ToolSandbox',
    studies: ['backends'],
    cases: '4 public scenarios',
    repetitions: '3',
    paper: 72,
    count: (study, record) => Number(study === 'backends' && 'passesGoal' in record),
  },
  {
    block: 'MySQL; here MariaDB',
    studies: ['backends-mariadb'],
    cases: '8 constructed cases',
    repetitions: '5',
    paper: 240,
    count: (study) => Number(study === 'backends-mariadb'),
  },
  {
    block: 'GitHub; here an emulator',
    studies: ['backends'],
    cases: '8 operations',
    repetitions: '5',
    paper: 120,
    count: (study, record) => Number(study === 'backends' && !('passesGoal' in record)),
  },
];

/** The paper's table of populations, with the counts from our raw records. */
export function describeBreadth(entries: readonly Entry[]): readonly PopulationBlock[] {
  return POPULATIONS.map(({ count, ...population }) => {
    let ours = 0;
    for (const { name, raw } of entries)
      for (const record of raw?.records ?? []) ours += count(name, record);
    return { ...population, ours };
  });
}
