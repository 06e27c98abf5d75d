import { createHash } from 'node:crypto';
import { type CallToolResult, ProtocolError, type Tool } from '@modelcontextprotocol/client';
import { EffectMatchError, messageOf } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import { MAX_ANSWER, UpstreamConnection } from './connection.ts';
import type { UpstreamServer } from './server.ts';

/** The current definition of an upstream tool, and its digest. */
export interface UpstreamDefinition {
  readonly tool: Tool;
  readonly digest: string;
}

/** One call of a tool. */
interface UpstreamCall {
  readonly tool: string;
  /** The digest of the definition that the tool must still have. */
  readonly definition: string;
  readonly input: object;
}

/** The result of a call that is made at most once. `not-sent` means that nothing of it was sent. */
export type CalledOnce =
  | { readonly kind: 'not-sent'; readonly why: string }
  | { readonly kind: 'lost'; readonly why: string }
  | { readonly kind: 'response' };

/** How to use a server. */
interface UpstreamOptions {
  /** Replaces `{folder}` in the command. */
  readonly folder?: string | undefined;
  /** Whether errors repeat the server's messages. Default: true. */
  readonly quotes?: boolean;
}

type Definitions = ReadonlyMap<string, UpstreamDefinition>;

/**
 * How long a list of tools is reused. If the server announces a change, it is asked again at once.
 */
const LIST_MS = 2000;
const MAX_TOOLS = 1000;

/**
 * Another MCP server, which cannot send requests to us. A failed connection is replaced at the next
 * call, and closed once its other calls have returned.
 */
export class Upstream {
  readonly name: string;
  readonly #server: UpstreamServer;
  readonly #options: UpstreamOptions;
  readonly #open = new Set<UpstreamConnection>();
  #current: UpstreamConnection | undefined;

  constructor(name: string, server: UpstreamServer, options: UpstreamOptions = {}) {
    this.name = name;
    this.#server = server;
    this.#options = options;
  }

  /** The tools by name. A list from moments ago is reused. */
  async tools(): Promise<Definitions> {
    return await this.#using((connection) => this.#list(connection, LIST_MS));
  }

  /** Calls a tool if it still is as classified. Nothing is ever repeated. */
  async call(
    { tool, definition, input }: UpstreamCall,
    signal?: AbortSignal,
  ): Promise<CallToolResult> {
    return await this.#using(async (connection) => {
      const tools = await this.#list(connection, LIST_MS);
      const changed = changedSince(tools, tool, definition);
      if (changed !== undefined) throw new EffectMatchError('ERR_EM_NOT_FOUND', changed);
      const calling = connection.callTool(toolOf(tools, tool), input, signal);
      const result = await calling.catch(readRefusal);
      const { length } = JSON.stringify(result);
      if (length > MAX_ANSWER) throw new Error(`its answer has ${length} characters`);
      return result;
    }, signal);
  }

  /**
   * Calls a tool that writes, on a connection that has just listed it. `mayCall` is the last check:
   * it returns why nothing may be sent. The tool's answer is ignored.
   */
  async callOnce(
    { tool, definition, input }: UpstreamCall,
    mayCall: () => string | undefined,
  ): Promise<CalledOnce> {
    let mayHaveLeft = false;
    const attempt = async (connection: UpstreamConnection): Promise<CalledOnce> => {
      const tools = await this.#list(connection, 0);
      const why = changedSince(tools, tool, definition) ?? mayCall();
      if (why !== undefined) return { kind: 'not-sent', why };
      mayHaveLeft = true;
      await connection.callTool(toolOf(tools, tool), input);
      return { kind: 'response' };
    };
    try {
      return await this.#using(attempt).catch((error: unknown) => {
        if (mayHaveLeft) throw error;
        // The connection may have been idle for long. Nothing was sent, so a new one can be tried.
        return this.#using(attempt);
      });
    } catch (error) {
      const why = messageOf(error);
      return { kind: mayHaveLeft ? 'lost' : 'not-sent', why };
    }
  }

  async close(): Promise<void> {
    this.#current = undefined;
    await Promise.all([...this.#open].map((connection) => this.#end(connection)));
  }

  async #using<T>(
    work: (connection: UpstreamConnection) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const connection = this.#connect();
    connection.users += 1;
    try {
      return await work(connection);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof EffectMatchError) throw error;
      // The server is usable after answering with an error. Otherwise it may hang or be gone.
      if (!(error instanceof ProtocolError)) this.#retire(connection);
      throw this.#unavailable(messageOf(error), error);
    } finally {
      connection.users -= 1;
      if (connection !== this.#current && connection.users === 0) await this.#end(connection);
    }
  }

  #connect(): UpstreamConnection {
    if (this.#current !== undefined) return this.#current;
    const connection = new UpstreamConnection(this.#server, this.#options.folder);
    connection.onclose = () => this.#retire(connection);
    this.#open.add(connection);
    this.#current = connection;
    return connection;
  }

  /** Makes the next call open another connection. */
  #retire(connection: UpstreamConnection): void {
    if (this.#current === connection) this.#current = undefined;
  }

  async #end(connection: UpstreamConnection): Promise<void> {
    await connection.close();
    this.#open.delete(connection);
  }

  async #list(connection: UpstreamConnection, maxAgeMs: number): Promise<Definitions> {
    const tools = await connection.listTools(maxAgeMs);
    if (tools.length > MAX_TOOLS) throw new Error(`it has more than ${MAX_TOOLS} tools`);
    const listed = new Map(tools.map((tool) => [tool.name, { tool, digest: toolDigest(tool) }]));
    if (listed.size < tools.length) throw new Error('two of its tools have the same name');
    return listed;
  }

  #unavailable(why: string, cause?: unknown): EffectMatchError<'ERR_EM_UPSTREAM_UNAVAILABLE'> {
    const { quotes = true } = this.#options;
    const words = quotes ? `: ${why.slice(0, 300)}` : '';
    const message = `the server "${this.name}" gave no usable answer${words}`;
    return new EffectMatchError('ERR_EM_UPSTREAM_UNAVAILABLE', message, { cause });
  }
}

/** A server can change its tools while it runs. */
function changedSince(tools: Definitions, tool: string, definition: string): string | undefined {
  if (tools.get(tool)?.digest === definition) return undefined;
  return `the tool "${tool}" changed since it was classified; it was not called`;
}

/** A protocol error, for example about arguments, is an answer too. */
function readRefusal(error: unknown): CallToolResult {
  if (!(error instanceof ProtocolError)) throw error;
  return { content: [{ type: 'text', text: error.message }], isError: true };
}

function toolOf(tools: Definitions, name: string): Tool {
  const found = tools.get(name);
  if (found === undefined) throw new Error(`it has no tool "${name}"`);
  return found.tool;
}

/** The digest of everything that a person or model reads about a tool, and of its schemas. */
function toolDigest(tool: Tool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const said = { name, title, description, inputSchema, outputSchema, annotations };
  const text = canonical(JSON.parse(JSON.stringify(said)));
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
