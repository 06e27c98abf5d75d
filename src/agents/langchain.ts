/**
 * Tools and middleware for LangChain 1 (`langchain` and `@langchain/langgraph`).
 *
 * @module
 */

import '../node-version.ts';

import type { JsonSchema } from './json-schema.ts';
import { answerText, type Pause, pauseFor } from './pause.ts';
import type { AgentTool } from './tools.ts';

/** The LangChain functions that we call, from the application's own installation. */
export interface LangChain<Tool, Middleware> {
  /** From `langchain`. */
  readonly tool: (...fields: never[]) => Tool;
  /** From `langchain`. */
  readonly createMiddleware: (...fields: never[]) => Middleware;
  /** From `@langchain/langgraph`. */
  readonly interrupt: (value: never) => unknown;
}

/** The options for `createAgent`. */
export interface LangChainTools<Tool, Middleware> {
  readonly tools: Tool[];
  readonly middleware: Middleware[];
}

/** What an interrupt shows. */
export interface LangChainPause extends Pause {
  readonly tool: string;
}

interface ToolFields {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
}

type Run = (input: unknown, config?: { readonly signal?: AbortSignal }) => Promise<string>;

interface CallRequest {
  readonly toolCall: { readonly name: string; readonly args: unknown };
}

interface MiddlewareFields {
  readonly name: string;
  wrapToolCall<Message>(
    request: CallRequest,
    handler: (request: CallRequest) => Message | Promise<Message>,
  ): Promise<Message>;
}

/**
 * The tools, and a middleware that interrupts a call and shows what a person has to sign, and
 * where. The value that resumes the run is ignored: without a license the call changes nothing and
 * returns `approval-required`.
 */
export function langChainTools<Tool, Middleware>(
  tools: readonly AgentTool[],
  langChain: LangChain<Tool, Middleware>,
): LangChainTools<Tool, Middleware> {
  const makeTool = langChain.tool as unknown as (run: Run, fields: ToolFields) => Tool;
  const makeMiddleware = langChain.createMiddleware as unknown as (
    fields: MiddlewareFields,
  ) => Middleware;
  const interrupt = langChain.interrupt as (value: LangChainPause) => unknown;
  const middleware = makeMiddleware({
    name: 'EffectMatch',
    async wrapToolCall(request, handler) {
      const { name, args } = request.toolCall;
      const own = tools.find((tool) => tool.name === name);
      const pause = own && (await pauseFor(own, args));
      if (pause !== undefined) interrupt({ tool: name, ...pause });
      return await handler(request);
    },
  });
  return { tools: tools.map((own) => langChainTool(own, makeTool)), middleware: [middleware] };
}

function langChainTool<Tool>(own: AgentTool, make: (run: Run, fields: ToolFields) => Tool): Tool {
  const { name, description, inputSchema: schema } = own;
  const run: Run = async (input, { signal } = {}) =>
    answerText(await own.call(input, signal && { signal }));
  return make(run, { name, description, schema });
}
