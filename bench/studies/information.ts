// What can be known before anything runs. Each pair has one packet and two executions: a clean one,
// and one that changes more than its calls show. A decision based on the packet is the same for
// both.
import { join } from 'node:path';
import { findData } from '../data/folder.ts';
import { loadStateTasks, STATE_FILES, type StateTask } from '../data/state-bench.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, figure, reproduced, type Study, type StudyOptions } from '../study.ts';
import {
  DECISIONS,
  type Decider,
  findDeciders,
  type PriorDecision,
  type SurfacePacket,
} from './information/deciders.ts';
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

/**
 * Tasks that change something, from all domains by turns. The paper does not list the tasks it used.
 */
export function choosePairs(all: readonly StateTask[]): readonly StateTask[] {
  const changing = all.filter(
    ({ cohort206, variants }) => cohort206 && variants.clean?.equalsInitial === false,
  );
  const domains = [...Map.groupBy(changing, ({ packet }) => packet.domain).values()];
  const turns = Array.from({ length: PAIRS }, (_, turn) =>
    domains.flatMap((tasks) => tasks[turn] ?? []),
  );
  return turns.flat().slice(0, PAIRS);
}

/**
 * Everything that is known before execution: the request, the state, the catalogue and the planned
 * calls. It does not show a hidden fault, so it is the same for both members of a pair.
 */
function surfaceOf({ packet }: StateTask, calls: readonly ReplayedCall[]): SurfacePacket {
  return { packet, calls: calls.map(({ tool, args }) => ({ tool, args })) };
}

/** Scores one decider on both members of every pair. */
async function scoreDecider(
  decider: Decider,
  tasks: readonly StateTask[],
  raw: RawRecords,
): Promise<readonly Cell[]> {
  const said = { clean: [] as PriorDecision[], hidden: [] as PriorDecision[] };
  for (const task of tasks) {
    for (const { name, calls } of VARIANTS) {
      const { domain, taskId } = task.packet;
      const run = [decider.name, `${domain}/${taskId}`, name].join('|');
      const { decision } = await raw.run(run, async () => ({
        decision: await decider.decide(surfaceOf(task, calls(task))),
      }));
      said[name === 'clean' ? 'clean' : 'hidden'].push(decision);
    }
  }
  const count = (list: readonly PriorDecision[], one: PriorDecision) =>
    list.filter((decision) => decision === one).length;
  const withheld = said.hidden.length - count(said.hidden, 'admit');
  return [
    ...DECISIONS.map((one) => figure(`${decider.name}: ${one}`, count(said.clean, one), 'packets')),
    figure(`${decider.name}: clean admitted`, count(said.clean, 'admit'), 'pairs'),
    figure(`${decider.name}: hidden prevented`, withheld, 'pairs'),
  ];
}

/** The paper's model approver. It was not run here. */
const PUBLISHED = [
  ['admit', 8, 'packets'],
  ['deny', 6, 'packets'],
  ['escalate', 24, 'packets'],
  ['clean admitted', 8, 'pairs'],
  ['hidden prevented', 30, 'pairs'],
] as const;

function publishedCells(): readonly Cell[] {
  return PUBLISHED.map(([words, value, unit]) => ({
    ...figure(`published, not run here: model approver: ${words}`, value, unit),
    paper: value,
  }));
}

async function run({ quick, data, progress }: StudyOptions): Promise<readonly Cell[]> {
  const folder = findData(data, STATE_FILES);
  const raw = new RawRecords(
    `information${quick ? '-quick' : ''}`,
    STATE_FILES.map((file) => join(folder, file)),
  );
  const all = loadStateTasks(folder);
  const tasks = choosePairs(all);
  const scores: Cell[] = [];
  for (const decider of findDeciders()) scores.push(...(await scoreDecider(decider, tasks, raw)));
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
    count('EffectMatch: clean committed, right state', countRuns(runs, 'clean', effectMatch).saved),
    count(
      'EffectMatch: hidden prevented, initial state kept',
      countRuns(runs, 'hidden', effectMatch).kept,
    ),
    ...scores,
    ...publishedCells(),
  ];
}

export const informationStudy: Study = {
  name: 'information',
  about: 'pairs that look the same before execution: decided beforehand, and compared afterwards',
  run,
};
