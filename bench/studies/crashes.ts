// Processes killed at every step of an execution, on every backend: fresh ones recover, present the
// license again and release. Files and rows are compared by code that shares nothing with the
// runtime.
import { WORLD_KINDS } from '../../test/crash/backends/backend.ts';
import { SOAKED } from '../../test/crash/backends/index.ts';
import { createTemplate } from '../../test/crash/installation.ts';
import { Pool } from '../../test/crash/pool.ts';
import { runKillCase } from '../../test/crash/scenario.ts';
import { EXECUTION_STEPS } from '../../test/crash/steps.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, figure, isLong, type Study, type StudyOptions } from '../study.ts';

const REPETITIONS = 5;
/** Enough for 10,000 kills over all backends. */
const LONG_REPETITIONS = 130;
const QUICK_BACKENDS = 1;
const QUICK_STEPS = ['path:claimed', 'path:staged', 'path:promoted'];

/** How one killed execution ended. */
export interface Crash {
  readonly backend: string;
  readonly step: string;
  readonly kills: number;
  readonly violations: readonly string[];
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const raw = new RawRecords(`crashes${quick ? '-quick' : ''}`, []);
  const repetitions = quick ? 1 : isLong() ? LONG_REPETITIONS : REPETITIONS;
  const crashes: Crash[] = [];
  const pool = new Pool(quick ? 4 : 14);
  try {
    for (const backend of quick ? SOAKED.slice(0, QUICK_BACKENDS) : SOAKED) {
      await using template = await createTemplate(backend, WORLD_KINDS);
      const steps = EXECUTION_STEPS.filter((step) => !quick || QUICK_STEPS.includes(step));
      for (const step of steps) {
        progress(`${backend.name}: ${step}`);
        for (let repetition = 1; repetition <= repetitions; repetition += 1)
          crashes.push(
            await raw.run(`${backend.name}|${step}|${repetition}`, async () => {
              await using installation = await template.copy();
              const plan = { kind: 'append', execute: step, recover: [], release: [] } as const;
              const { kills, violations } = await runKillCase(pool, installation, plan);
              return { backend: backend.name, step, kills, violations };
            }),
          );
      }
    }
  } finally {
    await pool.close();
  }
  raw.finish();
  return crashCells(crashes);
}

/** For each step and backend the kills after which everything was right without a person. */
export function crashCells(crashes: readonly Crash[]): readonly Cell[] {
  const places = new Map<string, Crash[]>();
  for (const crash of crashes) {
    if (crash.kills === 0) continue; // the step is not on this backend's way
    const place = `${crash.step} | ${crash.backend}`;
    places.set(place, [...(places.get(place) ?? []), crash]);
  }
  const kills = crashes.reduce((sum, crash) => sum + crash.kills, 0);
  const wrong = crashes.filter(({ violations }) => violations.length > 0);
  return [
    ...[...places].map(([place, those]) => {
      const sound = those.filter(({ violations }) => violations.length === 0);
      return exactly(place, sound.length, 'kills', those.length);
    }),
    figure('processes killed', kills, 'kills'),
    exactly(
      'executions with a wrong or lost verdict, or left to a person',
      wrong.length,
      'runs',
      0,
    ),
  ];
}

export const crashesStudy: Study = {
  name: 'crashes',
  about: 'kills at every step on every backend, recovered without a person (paper: 90 of 540 left)',
  run,
};
