import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { newKey, type Performer } from './conditions.ts';
import { DEPENDENT_FILE, type Place, PROGRESS_FILE, type Step, type Workflow } from './task.ts';

/** The work that depends on the steps. */
export function runDependent(place: Place): void {
  appendFileSync(join(place.folder, DEPENDENT_FILE), 'ran\n');
}

const TABLE = `create table if not exists step
  (n integer primary key, state text not null, key text not null, evidence text)`;

/**
 * Performs the steps in order and then the dependent work. What was begun, what was done and what
 * was seen outlives the process.
 */
export async function runWorkflow(
  performer: Performer,
  place: Place,
  workflow: Workflow,
): Promise<void> {
  using progress = new DatabaseSync(join(place.folder, PROGRESS_FILE));
  progress.exec(TABLE);
  const find = progress.prepare('select state, key from step where n = ?');
  const save = progress.prepare(
    `insert into step values (?1, ?2, ?3, ?4)
     on conflict do update set state = ?2, key = ?3, evidence = ?4`,
  );
  for (const [index, step] of workflow.steps.entries()) {
    const known = find.get(index);
    if (known?.state === 'done') continue;
    const key = String(known?.key ?? newKey());
    if (known?.state === 'begun' && performer.verify !== undefined) {
      const verified = workflow.settles ? await verifyStep(performer, place, step, key) : 'unknown';
      if (verified === 'unknown') return;
      if (verified === 'made') {
        save.run(index, 'done', key, null);
        continue;
      }
    }
    save.run(index, 'begun', key, null);
    const { goesOn, evidence } = await performStep(performer, place, step, key);
    if (goesOn) save.run(index, 'done', key, null);
    else if (evidence !== undefined) save.run(index, 'ended', key, JSON.stringify(evidence));
    if (!goesOn) return;
  }
  if (workflow.hasDependent) runDependent(place);
}

async function performStep(performer: Performer, place: Place, step: Step, key: string) {
  return step.kind === 'row'
    ? await performer.changeRow(place, step)
    : await performer.pay(place, step, key);
}

/** No scenario interrupts the change of a row. */
async function verifyStep(performer: Performer, place: Place, step: Step, key: string) {
  if (step.kind === 'row') return 'unknown';
  return (await performer.verify?.(place, step, key)) ?? 'unknown';
}
