import { loadStateTasks, STATE_FILES } from '../../data/state-bench.ts';
import { deskMaker, LIVE_FILES, loadDomains, loadLiveTasks } from '../../data/state-native.ts';
import { schemaOf } from '../public-outcomes/state-effects.ts';
import { type LiveInput, readInput } from './input.ts';

/** The files that the episodes are made from. */
export const EPISODE_FILES = [...STATE_FILES, ...LIVE_FILES] as const;

/** The six live tasks, in the order of the data. */
export function loadInputs(folder: string): readonly LiveInput[] {
  const tasks = loadStateTasks(folder);
  const desk = deskMaker(folder, tasks);
  const domains = loadDomains(folder);
  return loadLiveTasks(folder).map((live) => {
    const task = tasks.find(
      ({ packet }) => packet.domain === live.domain && packet.taskId === live.taskId,
    );
    const domain = domains[live.domain];
    if (task === undefined || domain === undefined)
      throw new Error(`there is no task ${live.domain}/${live.taskId}`);
    const schema = schemaOf(tasks.filter(({ packet }) => packet.domain === live.domain));
    return readInput(task, live, { desk: desk(task), schema, tools: domain.tools });
  });
}
