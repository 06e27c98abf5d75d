import { randomBytes } from 'node:crypto';
import type { Fields } from '../contract/action-input.ts';
import { EffectMatchError } from '../errors.ts';
import type { ApprovalRequest } from '../requests/request.ts';
import type { AgentRequests } from '../requests/requests.ts';
import type { TaskLimits } from '../runtime/calls.ts';
import type { Draft } from '../runtime/draft.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Task } from '../runtime/task.ts';
import { answerOf, answerOfCall, answerOfOpen, answerOfTask, DISCARDED } from './answer.ts';
import {
  ASKING,
  CLOSED,
  closedSchema,
  invalidInput,
  makeTool,
  READING,
  SQL_FIELDS,
  statementOf,
} from './input.ts';
import type { AgentTool, CallOptions } from './tools.ts';

/** Options for {@link taskTools}. */
interface TaskToolsOptions {
  readonly requests: AgentRequests;
  readonly runtime: Pick<Runtime, 'draft'>;
  readonly run: string;
  /** The adapters on which tasks and drafts may be opened. */
  readonly adapters: readonly string[];
  readonly limits?: TaskLimits;
  readonly onFault?: ((error: unknown) => void) | undefined;
}

/** How many tasks one agent may have open. Each holds a session, or the lock on a whole file. */
const MAX_OPEN = 4;
const MAX_KNOWN = 16;
const TASK = { type: 'string', maxLength: 64, description: 'The task, as task_open named it.' };
const ACTION_FIELDS = {
  ...SQL_FIELDS,
  action: { type: 'object', description: 'What the adapter runs, if it is not SQL.' },
};
const REASON = { type: 'string', maxLength: 4000, description: 'Why, for the approver.' };

/**
 * Tools that let an agent make many calls on one private candidate. Each task has a random handle
 * that only its agent knows. Tasks end with this process.
 */
export function taskTools(options: TaskToolsOptions): readonly AgentTool[] {
  const tasks = new AgentTasks();
  const tool = makeTool.bind(undefined, options);
  return [
    tool(OPEN_TOOL(options.adapters), (fields, call) => open(options, tasks, fields, call)),
    tool(CALL_TOOL, async ({ task, ...fields }, call) =>
      answerOfCall(await tasks.find(task, call).call(actionOf(fields))),
    ),
    tool(FINISH_TOOL, async ({ task }, call) => {
      const found = tasks.find(task, call);
      if (!isTask(found)) throw invalidInput('it is a draft; call task_submit');
      return await tasks.ending(task, async () => answerOfTask(await found.finish()));
    }),
    tool(SUBMIT_TOOL, async ({ task, ...words }, call) => {
      const found = tasks.find(task, call);
      if (isTask(found)) throw invalidInput('it has an approval; call task_finish');
      const { run, requests } = options;
      const asked = { run, ...(words as { reason?: string }) };
      return await tasks.ending(task, async () => {
        const request = await requests.submit(found, asked);
        tasks.submitted.add(found);
        return answerOf(request);
      });
    }),
    tool(DISCARD_TOOL, async ({ task }, call) => {
      const found = tasks.find(task, call);
      if (!isTask(found) && tasks.submitted.has(found))
        throw invalidInput('it was submitted, and its request stands');
      const ended = await tasks.ending(task, async () => await found.discard());
      // The task may have been finished before.
      return ended === undefined || ended.kind === 'rejected' ? DISCARDED : answerOfTask(ended);
    }),
  ];
}

async function open(
  { runtime, requests, adapters, limits = {} }: TaskToolsOptions,
  tasks: AgentTasks,
  { adapter, request }: Fields,
  call: CallOptions,
): ReturnType<AgentTool['call']> {
  if ((adapter === undefined) === (request === undefined))
    throw invalidInput('give either an adapter, for a draft, or an approved request');
  const demandGiven = (name: unknown) => {
    if (!adapters.includes(String(name)))
      throw invalidInput(`the adapter must be one of ${adapters.join(', ') || 'none'}`);
  };
  return await tasks.open(call, async () => {
    if (request === undefined) {
      demandGiven(adapter);
      return await runtime.draft(String(adapter), limits);
    }
    // A task can read everything that its adapter exposes.
    demandGiven((await requests.get(String(request))).adapter);
    return await requests.open(String(request), limits);
  });
}

const isTask = (open: Task | Draft): open is Task => 'finish' in open;
const isRequest = (opened: Task | Draft | ApprovalRequest): opened is ApprovalRequest =>
  'state' in opened;

/** A task or draft, and the token that opened it. */
interface KnownTask {
  readonly task: Task | Draft;
  readonly caller: string | undefined;
}

/** The tasks and drafts of one agent. */
class AgentTasks {
  /** Ended tasks are kept for a while, so that the agent can ask how they ended. */
  readonly #known = new Map<string, KnownTask>();
  /** Tasks that are being opened or may still hold a candidate. */
  readonly #open = new Set<string>();
  /** Drafts that were submitted as requests. */
  readonly submitted = new WeakSet<Draft>();

  /** Reserves a place before the first await, because calls may arrive together. */
  async open(
    { caller }: CallOptions,
    begin: () => Promise<Task | Draft | ApprovalRequest>,
  ): ReturnType<AgentTool['call']> {
    this.#dropOld();
    if (this.#open.size >= MAX_OPEN)
      throw invalidInput(`${MAX_OPEN} tasks are open; finish or discard one first`);
    const handle = `tsk_${randomBytes(24).toString('base64url')}`;
    this.#open.add(handle);
    try {
      const opened = await begin();
      if (!isRequest(opened)) {
        this.#known.set(handle, { task: opened, caller });
        return answerOfOpen(handle, opened.expiresAt);
      }
      return answerOf(opened);
    } finally {
      if (!this.#known.has(handle)) this.#open.delete(handle);
    }
  }

  /** A handle that belongs to another token is reported as unknown. */
  find(handle: unknown, { caller }: CallOptions): Task | Draft {
    const found = this.#known.get(String(handle));
    if (found !== undefined && found.caller === caller) return found.task;
    throw new EffectMatchError('ERR_EM_NOT_FOUND', 'there is no such task; open one');
  }

  /** Ends a task and frees its place, even if ending it fails. */
  async ending<T>(handle: unknown, end: () => Promise<T>): Promise<T> {
    try {
      return await end();
    } finally {
      this.#open.delete(String(handle));
    }
  }

  #dropOld(): void {
    const now = Date.now();
    for (const [handle, { task }] of this.#known) {
      const isOverdue = Date.parse(task.expiresAt) <= now;
      if (isOverdue) this.#open.delete(handle);
      const isSurplus = this.#known.size > MAX_KNOWN && !this.#open.has(handle);
      if (isOverdue || isSurplus) this.#known.delete(handle);
    }
  }
}

const OPEN_TOOL = (adapters: readonly string[]) => ({
  name: 'task_open',
  description:
    'Begins work of many calls on a private copy. With an adapter it is a draft, which task_submit ' +
    'puts to a person; with the id of an approved request, task_finish makes exactly the approved ' +
    'outcome durable. It ends by itself at expiresAt.',
  inputSchema: closedSchema(
    { adapter: { type: 'string', enum: adapters }, request: { type: 'string', maxLength: 64 } },
    [],
  ),
  annotations: { ...ASKING, ...CLOSED },
});

const CALL_TOOL = {
  name: 'task_call',
  description:
    'Runs one statement, or one action, in a task. Reads see what earlier calls wrote. A call that ' +
    'fails changes nothing, and the task continues. Nothing is durable yet.',
  inputSchema: closedSchema({ task: TASK, ...ACTION_FIELDS }, ['task']),
  annotations: { ...ASKING, ...CLOSED, destructiveHint: false, idempotentHint: false },
};

const FINISH_TOOL = {
  name: 'task_finish',
  description:
    'Compares everything that a task of an approved request did with the approval. Equal: it is ' +
    'durable. Otherwise nothing is, and the answer says what differs.',
  inputSchema: closedSchema({ task: TASK }, ['task']),
  annotations: { ...ASKING, ...CLOSED },
};

const SUBMIT_TOOL = {
  name: 'task_submit',
  description:
    'Ends a draft and puts what it did to a person. Once that is approved, the same calls run again.',
  inputSchema: closedSchema({ task: TASK, reason: REASON }, ['task']),
  annotations: { ...ASKING, ...CLOSED },
};

const DISCARD_TOOL = {
  name: 'task_discard',
  description: 'Gives a task up. Nothing of it remains.',
  inputSchema: closedSchema({ task: TASK }, ['task']),
  annotations: { ...READING, ...CLOSED, readOnlyHint: false },
};

/**
 * The tools of a task that the host opened. The model needs no task handle to call or finish. If
 * its turn ends without `finish`, the host must finish or discard the task.
 */
export function boundTools(
  task: Pick<Task, 'call' | 'finish'>,
  options: { readonly onFault?: (error: unknown) => void } = {},
): readonly AgentTool[] {
  const callTool = { ...CALL_TOOL, inputSchema: closedSchema(ACTION_FIELDS, []) };
  const finishTool = { ...FINISH_TOOL, inputSchema: closedSchema({}, []) };
  return [
    makeTool(options, callTool, async (fields) => answerOfCall(await task.call(actionOf(fields)))),
    makeTool(options, finishTool, async () => answerOfTask(await task.finish())),
  ];
}

/** What a call runs: a statement, or an action in the adapter's own form. */
function actionOf({ action, ...statement }: Fields): unknown {
  return action === undefined ? statementOf(statement) : action;
}
