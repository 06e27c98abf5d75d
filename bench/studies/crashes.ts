// Kills processes at every step of an execution, a recovery and a release, on every backend. Fresh
// processes recover, present the license again and release. Files, rows and payments are compared
// by code that shares nothing with the runtime.
import { startPaymentService } from '../../examples/payment-service/server.ts';
import { PAYMENTS, REMOTE_BACKENDS } from '../../test/crash/backends/http.ts';
import { SOAKED } from '../../test/crash/backends/index.ts';
import { runLanes } from '../../test/crash/lanes.ts';
import { Pool } from '../../test/crash/pool.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, type Study, type StudyOptions } from '../study.ts';
import { openLocal } from './crashes/local.ts';
import { openRemote } from './crashes/remote.ts';

const LANES = 2;
/** Steps around the moment from which a change may be durable, locally and at a service. */
const QUICK_STEPS = ['path:staged', 'path:promoted', 'path:permit-consumed', 'path:dispatched'];

/** An execution that recovery could not settle, because there is no evidence of what happened. */
interface LeftOpen {
  readonly step: string;
  readonly why: string;
}

/** One installation in which a process was killed at every step of its backend's path. */
export interface CrashRound {
  readonly backend: string;
  /** The steps at which a process had to be killed. */
  readonly planned: readonly string[];
  /** The steps at which a process was actually killed. */
  readonly died: readonly string[];
  /** Wrong verdicts, rows, payments or releases. */
  readonly violations: readonly string[];
  /** What an operator has to resolve. */
  readonly left: readonly LeftOpen[];
}

/** A backend with everything that a round needs. */
export interface CrashSite extends AsyncDisposable {
  readonly name: string;
  round(pool: Pool): Promise<CrashRound>;
}

async function runCrashes(
  name: string,
  most: number,
  { quick, progress }: StudyOptions,
): Promise<readonly Cell[]> {
  const raw = new RawRecords(`${name}${quick ? '-quick' : ''}`, []);
  const rounds = quick ? 1 : most;
  const found: CrashRound[] = [];
  await using service = await startPaymentService();
  // Set before the first process starts, because each inherits it.
  process.env[PAYMENTS] = `${service.origin} ${service.token}`;
  const pool = new Pool(quick ? 4 : 12);
  const steps = quick ? QUICK_STEPS : undefined;
  const some = <T>(all: readonly T[]) => all.slice(0, quick ? 1 : all.length);
  const sites = [
    ...some(SOAKED).map((backend) => () => openLocal(backend, steps)),
    ...some(REMOTE_BACKENDS).map((backend) => () => openRemote(backend, service, steps)),
  ];
  try {
    for (const open of sites) {
      await using site = await open();
      const numbers = Array.from({ length: rounds }, (_, index) => index + 1);
      await runLanes(numbers, quick ? 1 : LANES, async (number) => {
        if (number % 10 === 1) progress(`${site.name}: round ${number} of ${rounds}`);
        found.push(await raw.run(`${site.name}|${number}`, () => site.round(pool)));
      });
    }
  } finally {
    await pool.close();
  }
  raw.finish();
  return crashCells(found);
}

/**
 * Counts for each step and backend the kills after which everything was right. A kill that was
 * planned and did not happen is missed. A violation counts against every kill of its installation,
 * because all of them are recovered together.
 */
export function crashCells(rounds: readonly CrashRound[]): readonly Cell[] {
  const places = new Map<string, { kills: number; sound: number }>();
  for (const { backend, planned, died, violations } of rounds)
    for (const step of planned) {
      const place = `${step} | ${backend}`;
      const { kills, sound } = places.get(place) ?? { kills: 0, sound: 0 };
      const isSound = died.includes(step) && violations.length === 0;
      places.set(place, { kills: kills + 1, sound: sound + Number(isSound) });
    }
  const sum = (of: (round: CrashRound) => number) =>
    rounds.reduce((total, round) => total + of(round), 0);
  const lost = sum(({ died }) => died.filter((step) => LOST.includes(step)).length);
  return [
    ...[...places].map(([place, { kills, sound }]) => exactly(place, sound, 'kills', kills)),
    exactly(
      'processes killed',
      sum(({ died }) => died.length),
      'kills',
      sum(({ planned }) => planned.length),
    ),
    exactly(
      'wrong or lost verdicts',
      sum(({ violations }) => violations.length),
      'findings',
      0,
    ),
    exactly('left to a person: requests that may be on their way', sum(countLost), 'runs', lost),
    exactly(
      'left to a person: anything else',
      sum(({ left }) => left.length) - sum(countLost),
      'runs',
      0,
    ),
  ];
}

/**
 * A process killed here had permission to send its request, but no answer. A request that was never
 * sent cannot be distinguished from one that has not arrived yet.
 */
const LOST = ['path:permit-consumed', 'adapter:connected'];

function countLost({ left }: CrashRound): number {
  return left.filter(({ step }) => LOST.includes(step)).length;
}

function crashesWith(name: string, rounds: number, about: string): Study {
  return { name, about, run: (options) => runCrashes(name, rounds, options) };
}

export const crashesStudy: Study = crashesWith(
  'crashes',
  5,
  'processes killed at every step on every backend, then recovered (paper: 90 of 540 left to a person)',
);

export const longCrashesStudy: Study = crashesWith(
  'crashes-long',
  60,
  'the same with more than 10,000 kills; not part of all',
);
