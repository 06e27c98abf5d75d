// The plans of a deployment on DBOS: those of the study, and one whose commit releases work.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { allPlans, type CaseInput, tagOf } from '../../bench/studies/topologies/plans.ts';
import { defineWorkflow, type OperationNode, type Workflow } from '../../src/workflow/index.ts';

/** Where released work leaves a line. */
export function toldFile(folder: string): string {
  return join(folder, 'told.txt');
}

function entry(operation: string, name: string, after: readonly string[]) {
  const input: OperationNode<CaseInput>['input'] = ({ input: { run } }) => {
    return { tag: tagOf(run, name), gate: run, amount: 1 };
  };
  return { operation, after, input };
}

/** Every plan, by name. */
export function sitePlans(folder: string): Readonly<Record<string, Workflow>> {
  const releases = defineWorkflow<CaseInput>('releases', {
    a: entry('note', 'a', []),
    tell: {
      of: 'a',
      run: ({ input: { run } }) => appendFileSync(toldFile(folder), `${run}\n`),
    },
    ship: {
      of: 'a',
      handOver: ({ query, key }, { input: { run } }) =>
        query('insert into queue.job values ($1, $2)', [key, run]),
    },
    b: entry('post', 'b', ['tell']),
    c: entry('file', 'c', ['ship']),
  });
  return { ...allPlans(), releases: releases as Workflow };
}
