// Many processes present one license at the same moment: there must be one effect, and one verdict
// that says so. Then many licenses for the same row are presented: only one can be used. Files and
// rows are compared by code that shares nothing with the runtime.
import type { Backend, OperationKind } from '../../test/crash/backends/backend.ts';
import { SOAKED } from '../../test/crash/backends/index.ts';
import type { Operation } from '../../test/crash/commands.ts';
import { createTemplate } from '../../test/crash/installation.ts';
import { type Child, Pool } from '../../test/crash/pool.ts';
import { Scene } from '../../test/crash/scene.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, figure, type Study, type StudyOptions } from '../study.ts';
import { runWriters } from './concurrency/writers.ts';
import { keepInstallation } from './crashes/kept.ts';

const OPENED_AT_ONCE = 4;
const BACKENDS = ['sqlite-wal', 'postgres'];

/** How many processes race, how often and where, and how many write to the same row. */
interface Races {
  readonly contenders: number;
  readonly rounds: number;
  /** Licenses per installation. An interrupted study continues with the next installation. */
  readonly batch: number;
  readonly backends: readonly string[];
  readonly writing: { readonly writers: number; readonly rounds: number };
}

const FULL: Races = {
  ...{ contenders: 16, rounds: 100, batch: 50, backends: BACKENDS },
  writing: { writers: 32, rounds: 20 },
};
const LONG: Races = {
  ...{ contenders: 64, rounds: 1000, batch: 200, backends: BACKENDS },
  writing: { writers: 32, rounds: 200 },
};
const QUICK: Races = {
  ...{ contenders: 4, rounds: 3, batch: 50, backends: ['sqlite-wal'] },
  writing: { writers: 6, rounds: 1 },
};

/** The result of one license that all processes presented. */
export interface Race {
  readonly backend: string;
  readonly committed: number;
  /** Refused because the license is spent. */
  readonly spent: number;
  /** Any other ending. */
  readonly others: readonly string[];
  readonly released: number;
}

interface Batch {
  readonly races: readonly Race[];
  readonly violations: readonly string[];
}

async function runConcurrency(
  name: string,
  complete: Races,
  { quick, progress }: StudyOptions,
): Promise<readonly Cell[]> {
  const { contenders, rounds, batch, backends, writing } = quick ? QUICK : complete;
  const raw = new RawRecords(`${name}${quick ? '-quick' : ''}`, []);
  const pool = new Pool(contenders + 2);
  const batches: Batch[] = [];
  try {
    for (const backend of SOAKED.filter(({ name }) => backends.includes(name)))
      for (let at = 0; at < rounds; at += batch) {
        progress(`${backend.name}: ${at} of ${rounds}`);
        const size = Math.min(batch, rounds - at);
        batches.push(
          await raw.run(`${backend.name}|${contenders}|${at}`, () =>
            runBatch(pool, backend, contenders, size),
          ),
        );
      }
  } finally {
    await pool.close();
  }
  const written = await runWriters(raw, writing, progress);
  raw.finish();
  return [...raceCells(batches, contenders), ...written];
}

async function runBatch(
  pool: Pool,
  backend: Backend,
  contenders: number,
  size: number,
): Promise<Batch> {
  const kinds = Array.from({ length: size }, (): OperationKind => 'append');
  await using template = await createTemplate(backend, kinds);
  await using installation = await template.copy();
  await using scene = new Scene(pool, installation);
  const children: Child[] = [];
  // Open a few at a time: opening tests the backend and locks a SQLite file. It is not the race.
  while (children.length < contenders) {
    const some = Math.min(OPENED_AT_ONCE, contenders - children.length);
    children.push(...(await Promise.all(Array.from({ length: some }, () => scene.fresh()))));
  }
  const { operations, releases } = installation;
  const races: Race[] = [];
  for (const operation of operations)
    races.push(await race(backend.name, children, operation, releases));
  const released = operations.map(({ n }) => n);
  await scene.compare({ stage: 'settled', released });
  if ((await children[0]?.ask('verify', {}))?.kind !== 'intact')
    scene.complain('the journal does not verify');
  await keepInstallation(installation);
  return { races, violations: scene.result().violations };
}

/** All processes get the license before any of them starts. Then all ask for the release. */
async function race(
  backend: string,
  children: readonly Child[],
  operation: Operation,
  releases: string,
): Promise<Race> {
  await Promise.all(children.map((child) => child.ask('load', { operation })));
  const terminals = await Promise.all(children.map((child) => child.ask('fire', {})));
  const asked = await Promise.all(
    children.map((child) => child.ask('release', { operation, releases })),
  );
  const ends = terminals.map((terminal) =>
    terminal.kind === 'rejected' ? terminal.reason : terminal.kind,
  );
  return {
    backend,
    committed: ends.filter((end) => end === 'committed').length,
    spent: ends.filter((end) => end === 'spent').length,
    others: ends.filter((end) => end !== 'committed' && end !== 'spent'),
    released: asked.filter(({ kind }) => kind === 'released').length,
  };
}

/** Counts for each backend the races that ended in one effect, one verdict and one release. */
export function raceCells(batches: readonly Batch[], contenders: number): readonly Cell[] {
  const races = batches.flatMap((batch) => batch.races);
  const isRight = ({ committed, spent, released }: Race) =>
    committed === 1 && spent === contenders - 1 && released === 1;
  const backends = [...new Set(races.map(({ backend }) => backend))];
  return [
    figure('processes that present one license', contenders, 'processes'),
    ...backends.map((name) => {
      const those = races.filter(({ backend }) => backend === name);
      const words = `${name}: races with one commit, one release and every other one refused`;
      return exactly(words, those.filter(isRight).length, 'races', those.length);
    }),
    exactly(
      'durable state or journal not as the verdicts say',
      batches.reduce((sum, { violations }) => sum + violations.length, 0),
      'findings',
      0,
    ),
  ];
}

function concurrencyWith(name: string, races: Races, about: string): Study {
  return { name, about, run: (options) => runConcurrency(name, races, options) };
}

export const concurrencyStudy: Study = concurrencyWith(
  'concurrency',
  FULL,
  'many processes present one license at the same moment: one effect, one verdict, one release',
);

export const longConcurrencyStudy: Study = concurrencyWith(
  'concurrency-long',
  LONG,
  'the same with 64 processes that race 1,000 times; not part of all',
);
