import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type InputRequiredResult,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server';
import { type Agent, readAgents } from '../access/agents.ts';
import { Callers } from '../access/callers.ts';
import { TOOL_ANSWER_SCHEMA, type ToolAnswer } from '../agents/answer.ts';
import { type AgentTool, agentTools } from '../agents/tools.ts';
import { EffectMatchError, invariant } from '../errors.ts';
import type { Requests } from '../requests/requests.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import type { Gateways, PassedTool } from './gateway.ts';

/** Options for {@link openAgentServers}. */
export interface AgentServersOptions {
  readonly config: RuntimeConfig;
  readonly runtime: Runtime;
  readonly requests: Requests;
  /** The upstream servers that agents reach through this one. */
  readonly gateways?: Gateways | undefined;
  /** The run of every call. Repeating a call in the same run finds the same request. */
  readonly run: string;
  readonly version: string;
  /** Receives lines for the operator. They never contain an input, a row or a token. */
  readonly log: (line: string) => void;
  /** Receives the faults for which an agent sees only an error code. */
  readonly onFault: (agent: string, error: unknown) => void;
}

/** The agents, and a way to open a protocol server for one of them. */
export interface AgentServers {
  readonly agents: ReadonlyMap<string, Agent>;
  /** Finds an agent by its token. */
  readonly callers: Callers;
  /** `caller` is the id of the token, because an agent may have several. */
  open(agent: string, caller?: string): Server;
}

const INSTRUCTIONS =
  'No tool changes anything before a person has approved its exact outcome. A call that waits for ' +
  'a person answers approval-required with a link for that person; then call request_status. ' +
  'Repeating a call never repeats its effect.';

/** Builds each agent's tools once. Every connection or HTTP request gets its own server. */
export function openAgentServers(options: AgentServersOptions): AgentServers {
  const agents = readAgents(options.config);
  const offers = new Map(
    [...agents.values()].map((agent) => [agent.name, offerOf(options, agent)]),
  );
  return {
    agents,
    callers: new Callers(agents, options.requests.tokens),
    open(name, caller) {
      const [agent, offer] = [agents.get(name), offers.get(name)];
      invariant(agent !== undefined && offer !== undefined, 'a known agent is served');
      return serverFor(options, agent, offer, caller);
    },
  };
}

interface Offer {
  readonly passed: ReadonlyMap<string, PassedTool>;
  readonly tools: ReadonlyMap<string, AgentTool>;
  readonly listed: Tool[];
}

function offerOf(options: AgentServersOptions, agent: Agent): Offer {
  const { config, requests, runtime, run, onFault } = options;
  const operations = agent.operations.map((name) => [name, config.operations?.[name]]);
  const names = new Set([...agent.sql, ...agent.read, ...agent.tasks]);
  const adapters = [...names].map((name) => {
    const [sql, read] = [agent.sql.includes(name), agent.read.includes(name)];
    return [name, { sql, read, task: agent.tasks.includes(name) }] as const;
  });
  const own = requests.forAgent(agent.name);
  const upstreams = agent.upstreams.flatMap((name) => {
    return options.gateways?.offer(name, agent.name, own, run) ?? [];
  });
  const taken = upstreams.flatMap((upstream) => upstream.taken);
  const made = agentTools({
    requests,
    runtime,
    run,
    agent: agent.name,
    taken,
    operations: Object.fromEntries(operations),
    adapters: Object.fromEntries(adapters),
    onFault: (error) => onFault(agent.name, error),
  });
  const tools = [...made, ...upstreams.flatMap((upstream) => upstream.own)];
  const passed = upstreams.flatMap((upstream) => upstream.passed);
  const listed = tools.map(({ name, description, inputSchema, annotations }) => {
    return { name, description, inputSchema, outputSchema: TOOL_ANSWER_SCHEMA, annotations };
  }) as unknown as Tool[];
  const all = [...listed, ...passed.map((tool) => withoutOutput(tool.listed))];
  demandUnlike(agent.name, all);
  return {
    passed: new Map(passed.map((tool) => [tool.listed.name, tool])),
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    listed: all,
  };
}

/** Drops the output schema, because a refusal would not conform to it. */
function withoutOutput({ outputSchema: _, ...tool }: Tool): Tool {
  return tool;
}

function demandUnlike(agent: string, tools: readonly Tool[]): void {
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  const what = `agent "${agent}" would have two tools with the name "${twice}"`;
  throw new EffectMatchError('ERR_EM_CONFIG_INVALID', `the configuration: ${what}`);
}

function serverFor(
  options: AgentServersOptions,
  agent: Agent,
  offer: Offer,
  caller: string | undefined,
): Server {
  const { version, log } = options;
  const server = new Server(
    { name: 'effectmatch', title: 'EffectMatch', version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler('tools/list', () => ({ tools: offer.listed }));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const passed = offer.passed.get(params.name);
    if (passed !== undefined) return await pass(options, agent, passed, params.arguments, context);
    const tool = offer.tools.get(params.name);
    if (tool === undefined) throw unknownTool(params.name);
    const answer = await call(agent, caller, tool, params.arguments ?? {}, context);
    log(`${agent.name}: ${tool.name}: ${answer.status} ${answer.code ?? answer.request ?? ''}`);
    const isAsking = tool.show !== undefined;
    return (isAsking && sendToLink(server, context, answer)) || resultOf(answer);
  });
  return server;
}

/** Forwards a call to an upstream server and returns its answer unchanged. */
async function pass(
  { log }: AgentServersOptions,
  agent: Agent,
  tool: PassedTool,
  input: object = {},
  { http, mcpReq }: ServerContext,
): Promise<CallToolResult> {
  if (http === undefined && !agent.pace.take()) return resultOf(TOO_OFTEN);
  const called = await tool.call(input, mcpReq.signal);
  const status = called.kind === 'passed' ? 'passed' : called.answer.status;
  log(`${agent.name}: ${tool.listed.name}: ${status}`);
  return called.kind === 'passed' ? called.result : resultOf(called.answer);
}

/** Counts calls over stdio only: HTTP messages are counted before they are read. */
async function call(
  { pace }: Agent,
  caller: string | undefined,
  tool: AgentTool,
  input: unknown,
  { http, mcpReq }: ServerContext,
): Promise<ToolAnswer> {
  if (http === undefined && !pace.take()) return TOO_OFTEN;
  return await tool.call(input, { signal: mcpReq.signal, ...(caller && { caller }) });
}

const TOO_OFTEN: ToolAnswer = {
  status: 'unavailable',
  code: 'ERR_EM_RATE_LIMITED',
  next: 'Too many calls in a minute; nothing was done; call it again later.',
};

/**
 * Asks a client that supports it to open the link for its user, once per call. The client's
 * response is ignored: only a license approves.
 */
function sendToLink(
  server: Server,
  { mcpReq }: ServerContext,
  { status, link }: ToolAnswer,
): InputRequiredResult | undefined {
  if (status !== 'approval-required' || link === undefined) return undefined;
  const hasAnswered = mcpReq.inputResponses !== undefined;
  // A 2026 client declares its capabilities in every message, a 2025 client once, at the start.
  const envelope = mcpReq.envelope as { readonly [key: string]: ClientCapabilities } | undefined;
  const can = envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities();
  const canOpen = can?.elicitation?.url !== undefined;
  if (hasAnswered || !canOpen || !/^https?:\/\//.test(link)) return undefined;
  const message = 'This change waits for approval. Open the page to see and to answer it.';
  return inputRequired({
    inputRequests: { approval: inputRequired.elicitUrl({ message, url: link }) },
  });
}

function resultOf(answer: ToolAnswer): CallToolResult {
  const isError = answer.status === 'refused' || answer.status === 'unavailable';
  return {
    content: [{ type: 'text', text: JSON.stringify(answer) }],
    structuredContent: { ...answer },
    ...(isError && { isError }),
  };
}

function unknownTool(name: string): ProtocolError {
  const message = `ERR_EM_NOT_FOUND: unknown tool "${name.slice(0, 80).toWellFormed()}"`;
  const data = { code: 'ERR_EM_NOT_FOUND' };
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message, data);
}
