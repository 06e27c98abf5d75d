import { createHash } from 'node:crypto';
import {
  type CallToolResult,
  Client,
  StreamableHTTPClientTransport,
  type Tool,
} from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { UpstreamConfig } from '../access/configuration.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import { MAX_MESSAGE } from './http.ts';

/** A tool of an upstream server as it defines it now, and the digest of that. */
export interface UpstreamDefinition {
  readonly tool: Tool;
  readonly digest: string;
}

const TIMEOUT_MS = 30_000;
/** How long a list of tools is believed; a server that says that it changed is asked at once. */
const LIST_MS = 2000;
const MAX_TOOLS = 1000;

/**
 * A connection to another MCP server. It declares nothing that the server could ask of it, and is
 * opened again if the server went away.
 */
export class Upstream {
  readonly name: string;
  readonly #config: UpstreamConfig;
  readonly #folder: string | undefined;
  #client: Promise<Client> | undefined;
  #tools: ReadonlyMap<string, UpstreamDefinition> | undefined;
  #listedMs = 0;

  /** `folder` takes the place of `{folder}` in the command. */
  constructor(name: string, config: UpstreamConfig, folder?: string) {
    this.name = name;
    this.#config = config;
    this.#folder = folder;
  }

  /** The tools by name. A list that the server gave moments ago is not asked for again. */
  async tools(): Promise<ReadonlyMap<string, UpstreamDefinition>> {
    const known = this.#tools;
    if (known !== undefined && performance.now() - this.#listedMs < LIST_MS) return known;
    const { tools } = await this.#asking((client, options) => client.listTools({}, options));
    if (tools.length > MAX_TOOLS) throw this.#unavailable(`it has more than ${MAX_TOOLS} tools`);
    const listed = new Map(tools.map((tool) => [tool.name, { tool, digest: digestOf(tool) }]));
    this.#tools = listed;
    this.#listedMs = performance.now();
    return listed;
  }

  /** Calls a tool once. Nothing is repeated, whatever happens. */
  async call(tool: string, input: object, signal?: AbortSignal): Promise<CallToolResult> {
    const called = { name: tool, arguments: input as Record<string, unknown> };
    const result = await this.#asking((client, options) =>
      client.callTool(called, { ...options, ...(signal && { signal }) }),
    );
    const { length } = JSON.stringify(result);
    if (length > MAX_MESSAGE) throw this.#unavailable(`its answer has ${length} characters`);
    return result;
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    this.#forget();
    await client?.close().catch(() => {});
  }

  async #asking<T>(ask: (client: Client, options: { timeout: number }) => Promise<T>): Promise<T> {
    this.#client ??= this.#connect();
    const timeout = this.#config.timeoutMs ?? TIMEOUT_MS;
    try {
      return await ask(await this.#client, { timeout });
    } catch (error) {
      if (error instanceof Error && error.name === 'AbortError') throw error;
      // The next call starts a new server: this one may hang, or be gone.
      await this.close();
      throw this.#unavailable(error instanceof Error ? error.message : String(error), error);
    }
  }

  async #connect(): Promise<Client> {
    const client = new Client({ name: 'effectmatch', version: '1' }, { capabilities: {} });
    client.onclose = () => this.#forget();
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      this.#tools = undefined;
    });
    const timeout = this.#config.timeoutMs ?? TIMEOUT_MS;
    await client.connect(this.#transport(), { timeout });
    return client;
  }

  #forget(): void {
    this.#client = undefined;
    this.#tools = undefined;
  }

  #transport() {
    const { command, env = {}, url, headers = {} } = this.#config;
    if (url !== undefined)
      return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    const [program = '', ...words] = command ?? [];
    const args = words.map((word) => word.replaceAll('{folder}', this.#folder ?? ''));
    return new StdioClientTransport({
      ...{ command: program, args, stderr: 'ignore', maxBufferSize: 2 * MAX_MESSAGE },
      env: { ...getDefaultEnvironment(), ...env },
    });
  }

  #unavailable(why: string, cause?: unknown): EffectMatchError<'ERR_EM_UPSTREAM_UNAVAILABLE'> {
    const message = `the server "${this.name}" gave no usable answer: ${why.slice(0, 300)}`;
    return new EffectMatchError('ERR_EM_UPSTREAM_UNAVAILABLE', message, { cause });
  }
}

/** Everything that a person or a model reads of a tool, and everything that it takes. */
export function digestOf(tool: Tool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const said = { name, title, description, inputSchema, outputSchema, annotations };
  const text = canonical(JSON.parse(JSON.stringify(said)));
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
