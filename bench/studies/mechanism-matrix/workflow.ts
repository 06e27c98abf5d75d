import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { newKey, type Performer } from './conditions.ts';
import { DEPENDENT_FILE, type Decision, type Place, type Workflow } from './task.ts';

/** The work that depends on the steps. */
export function runDependent(place: Place): void {
  appendFileSync(join(place.folder, DEPENDENT_FILE), 'ran\n');
}

/**
 * Performs the steps in order and then the dependent work. What was begun and what was done
 * outlives the process.
 */
export async function runWorkflow(
  performer: Performer,
  place: Place,
  workflow: Workflow,
): Promise<Decision> {
  using progress = new DatabaseSync(join(place.folder, 'progress.db'));
  progress.exec('create table if not exists step (n integer primary key, state text not null)');
  const states = progress.prepare('select state from step where n = ?');
  const save = progress.prepare(
    'insert into step values (?1, ?2) on conflict do update set state = ?2',
  );
  for (const [index, step] of workflow.steps.entries()) {
    const state = states.get(index)?.state;
    if (state === 'done') continue;
    if (state === 'begun' && !performer.repeats) return 'reconcile';
    save.run(index, 'begun');
    const decision =
      step.kind === 'row'
        ? await performer.changeRow(place, step)
        : await performer.pay(place, step, newKey());
    if (decision !== 'done') return decision;
    save.run(index, 'done');
  }
  if (workflow.hasDependent) runDependent(place);
  return 'done';
}
