// Graphs of operations on four backends, disrupted in four ways: what became durable, and whether
// the handoff report says so.

import { createRuntime } from '../../src/runtime/runtime.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { inProcess, openWorkflows } from '../../src/workflow/index.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, figure, reproduced, type Study, type StudyOptions } from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import { type CaseEnd, DISRUPTIONS, runCase, type Site } from './topologies/cases.ts';
import { officeConfig, openOffice } from './topologies/office.ts';
import { allPlans, INSTANCES, TOPOLOGIES, type Topology } from './topologies/plans.ts';

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  using folder = temporaryFolder();
  await using office = await openOffice(folder.path);
  const config = officeConfig(office.facts);
  await using runtime = await createRuntime(config);
  await runtime.prove('bank');
  const common = { runtime, operations: config.operations };
  const engine = inProcess({ resume: false, pollMs: 50 });
  await using workflows = await openWorkflows({ ...common, plans: allPlans(), engine });
  const openChanged: Site['openChanged'] = (plan) =>
    openWorkflows({ ...common, plans: { [plan.name]: plan }, engine: IDLE });
  const raw = new RawRecords(`topologies${quick ? '-quick' : ''}`, []);
  const ends = await runCases({ office, runtime, workflows, openChanged }, raw, quick, progress);
  raw.finish();
  return topologyCells(ends, quick ? QUICK.length : INSTANCES);
}

/** The instances of a quick run. */
const QUICK = [1, 4];

/** Runs all cases one after another. */
export async function runCases(
  site: Site,
  raw: Pick<RawRecords, 'run'>,
  quick: boolean,
  progress: (line: string) => void,
): Promise<readonly CaseEnd[]> {
  const ends: CaseEnd[] = [];
  for (const topology of Object.keys(TOPOLOGIES) as Topology[]) {
    for (const disruption of DISRUPTIONS) {
      progress(`${topology}, ${disruption}`);
      const all = Array.from({ length: INSTANCES }, (_, at) => at);
      for (const instance of quick ? QUICK : all) {
        const name = `${topology}|${disruption}|${instance}`;
        ends.push(await raw.run(name, () => runCase(site, topology, disruption, instance)));
      }
    }
  }
  return ends;
}

/** The figures that the paper reports. */
export function topologyCells(ends: readonly CaseEnd[], instances: number): readonly Cell[] {
  const of = (disruption: string) => ends.filter((end) => end.disruption === disruption);
  const sum = (list: readonly CaseEnd[], value: (end: CaseEnd) => number) =>
    list.reduce((total, end) => total + value(end), 0);
  const all = 4 * instances;
  const count = (name: string, value: number, paper: number, unit = 'runs') =>
    instances === INSTANCES
      ? reproduced(name, value, unit, paper)
      : exactly(name, value, unit, (paper / INSTANCES) * instances);
  const isRefused = (end: CaseEnd) => Number(end.isRefused);
  return [
    count('preflight blocker: stopped', sum(of('blocker'), isRefused), 20),
    exactly(
      'preflight blocker: effects',
      sum(of('blocker'), (end) => end.durable),
      'effects',
      0,
    ),
    count('mid-run failure: failed node and successors stopped', sum(of('failure'), isRefused), 20),
    count(
      'mid-run failure: effects of completed predecessors',
      sum(of('failure'), (end) => end.predecessors),
      25,
      'effects',
    ),
    figure(
      'mid-run failure: effects of independent branches, and of a node that diverged',
      sum(of('failure'), (end) => end.durable - end.predecessors),
      'effects',
    ),
    count('changed plan: refused', sum(of('changed plan'), isRefused), 20),
    exactly(
      'changed plan: effects',
      sum(of('changed plan'), (end) => end.durable),
      'effects',
      0,
    ),
    count('stale or replayed approval: refused', sum(of('stale approval'), isRefused), 20),
    count(
      'handoff reports that equal durable state',
      sum(ends, (end) => Number(end.isTrue)),
      80,
    ),
    exactly('cases', ends.length, 'runs', 4 * all),
  ];
}

export const topologiesStudy: Study = {
  name: 'topologies',
  about:
    'four topologies of dependent operations under four disruptions, on four kinds of backends',
  run,
};
