// The paper's third research question: do agents still complete their tasks when the result is
// compared before it is saved, and what becomes durable when they misbehave?
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findData } from '../data/folder.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, drawing, type Study, type StudyOptions } from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import type { AgentConfig } from './live-agents/agent.ts';
import { type EpisodePlan, type EpisodeRecord, runEpisode } from './live-agents/episode.ts';
import type { Path } from './live-agents/host.ts';
import type { LiveInput } from './live-agents/input.ts';
import { runKilled } from './live-agents/killed.ts';
import { EPISODE_FILES, loadInputs } from './live-agents/load.ts';
import { BEHAVIOURS, type Behaviour, extraSteps, injectionOf } from './live-agents/scripts.ts';
import {
  misbehavingCells,
  paperCells,
  type Row,
  rejectionCell,
  wellBehavedCells,
} from './live-agents/table.ts';

/** The seed of the paper's schedule. */
export const LIVE_SEED = 20260921;
const REPETITIONS = 3;
const AT_ONCE = 3;
const PATHS: readonly Path[] = ['direct', 'integrated'];

/** One row of the report: an agent, its behaviour, and what the host does for it. */
interface Configuration {
  readonly row: Row;
  readonly agent: AgentConfig;
  readonly hostFinishes: boolean;
  readonly repetitions: number;
}

async function run(options: StudyOptions): Promise<readonly Cell[]> {
  const { quick, data, seed = LIVE_SEED, progress } = options;
  const folder = findData(data, EPISODE_FILES);
  const files = EPISODE_FILES.map((file) => join(folder, file));
  const raw = new RawRecords(`live-agents${quick ? '-quick' : ''}`, files, seed);
  const inputs = loadInputs(folder);
  await using scripted = await startScripted(folder);
  const configurations = configure(scripted.url, quick);
  const schedule = shuffle(
    configurations.flatMap((configuration) => episodesOf(configuration, inputs, quick)),
    drawing(seed),
  );
  progress(`${schedule.length} episodes, at most ${AT_ONCE} at once`);
  const records = await runAtOnce(
    AT_ONCE,
    schedule,
    async ({ configuration, input, plan, name }) => ({
      row: configuration.row,
      record: await raw.run(name, () => runOne(input, plan, configuration.row.behaviour, folder)),
    }),
  );
  raw.finish();
  const rows = configurations.map(({ row }) => row);
  return [
    ...rows.filter(isGood).flatMap((row) => wellBehavedCells(row, recordsOf(records, row))),
    ...rows
      .filter((row) => !isGood(row))
      .flatMap((row) => misbehavingCells(row, recordsOf(records, row))),
    rejectionCell(records.flatMap(({ row, record }) => (row.leaves === 'initial' ? record : []))),
    ...paperCells(),
  ];
}

function isGood({ behaviour }: Row): boolean {
  return behaviour === 'well-behaved';
}

interface Finished {
  readonly row: Row;
  readonly record: EpisodeRecord;
}

function recordsOf(records: readonly Finished[], row: Row): readonly EpisodeRecord[] {
  return records.filter((one) => one.row === row).map(({ record }) => record);
}

/** The agents of this run. A real one is added if the environment names its endpoint. */
function configure(url: string, quick: boolean): readonly Configuration[] {
  const repetitions = quick ? 1 : REPETITIONS;
  const scripted = (behaviour: Behaviour, via: AgentConfig['via'], hostFinishes = true) => ({
    row: {
      name: nameRow(behaviour, via, hostFinishes),
      leaves: leftBy(behaviour, hostFinishes),
      ...{ behaviour, isScripted: true, hostFinishes },
    },
    agent: {
      name: `scripted: ${behaviour}`,
      isScripted: true,
      baseUrl: url,
      model: behaviour,
      via,
    },
    hostFinishes,
    repetitions,
  });
  return [
    scripted('well-behaved', 'loop'),
    scripted('well-behaved', 'mcp'),
    ...realAgents(repetitions),
    ...BEHAVIOURS.filter((name) => name !== 'well-behaved').map((name) => scripted(name, 'loop')),
    scripted('forgets to finish', 'loop', false),
  ];
}

function nameRow(behaviour: Behaviour, via: AgentConfig['via'], hostFinishes: boolean): string {
  if (behaviour === 'well-behaved')
    return via === 'mcp' ? 'scripted agent over MCP' : 'scripted agent, API loop';
  if (behaviour !== 'forgets to finish') return `scripted agent that ${behaviour}`;
  const host = hostFinishes ? 'the host finishes' : 'no host finishes';
  return `scripted agent that ${behaviour}, and ${host}`;
}

/**
 * The state that a behaviour must leave. It is the approved one if the agent did the approved work,
 * even if the tools ignored a repeated call, or if the host finished the task after the turn.
 */
function leftBy(behaviour: Behaviour, hostFinishes: boolean): Row['leaves'] {
  const isRight = ['well-behaved', 'repeats a call in vain'].includes(behaviour);
  const isEnded = behaviour === 'forgets to finish' && hostFinishes;
  return isRight || isEnded ? 'approved' : 'initial';
}

/** EFFECTMATCH_AGENT_URL, _MODEL and _KEY name an OpenAI-compatible endpoint. */
function realAgents(repetitions: number): readonly Configuration[] {
  const { EFFECTMATCH_AGENT_URL: baseUrl, EFFECTMATCH_AGENT_KEY: apiKey } = process.env;
  if (baseUrl === undefined) return [];
  const model = process.env.EFFECTMATCH_AGENT_MODEL;
  if (model === undefined)
    throw new Error(
      'EFFECTMATCH_AGENT_MODEL must name the model that EFFECTMATCH_AGENT_URL serves',
    );
  return (['loop', 'mcp'] as const).map((via) => {
    const name = via === 'mcp' ? `${model} over MCP` : `${model}, API loop`;
    const kind = { behaviour: 'well-behaved', isScripted: false, leaves: 'approved' } as const;
    const row = { name, ...kind, hostFinishes: true };
    const agent = { name: model, isScripted: false, baseUrl, apiKey, model, via };
    return { row, agent, hostFinishes: true, repetitions };
  });
}

interface Episode {
  readonly name: string;
  readonly configuration: Configuration;
  readonly input: LiveInput;
  readonly plan: EpisodePlan;
}

function episodesOf(
  configuration: Configuration,
  inputs: readonly LiveInput[],
  quick: boolean,
): readonly Episode[] {
  const { row, agent, hostFinishes, repetitions } = configuration;
  const able = row.behaviour === 'repeats a call in vain' ? inputs.filter(isIgnored) : inputs;
  const chosen = quick && !isGood(row) ? able.filter((_, index) => index % 2 === 0) : able;
  return chosen.flatMap((input) =>
    PATHS.flatMap((path) =>
      Array.from({ length: repetitions }, (_, index) => ({
        name: [row.name, path, input.name, index + 1].join('|'),
        ...{ configuration, input },
        plan: { path, agent, hostFinishes, injection: injectionFor(row.behaviour, input) },
      })),
    ),
  );
}

/** Whether the tools ignore an identical second call that changes something. */
function isIgnored({ task }: LiveInput): boolean {
  return task.variants.duplicateFirstMutation?.equalsClean === true;
}

function injectionFor(behaviour: Behaviour, { live }: LiveInput): EpisodePlan['injection'] {
  if (behaviour !== 'follows an injection') return undefined;
  return { text: injectionOf(extraSteps(live)) };
}

async function runOne(
  input: LiveInput,
  plan: EpisodePlan,
  behaviour: Behaviour,
  data: string,
): Promise<EpisodeRecord> {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  if (behaviour !== 'is killed') return await runEpisode(input, plan, folder);
  return await runEpisode(input, plan, folder, (approval) =>
    runKilled(input, plan, { data, folder, approval }),
  );
}

/** Shuffles the list. The order depends only on the draws. */
function shuffle<T>(list: readonly T[], draw: () => number): readonly T[] {
  const shuffled = [...list];
  for (let at = shuffled.length - 1; at > 0; at -= 1) {
    const other = Math.floor(draw() * (at + 1));
    [shuffled[at], shuffled[other]] = [shuffled[other] as T, shuffled[at] as T];
  }
  return shuffled;
}

/** Runs the work on every entry, at most `limit` at a time. Returns the results in order. */
async function runAtOnce<T, R>(
  limit: number,
  list: readonly T[],
  work: (entry: T) => Promise<R>,
): Promise<readonly R[]> {
  const results = new Map<number, R>();
  const left = list.entries();
  const worker = async () => {
    for (const [index, entry] of left) results.set(index, await work(entry));
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return list.map((_, index) => results.get(index) as R);
}

const SERVER = fileURLToPath(new URL('./live-agents/script-server.ts', import.meta.url));

/** Starts the scripted agents' process. It ends with its input, even if this process is killed. */
async function startScripted(data: string): Promise<AsyncDisposable & { readonly url: string }> {
  const child = spawn(process.execPath, ['--no-warnings', SERVER, data], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const url = await readLine(child);
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

async function readLine({ stdout }: ChildProcess): Promise<string> {
  let said = '';
  for await (const chunk of stdout ?? []) {
    said += chunk;
    if (said.includes('\n')) return said.trim();
  }
  throw new Error('the scripted agents did not start');
}

export const liveAgentsStudy: Study = {
  name: 'live-agents',
  about:
    'six public tasks served by agents, saved directly or compared first; and agents that misbehave',
  seeded: 'the order of the episodes',
  seed: LIVE_SEED,
  run,
};
