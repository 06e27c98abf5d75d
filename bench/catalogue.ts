import type { Study } from './study.ts';
import type { Medium } from './temporary.ts';

type Loaders = { readonly [name: string]: () => Promise<Study> };

/** Every study in the order of `all`. A study is only loaded to be run or to be described. */
const LOADERS: Loaders = {
  compare: async () => (await import('./studies/compare.ts')).compareStudy,
  'core-cost': async () => (await import('./studies/core-cost.ts')).coreCostStudy,
  'sqlite-cost': async () => (await import('./studies/sqlite-cost.ts')).sqliteCostStudy,
  'pg-cost': async () => (await import('./studies/pg-cost.ts')).pgCostStudy,
  'mariadb-cost': async () => (await import('./studies/mariadb-cost.ts')).mariadbCostStudy,
  boundary: async () => (await import('./studies/boundary.ts')).boundaryStudy,
  integrated: async () => (await import('./studies/integrated.ts')).integratedStudy,
  'public-outcomes': async () => (await import('./studies/public-outcomes.ts')).publicOutcomesStudy,
  ablations: async () => (await import('./studies/ablations.ts')).ablationsStudy,
  'more-ablations': async () => (await import('./studies/more-ablations.ts')).moreAblationsStudy,
  'mechanism-matrix': async () =>
    (await import('./studies/mechanism-matrix.ts')).mechanismMatrixStudy,
  information: async () => (await import('./studies/information.ts')).informationStudy,
  recovery: async () => (await import('./studies/recovery.ts')).recoveryStudy,
  backends: async () => (await import('./studies/backends.ts')).backendsStudy,
  'backends-mariadb': async () =>
    (await import('./studies/backends-mariadb.ts')).backendsMariadbStudy,
  cost: async () => (await import('./studies/cost.ts')).costStudy,
  agents: async () => (await import('./studies/agents.ts')).agentsStudy,
  'live-agents': async () => (await import('./studies/live-agents.ts')).liveAgentsStudy,
  server: async () => (await import('./studies/server.ts')).serverStudy,
  'held-tasks': async () => (await import('./studies/held-tasks.ts')).heldTasksStudy,
  topologies: async () => (await import('./studies/topologies.ts')).topologiesStudy,
  trace: async () => (await import('./studies/trace.ts')).traceStudy,
  escapes: async () => (await import('./studies/escapes.ts')).escapesStudy,
  concurrency: async () => (await import('./studies/concurrency.ts')).concurrencyStudy,
  crashes: async () => (await import('./studies/crashes.ts')).crashesStudy,
  peers: async () => (await import('./studies/peers.ts')).peersStudy,
  workflows: async () => (await import('./studies/workflows.ts')).workflowsStudy,
};

/** The same with so many repetitions that they are run by themselves, not by `all`. */
const LONG_LOADERS: Loaders = {
  'concurrency-long': async () => (await import('./studies/concurrency.ts')).longConcurrencyStudy,
  'crashes-long': async () => (await import('./studies/crashes.ts')).longCrashesStudy,
};

/**
 * The studies that measure time. They need the machine for themselves and a real disk. All others
 * count how runs end: `all` runs them beside each other, and their files are in memory where the
 * system has a file system for that.
 */
const TIMED: ReadonlySet<string> = new Set([
  ...['compare', 'core-cost', 'sqlite-cost', 'pg-cost', 'mariadb-cost', 'cost'],
  ...['agents', 'server', 'held-tasks', 'workflows'],
]);

export function measuresTime(name: string): boolean {
  return TIMED.has(name);
}

/** Where the files of a study had better be. */
export function mediumFor(name: string): Medium {
  return measuresTime(name) ? 'disk' : 'memory';
}

/** The studies of `all`. */
export const STUDY_NAMES: readonly string[] = Object.keys(LOADERS);
/** The studies that only run if they are named. */
export const LONG_STUDY_NAMES: readonly string[] = Object.keys(LONG_LOADERS);

/** One of `STUDY_NAMES` or `LONG_STUDY_NAMES`. */
export async function loadStudy(name: string): Promise<Study> {
  const load = LOADERS[name] ?? LONG_LOADERS[name];
  if (load === undefined) throw new Error(`there is no study "${name}"`);
  return await load();
}

/** All of them. */
export async function loadStudies(): Promise<readonly Study[]> {
  return await Promise.all([...STUDY_NAMES, ...LONG_STUDY_NAMES].map(loadStudy));
}
