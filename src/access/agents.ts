import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { errorsOf } from '../errors.ts';
import { isName } from '../protocol/record.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import type { AgentConfig } from './configuration.ts';
import { Pace } from './pace.ts';

/** An agent as configured. Nothing that the agent sends can change it. */
export interface Agent {
  readonly name: string;
  readonly digests: readonly string[];
  readonly operations: readonly string[];
  readonly sql: readonly string[];
  readonly read: readonly string[];
  readonly tasks: readonly string[];
  readonly upstreams: readonly string[];
  readonly pace: Pace;
}

const OPTIONS: OptionNames<AgentConfig> = {
  token: true,
  operations: true,
  sql: true,
  read: true,
  tasks: true,
  upstreams: true,
  callsPerMinute: true,
};
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const CALLS_PER_MINUTE = 120;
const MAX_CALLS = 1_000_000;

type Deployed = Pick<RuntimeConfig, 'agents' | 'operations' | 'adapters' | 'upstreams'>;

/** Reads the agents of a configuration. Rejects misspelt options and unknown names. */
export function readAgents(config: Deployed): ReadonlyMap<string, Agent> {
  const { agents = {} } = config;
  const read = Object.entries(agents).map(([name, agent]) => readAgent(name, agent, config));
  const digests = read.flatMap((agent) => agent.digests);
  if (new Set(digests).size < digests.length) throw invalid('two agents have the same token');
  return new Map(read.map((agent) => [agent.name, agent]));
}

function readAgent(name: string, config: AgentConfig, deployed: Deployed): Agent {
  const refuse = (why: string) => invalid(`agent "${name}": ${why}`);
  if (!isName(name)) throw refuse('its name must be 1 to 128 letters, digits and . _ : / @ -');
  if (typeof config !== 'object' || config === null) throw refuse('it is not an object');
  const misnamed = misnamedOption(config, OPTIONS);
  if (misnamed !== undefined) throw refuse(misnamed);
  const { token = [], callsPerMinute = CALLS_PER_MINUTE } = config;
  const digests = typeof token === 'string' ? [token] : token;
  if (!Array.isArray(digests) || !digests.every((digest) => DIGEST.test(digest)))
    throw refuse('`token` must be a digest; `effectmatch token new --digest-only` makes one');
  const isPace = Number.isSafeInteger(callsPerMinute) && callsPerMinute >= 1;
  if (!isPace || callsPerMinute > MAX_CALLS)
    throw refuse(`\`callsPerMinute\` must be a whole number from 1 to ${MAX_CALLS}`);
  const { operations = {}, adapters } = deployed;
  const named = (option: 'operations' | 'sql' | 'read' | 'tasks' | 'upstreams', known: object) => {
    const names: unknown = config[option] ?? [];
    if (!Array.isArray(names)) throw refuse(`\`${option}\` must be a list of names`);
    const stray = names.find((each) => !Object.hasOwn(known, each));
    if (stray !== undefined) throw refuse(`\`${option}\` names "${stray}", which does not exist`);
    return names as readonly string[];
  };
  return {
    name,
    digests,
    operations: named('operations', operations),
    sql: named('sql', adapters),
    read: named('read', adapters),
    tasks: named('tasks', adapters),
    upstreams: named('upstreams', deployed.upstreams ?? {}),
    pace: new Pace(callsPerMinute),
  };
}

const invalid = errorsOf('ERR_EM_CONFIG_INVALID', 'the configuration: ');
