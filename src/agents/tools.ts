import type { Fields } from '../contract/action-input.ts';
import { errorsOf, isFault } from '../errors.ts';
import { isName } from '../protocol/record.ts';
import type { ApprovalRequest, Ask, WantedChange } from '../requests/request.ts';
import type { Requests } from '../requests/requests.ts';
import type { TaskLimits } from '../runtime/calls.ts';
import type { Operation } from '../runtime/operation.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { answerOf, answerOfFault, answerOfRows, type ToolAnswer } from './answer.ts';
import {
  ASKING,
  answering,
  CLOSED,
  closedSchema,
  invalidInput,
  makeTool,
  OPEN,
  READING,
  readInput,
  SAYING,
  SQL_FIELDS,
  statementOf,
} from './input.ts';
import { type JsonSchema, schemaOf } from './json-schema.ts';
import { taskTools } from './task-tools.ts';

/** Which tools one agent gets in one run. */
export interface AgentToolsOptions {
  readonly requests: Requests;
  /** The agent's name. It comes from the host, never from the model. */
  readonly agent: string;
  /** The conversation or job. Repeating a call in the same run finds the same request. */
  readonly run: string;
  /** The operations that this agent may ask for. Each becomes a tool. */
  readonly operations?: Readonly<Record<string, Operation>>;
  /** Input schemas for operations whose schema library cannot generate JSON Schema. */
  readonly schemas?: Readonly<Record<string, JsonSchema>>;
  /** The adapters that this agent may send SQL to, for reads or for changes. */
  readonly adapters?: Readonly<Record<string, AdapterTools>>;
  /** Needed for read tools and tasks. */
  readonly runtime?: Pick<Runtime, 'query' | 'draft'>;
  /** Tools of another server that keep their name and input but run here. */
  readonly taken?: readonly TakenTool[];
  /** How long a task may take, and how many calls it may make. */
  readonly taskLimits?: TaskLimits;
  /** How long a call waits for a person. By default it does not wait. */
  readonly waitMs?: number;
  /** Receives the faults for which the agent sees only an error code. */
  readonly onFault?: (error: unknown) => void;
}

/** A tool of another server whose calls are turned into requests. */
export interface TakenTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly want: (input: unknown) => WantedChange;
}

/** What an agent may do with one adapter. */
export interface AdapterTools {
  readonly sql?: boolean;
  readonly read?: boolean;
  /** Allows drafts of many calls, and tasks for approved requests. */
  readonly task?: boolean;
}

/** Hints about a tool that a client may show its user. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

/** What accompanies a call besides its input. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Which of the agent's tokens made the call. A task belongs to the token that opened it. */
  readonly caller?: string;
}

/** A tool in a form that suits every framework. */
export interface AgentTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
  /** Never throws, except if `signal` aborts. Without a license it changes nothing. */
  call(input: unknown, options?: CallOptions): Promise<ToolAnswer>;
  /**
   * Present if a person has to approve. Creates the request if it is new and returns its status,
   * but executes nothing. Call it from a framework's approval hook.
   */
  show?(input: unknown): Promise<ToolAnswer>;
}

const MAX_WAIT_S = 50;
const REQUEST = { type: 'string', maxLength: 64 };

const REASON = { type: 'string', maxLength: 4000, description: 'Why, for the approver.' };
const KEY = {
  type: 'string',
  maxLength: 256,
  description: 'Usually left out. To have the same thing done again, give any new text.',
};
const APPROVED = 'A person approves the exact outcome before anything changes.';

/** The tools of one agent in one run. They check the license themselves, so it does not matter who calls them. */
export function agentTools(options: AgentToolsOptions): readonly AgentTool[] {
  const { agent, run, operations = {}, adapters = {} } = options;
  if (!isName(agent)) throw misconfigured('agent must be a name');
  if (typeof run !== 'string' || run === '' || run.length > 256)
    throw misconfigured('run must be a string of 1 to 256 characters');
  const tools = [
    ...Object.values(operations).map((operation) => operationTool(options, operation)),
    ...Object.entries(adapters).flatMap(([name, may]) => [
      ...(may.sql ? [sqlTool(options, name)] : []),
      ...(may.read ? [readTool(options, name)] : []),
    ]),
    ...(options.taken ?? []).map((taken) => takenTool(options, taken)),
    ...toolsForTasks(options),
    statusTool(options),
    replyTool(options),
  ];
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw misconfigured(`two tools would have the name "${twice}"`);
  return tools;
}

function toolsForTasks(options: AgentToolsOptions): readonly AgentTool[] {
  const { requests, agent, run, runtime, adapters = {}, taskLimits, onFault } = options;
  const names = Object.keys(adapters).filter((name) => adapters[name]?.task === true);
  if (names.length === 0) return [];
  if (runtime === undefined) throw misconfigured('tasks need the runtime');
  return taskTools({
    requests: requests.forAgent(agent),
    runtime,
    run,
    adapters: names,
    onFault,
    ...(taskLimits && { limits: taskLimits }),
  });
}

function operationTool(options: AgentToolsOptions, operation: Operation): AgentTool {
  const { name } = operation;
  const input = options.schemas?.[name] ?? schemaOf(operation);
  const described = typeof input.description === 'string' ? input.description : name;
  const inputSchema = closedSchema({ input, reason: REASON, key: KEY }, ['input']);
  const text = `${described} ${APPROVED}`;
  const want = (fields: Fields): WantedChange => ({ operation: name, input: fields.input });
  return askingTool(options, { name: toolName(name), text, inputSchema, reach: OPEN, want });
}

function sqlTool(options: AgentToolsOptions, adapter: string): AgentTool {
  const inputSchema = closedSchema({ ...SQL_FIELDS, reason: REASON, key: KEY }, ['sql']);
  const name = toolName(`sql_${adapter}`);
  const text = `Changes rows of ${adapter} with one SQL statement. ${APPROVED}`;
  const want = (fields: Fields): WantedChange => ({ adapter, action: statementOf(fields) });
  return askingTool(options, { name, text, inputSchema, reach: CLOSED, want });
}

/** Passes every field as input: the tool itself may have a field named "reason" or "key". */
function takenTool(options: AgentToolsOptions, taken: TakenTool): AgentTool {
  const { name, inputSchema, want } = taken;
  const text = `${taken.description} ${APPROVED}`;
  return askingTool(options, { name, text, inputSchema, reach: OPEN, want, isWordless: true });
}

interface Asking {
  readonly name: string;
  readonly text: string;
  readonly inputSchema: JsonSchema;
  readonly reach: Pick<ToolAnnotations, 'openWorldHint'>;
  readonly want: (fields: Fields) => WantedChange;
  readonly isWordless?: true;
}

function askingTool(options: AgentToolsOptions, asking: Asking): AgentTool {
  const { name, text: description, inputSchema, reach, want } = asking;
  const { requests, agent: by, run, waitMs = 0 } = options;
  const read = (input: unknown): Ask => {
    const given = readInput(inputSchema, input);
    if (asking.isWordless) return { by, run, ...want(given) };
    const { reason, key, ...fields } = given;
    const words = { ...(reason !== undefined && { reason }), ...(key !== undefined && { key }) };
    return { by, run, ...want(fields), ...words } as Ask;
  };
  return {
    name,
    description,
    inputSchema,
    annotations: { ...ASKING, ...reach },
    show: (input) => answering(options, async () => answerOf(await requests.show(read(input)))),
    call: (input, { signal } = {}) =>
      answering(options, async () => {
        const asked = await requests.show(read(input));
        const waiting = { waitMs, until: 'answered', signal } as const;
        return await settle(options, await requests.wait(asked.id, waiting));
      }),
  };
}

/** Executes an approved request, or waits for the process that does. Needs a valid license. */
async function settle(
  { requests, onFault }: AgentToolsOptions,
  request: ApprovalRequest,
): Promise<ToolAnswer> {
  const { id, state } = request;
  if (state !== 'approved' && state !== 'running') return answerOf(request);
  try {
    return answerOf(await requests.execute(id));
  } catch (error) {
    if (isFault(error, 'ERR_EM_ATTEMPT_OPEN')) return answerOf(await requests.get(id));
    // Never answer "refused" after this point: the change may have happened.
    onFault?.(error);
    return answerOfFault(error, id);
  }
}

function readTool(options: AgentToolsOptions, adapter: string): AgentTool {
  const { runtime } = options;
  if (runtime === undefined) throw misconfigured('read tools need the runtime');
  const described = {
    name: toolName(`read_${adapter}`),
    description: `Reads rows of ${adapter} with one SQL query. It cannot change anything.`,
    inputSchema: closedSchema(SQL_FIELDS, ['sql']),
    annotations: { ...READING, ...CLOSED },
  };
  return makeTool(options, described, async (fields) => {
    return answerOfRows(await runtime.query({ adapter, action: statementOf(fields) }));
  });
}

function statusTool(options: AgentToolsOptions): AgentTool {
  const own = options.requests.forAgent(options.agent);
  const waitSeconds = { type: 'number', minimum: 0, maximum: MAX_WAIT_S };
  const described = {
    name: 'request_status',
    description: 'Tells where a request stands. It waits up to waitSeconds for the verdict.',
    inputSchema: closedSchema({ request: REQUEST, waitSeconds }, ['request']),
    annotations: { ...READING, ...CLOSED },
  };
  return makeTool(options, described, async (fields, { signal }) => {
    const { request: id, waitSeconds: seconds = 0 } = fields;
    const isTime = typeof seconds === 'number' && seconds >= 0 && seconds <= MAX_WAIT_S;
    if (typeof id !== 'string' || !isTime)
      throw invalidInput(
        `"request" must be a string, and "waitSeconds" a number from 0 to ${MAX_WAIT_S}`,
      );
    return answerOf(await own.wait(id, { waitMs: seconds * 1000, signal }));
  });
}

function replyTool(options: AgentToolsOptions): AgentTool {
  const own = options.requests.forAgent(options.agent);
  const text = { type: 'string', maxLength: 4000 };
  const described = {
    name: 'reply_request',
    description: 'Answers a question that a person asks about a request before deciding it.',
    inputSchema: closedSchema({ request: REQUEST, text }, ['request', 'text']),
    annotations: { ...SAYING, ...CLOSED },
  };
  return makeTool(options, described, async ({ request: id, text: said }) => {
    if (typeof id !== 'string' || typeof said !== 'string')
      throw invalidInput('"request" and "text" are texts');
    return answerOf(await own.reply(id, said));
  });
}

/** Replaces characters that model providers do not allow in a tool's name. */
function toolName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
}

const misconfigured = errorsOf('ERR_EM_CONFIG_INVALID', 'agent tools: ');
