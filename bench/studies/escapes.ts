// Runs the catalogue of attempts to bypass the PostgreSQL boundary and counts how they ended, by
// class. Each ending is compared with the one that the catalogue demands. A superuser who took no
// part reads the durable state.
import {
  type EscapeCase,
  type EscapeFile,
  type EscapeResult,
  expectedEnding,
} from '../../test/escapes/case.ts';
import { ESCAPES as GATE } from '../../test/escapes/cases/gate.ts';
import { ESCAPES } from '../../test/escapes/cases/postgres.ts';
import { runEscapes } from '../../test/escapes/runner.ts';
import { digestOf, summariseVerdict } from '../facts.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, figure, type Study, type StudyOptions } from '../study.ts';

/** Cases per server. An interrupted study continues with the next part. */
const PART = 60;
const QUICK_STEP = 80;
/** Smaller classes are counted together as `others`. */
const LEAST = 6;
const MAJOR = 17;
const ENDINGS = ['observed', 'denied', 'refused', 'committed'];

type Run = Pick<EscapeResult, 'name' | 'expected' | 'found' | 'ok'> & {
  readonly violation: string | null;
};

/** The figures of a tier, and their prefix: the classes of the server boundary have none. */
const SERVER = { title: 'server boundary', prefix: '' };
const GATED = { title: 'statement gate of the managed boundary', prefix: 'statement gate, ' };
const MANAGED = {
  title: 'the same catalogue behind the managed boundary',
  prefix: 'managed boundary, ',
};

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const raw = new RawRecords(`escapes${quick ? '-quick' : ''}`, []);
  const catalogue = choose(ESCAPES.cases, quick);
  const server = await runTier('server', { ...ESCAPES, cases: catalogue }, raw, progress);
  const cells = [...classCells(catalogue, server), ...tierCells(SERVER.title, server)];
  if (!quick) {
    const behind: EscapeFile = { ...ESCAPES, boundary: 'managed' };
    const managed = await runTier('managed', behind, raw, progress);
    const gate = await runTier('gate', GATE, raw, progress);
    cells.push(
      ...classCells(GATE.cases, gate, GATED.prefix),
      ...tierCells(GATED.title, gate),
      ...foundCells(managed, MANAGED.prefix),
      ...tierCells(MANAGED.title, managed),
    );
  }
  raw.finish();
  return cells;
}

function choose(cases: readonly EscapeCase[], quick: boolean): readonly EscapeCase[] {
  return quick ? cases.filter((_, index) => index % QUICK_STEP === 0) : cases;
}

/** Runs a file part by part. */
async function runTier(
  tier: 'server' | 'gate' | 'managed',
  file: EscapeFile,
  raw: RawRecords,
  progress: (line: string) => void,
): Promise<readonly Run[]> {
  const runs: Run[] = [];
  for (let at = 0; at < file.cases.length; at += PART) {
    progress(`${tier}: ${at} of ${file.cases.length}`);
    const cases = file.cases.slice(at, at + PART);
    const { ended } = await raw.run(`${tier}|${at}`, async () => {
      const { results } = await runEscapes({ ...file, cases }, { anyEnding: tier === 'managed' });
      const actions = new Map(cases.map(({ name, action }) => [name, digestOf(action)]));
      return {
        ended: results.map(({ terminal, violation = null, ...result }) => ({
          ...result,
          violation,
          action: actions.get(result.name),
          ...(terminal && { verdict: summariseVerdict(terminal) }),
        })),
      };
    });
    runs.push(...ended);
  }
  return runs;
}

interface Ended {
  readonly name: string;
  readonly end: string;
}

/** Counts attempts by class and ending. The class is the part of a name before the colon. */
function countEndings(ended: readonly Ended[]): ReadonlyMap<string, number> {
  const first = ({ name }: Ended) => name.split(':')[0] ?? '';
  const sizes = Map.groupBy(ended, first);
  const counts = new Map<string, number>();
  for (const one of ended) {
    const isLarge = (sizes.get(first(one))?.length ?? 0) >= LEAST;
    const ending = ENDINGS.find((each) => one.end.startsWith(each)) ?? one.end;
    const place = `${isLarge ? first(one) : 'others'}: ${ending}`;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return counts;
}

const foundIn = (runs: readonly Run[]) =>
  countEndings(runs.map(({ name, found: end }) => ({ name, end })));

/** Counts for each class the attempts by ending, with the counts that the catalogue demands. */
export function classCells(
  cases: readonly EscapeCase[],
  runs: readonly Run[],
  prefix = '',
): readonly Cell[] {
  const ends = cases.map((one) => ({ name: one.name, end: expectedEnding(one, MAJOR) }));
  const wanted = countEndings(ends);
  const found = foundIn(runs);
  const places = [...new Set([...wanted.keys(), ...found.keys()])];
  return places.map((place) =>
    exactly(`${prefix}${place}`, found.get(place) ?? 0, 'cases', wanted.get(place) ?? 0),
  );
}

/** The same for a tier in which several endings of a case are right. They are only reported. */
function foundCells(runs: readonly Run[], prefix: string): readonly Cell[] {
  return [...foundIn(runs)].map(([place, count]) => figure(`${prefix}${place}`, count, 'cases'));
}

/** The figures that must hold in a tier for every class. */
export function tierCells(tier: string, runs: readonly Run[]): readonly Cell[] {
  const count = (holds: (run: Run) => boolean) => runs.filter(holds).length;
  return [
    figure(`${tier}, cases`, runs.length, 'cases'),
    exactly(
      `${tier}, ended as they must`,
      count(({ ok }) => ok),
      'cases',
      runs.length,
    ),
    exactly(
      `${tier}, unapproved changes that became durable or were sent`,
      count(({ violation }) => violation !== null),
      'cases',
      0,
    ),
  ];
}

export const escapesStudy: Study = {
  name: 'escapes',
  about: 'attempts to get past the PostgreSQL boundary, by class and by how they ended (paper: 21)',
  run,
};
