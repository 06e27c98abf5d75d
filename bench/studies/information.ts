// What can be known before anything runs: each pair has one packet and two executions, a clean one
// and one that leaves more than its calls say. Whoever decides from the packet decides the same for
// both.
import { hash } from 'node:crypto';
import { join } from 'node:path';
import { canonical } from '../../src/protocol/canon.ts';
import { findData } from '../data/folder.ts';
import { loadStateTasks, STATE_FILES, type StateTask } from '../data/state-bench.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, reproduced, type Study, type StudyOptions } from '../study.ts';
import { changeEmail, withFault } from './public-outcomes/independent.ts';
import { type ReplayedCall, replayVariant } from './public-outcomes/replay.ts';
import { CONDITIONS } from './public-outcomes/state-conditions.ts';
import {
  cleanReference,
  countRuns,
  runStatePlan,
  type StateVariant,
} from './public-outcomes/state-runs.ts';

const PAIRS = 38;

const VARIANTS: readonly StateVariant[] = [
  { name: 'clean', calls: (task) => replayVariant(task, 'clean') },
  withFault('hidden', ({ packet }) => changeEmail(packet)),
];

/** The first 38 tasks that change something; the paper does not list its own. */
export function choosePairs(all: readonly StateTask[]): readonly StateTask[] {
  return all
    .filter(({ cohort206, variants }) => cohort206 && variants.clean?.equalsInitial === false)
    .slice(0, PAIRS);
}

/**
 * Everything that is there before execution: the request, the state, the catalogue and the calls to
 * be made.
 */
export function packetText({ packet }: StateTask, calls: readonly ReplayedCall[]): string {
  return canonical({ packet, calls: calls.map(({ tool, args }) => ({ tool, args })) });
}

/**
 * Deciders that see a packet: two that need not look, and some that go by its digest, as if by
 * judgement.
 */
const DECIDERS: readonly ((packet: string) => boolean)[] = [
  () => true,
  () => false,
  ...[0x20, 0x40, 0x80, 0xc0].map(
    (bound) => (packet: string) => hash('sha256', packet, 'buffer').readUInt8(0) < bound,
  ),
];

async function run({ quick, data, progress }: StudyOptions): Promise<readonly Cell[]> {
  const folder = findData(data, STATE_FILES);
  const raw = new RawRecords(
    `information${quick ? '-quick' : ''}`,
    STATE_FILES.map((file) => join(folder, file)),
  );
  const all = loadStateTasks(folder);
  const tasks = choosePairs(all);
  const packets = tasks.map((task) => VARIANTS.map(({ calls }) => packetText(task, calls(task))));
  const alike = packets.filter(([clean, hidden]) => clean === hidden).length;
  const sums = DECIDERS.map((admits) => {
    const admitted = packets.filter(([clean = '']) => admits(clean)).length;
    const prevented = packets.filter(([, hidden = '']) => !admits(hidden)).length;
    return admitted + prevented;
  });
  const chosen = quick ? tasks.slice(0, 6) : tasks;
  const { effectMatch } = CONDITIONS;
  const runs = await runStatePlan(
    {
      part: 'information',
      tasks: chosen,
      variants: VARIANTS,
      conditions: [effectMatch],
      repetitions: 1,
      approve: cleanReference,
    },
    all,
    raw,
    progress,
  );
  raw.finish();
  const count = (name: string, value: number) =>
    quick ? exactly(name, value, 'pairs', chosen.length) : reproduced(name, value, 'pairs', PAIRS);
  return [
    exactly('pairs with identical packets', alike, 'pairs', PAIRS),
    // The paper's model approver saw such packets and reached 8 + 30. No model is run here.
    exactly(
      'most that a decider by packets reaches: clean admitted + hidden prevented',
      Math.max(...sums),
      'pairs',
      PAIRS,
    ),
    count('EffectMatch: clean committed, right state', countRuns(runs, 'clean', effectMatch).saved),
    count(
      'EffectMatch: hidden prevented, initial state kept',
      countRuns(runs, 'hidden', effectMatch).kept,
    ),
  ];
}

export const informationStudy: Study = {
  name: 'information',
  about:
    'pairs that look the same before execution: what any decider beforehand can reach, and what comparison does',
  run,
};
