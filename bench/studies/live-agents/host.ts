// Where the business tools of an episode run: on the durable state, saved after every call, or on
// one private candidate that is compared with the approval when the task ends.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { snapshot } from '../../../src/adapters/snapshot/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { approver } from '../../../src/crypto/approver.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
import { createRuntime, type Internals, type Runtime } from '../../../src/runtime/runtime.ts';
import type { Task } from '../../../src/runtime/task.ts';
import type { Snapshot } from '../../data/state-bench.ts';
import type { Answer, Arguments, BusinessState } from '../../state-tools/desk.ts';
import { BusinessTools } from '../../state-tools/tools.ts';
import { KEYS, openPlain, readPlain } from '../public-outcomes/state-conditions.ts';
import { collectionsOf, liveEffects } from './approval.ts';
import type { LiveInput } from './input.ts';
import type { LiveToolData } from './live-tools.ts';

export type Path = 'direct' | 'integrated';

/** At most so many business calls, and so long. */
export const MAX_CALLS = 40;
export const EPISODE_MS = 180_000;

/** How the task was decided. */
export interface Verdict {
  readonly kind: 'saved' | 'committed' | 'rejected' | 'open';
  /** Why, for people; nothing for a path that decides nothing. */
  readonly why?: string;
  readonly reason?: string;
}

/** The business side of an episode. */
export interface Host extends AsyncDisposable {
  call(tool: string, args: Arguments): Promise<Answer>;
  /** The state as the calls left it. */
  readonly candidate: Snapshot;
  finish(): Promise<Verdict>;
  /** Ends a task that was not finished: nothing becomes durable after it. */
  discard(why: string): Promise<Verdict>;
}

/** Every call works on the durable state, as an application without EffectMatch has it. */
export class DirectHost implements Host {
  candidate: Snapshot;
  readonly #store: ReturnType<typeof openPlain>;
  readonly #tools: BusinessTools;

  constructor({ task, desk }: LiveInput, folder: string) {
    this.candidate = task.packet.initial;
    this.#store = openPlain(folder, task.packet.initial);
    this.#tools = new BusinessTools({ desk });
  }

  async call(tool: string, args: Arguments): Promise<Answer> {
    const state = this.#store.load() as BusinessState;
    const answer = this.#tools.call(state, tool, args);
    this.#store.save(state);
    this.candidate = state;
    return answer;
  }

  async finish(): Promise<Verdict> {
    return { kind: 'saved' };
  }

  async discard(why: string): Promise<Verdict> {
    return { kind: 'saved', why: `${why}; every call was saved when it was made` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#store[Symbol.dispose]();
  }
}

const FILE = 'state.db';

/** The deployment of an episode: the same in every process. */
function configFor({ task, desk, schema }: LiveInput, folder: string, publicKey: string) {
  const { initial } = task.packet;
  const names = new BusinessTools({ desk }).names;
  const factory = snapshot({
    file: join(folder, FILE),
    initial,
    collections: collectionsOf(schema),
    tools: new URL('./live-tools.ts', import.meta.url),
    toolData: { kit: { desk }, tools: names } satisfies LiveToolData,
  });
  return {
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { study: { key: publicKey, may: ['business'] } },
    adapters: { business: factory as AdapterFactory },
  };
}

/** An approval as it is kept before the agent starts. */
export interface Approval {
  readonly license: SignedLicense;
  readonly publicKey: string;
}

/** Calculates and signs what the request approves. No agent has made a call yet. */
export async function approve(input: LiveInput, folder: string): Promise<Approval> {
  const { publicKey } = KEYS;
  await using office = await createRuntime(configFor(input, folder, publicKey));
  const proposal = await office.prepare({
    adapter: 'business',
    task: input.name,
    planRevision: 1,
    effects: liveEffects(input.task.packet.initial, input.target),
  });
  return { license: approver(KEYS).sign(proposal, { expiresIn: '10m' }), publicKey };
}

/** One private candidate for the whole task. */
export class IntegratedHost implements Host {
  candidate: Snapshot;
  readonly #runtime: Runtime;
  readonly #task: Task;

  private constructor(runtime: Runtime, task: Task, initial: Snapshot) {
    this.#runtime = runtime;
    this.#task = task;
    this.candidate = initial;
  }

  /** `internals` are for ablations. */
  static async open(
    input: LiveInput,
    folder: string,
    approval: Approval,
    internals: Internals = {},
  ): Promise<IntegratedHost> {
    const config = configFor(input, folder, approval.publicKey);
    const runtime = await createRuntime(config, internals);
    const limits = { deadlineMs: EPISODE_MS, maxCalls: MAX_CALLS };
    const task = await runtime.open(approval.license, limits);
    if (task.kind === 'open') return new IntegratedHost(runtime, task, input.task.packet.initial);
    await runtime.close();
    throw new Error(`the task was refused: ${verdictOf(task).why}`);
  }

  async call(tool: string, args: Arguments): Promise<Answer> {
    const answer = await this.#task.call({ calls: [{ tool, args }] });
    if (answer.kind === 'failed') return { error: `${answer.reason}: ${answer.detail}` };
    const [made] = (answer.returned ?? []) as readonly { answer: Answer; state: Snapshot }[];
    if (made === undefined) throw new Error(`${tool} returned nothing`);
    this.candidate = made.state;
    return made.answer;
  }

  async finish(): Promise<Verdict> {
    return verdictOf(await this.#task.finish());
  }

  async discard(why: string): Promise<Verdict> {
    return verdictOf(await this.#task.discard(why));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#runtime.close();
  }
}

function verdictOf(terminal: Terminal): Verdict {
  const why = renderTerminal(terminal);
  if (terminal.kind === 'committed') return { kind: 'committed', why };
  if (terminal.kind === 'rejected') return { kind: 'rejected', why, reason: terminal.reason };
  throw new Error(`a task on a snapshot ended ${terminal.kind}`);
}

/** What a fresh process finds and decides after the one that ran the task is gone. */
export async function recover(
  input: LiveInput,
  folder: string,
  { license, publicKey }: Approval,
): Promise<Verdict> {
  await using runtime = await createRuntime({
    ...configFor(input, folder, publicKey),
    recoverAtStart: false,
  });
  await runtime.recover({ now: true });
  const [origin] = lineagesOf(license);
  const terminal = await runtime.terminal(origin.occurrence);
  return terminal === undefined ? { kind: 'open' } : verdictOf(terminal);
}

/** The durable state, read by a separate connection. */
export function readDurable(path: Path, folder: string): Snapshot {
  if (path === 'direct') return readPlain(folder) as Snapshot;
  using db = new DatabaseSync(join(folder, FILE), { readOnly: true });
  const row = db.prepare('select text from effectmatch_state').get();
  return JSON.parse(String(row?.text)) as Snapshot;
}
