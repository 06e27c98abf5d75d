import {
  type CallToolResult,
  Client,
  StreamableHTTPClientTransport,
  type Tool,
} from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { UpstreamServer } from './server.ts';

/** The maximum length of an answer in characters. */
export const MAX_ANSWER = 1024 * 1024;
/** The maximum size of a message, including escapes and framing. The rest is not read. */
const MAX_BYTES = 2 * MAX_ANSWER;
const TIMEOUT_MS = 30_000;

/** One process of an upstream server, or one session with it. */
export class UpstreamConnection {
  /** The number of running calls. */
  users = 0;
  onclose: () => void = () => {};
  readonly #transport: StdioClientTransport | StreamableHTTPClientTransport;
  readonly #opened: Promise<Client>;
  readonly #timeout: number;
  #listed: { readonly tools: readonly Tool[]; readonly atMs: number } | undefined;
  /** How often the server has announced that its tools changed. */
  #changes = 0;

  constructor(server: UpstreamServer, folder: string | undefined) {
    this.#timeout = server.timeoutMs ?? TIMEOUT_MS;
    this.#transport = transportFor(server, folder);
    this.#opened = this.#connect();
    this.#opened.catch(() => {});
  }

  /** Returns the tools. Uses the last list if it is not older than `maxAgeMs`. */
  async listTools(maxAgeMs: number): Promise<readonly Tool[]> {
    const known = this.#listed;
    if (known !== undefined && performance.now() - known.atMs < maxAgeMs) return known.tools;
    const client = await this.#opened;
    const changes = this.#changes;
    // The server must not decide how long we cache the list.
    const options = { timeout: this.#timeout, cacheMode: 'refresh' } as const;
    const { tools } = await client.listTools({}, options);
    if (changes === this.#changes) this.#listed = { tools, atMs: performance.now() };
    return tools;
  }

  /** Sends one call. With the tool's definition, the client never sends it a second time. */
  async callTool(tool: Tool, input: object, signal?: AbortSignal): Promise<CallToolResult> {
    const client = await this.#opened;
    const { outputSchema: _, ...toolDefinition } = tool;
    const options = { timeout: this.#timeout, toolDefinition, ...(signal && { signal }) };
    const called = { name: tool.name, arguments: input as Record<string, unknown> };
    return await client.callTool(called, options);
  }

  /** Also closes a connection that is still being opened. */
  async close(): Promise<void> {
    await this.#transport.close().catch(() => {});
    const client = await this.#opened.catch(() => undefined);
    await client?.close().catch(() => {});
  }

  async #connect(): Promise<Client> {
    const client = new Client(
      { name: 'effectmatch', version: '1' },
      {
        capabilities: {},
        // Throws if the server has no tools. Otherwise the client would print to stdout.
        enforceStrictCapabilities: true,
        // Otherwise the call would be sent again if the server asks for more input.
        inputRequired: { autoFulfill: false },
      },
    );
    client.onclose = () => this.onclose();
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      this.#changes += 1;
      this.#listed = undefined;
    });
    await client.connect(this.#transport, { timeout: this.#timeout });
    return client;
  }
}

function transportFor(server: UpstreamServer, folder = '') {
  const { command, env = {}, url, headers = {} } = server;
  if (url !== undefined)
    return new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers },
      fetch: fetchBounded,
    });
  const [program = '', ...words] = command ?? [];
  const args = words.map((word) => word.replaceAll('{folder}', folder));
  return new StdioClientTransport({
    command: program,
    args,
    stderr: 'ignore',
    maxBufferSize: MAX_BYTES,
    env: { ...getDefaultEnvironment(), ...env },
  });
}

/** Follows no redirects, so that the headers go to one address only. Cuts off a long response. */
async function fetchBounded(url: string | URL, init?: RequestInit): Promise<Response> {
  const { body, status, statusText, headers } = await fetch(url, { ...init, redirect: 'error' });
  let bytes = 0;
  const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) controller.error(new Error(`its answer is over ${MAX_BYTES} bytes`));
      else controller.enqueue(chunk);
    },
  });
  const read = body?.pipeThrough(counting) ?? null;
  return new Response(read, { status, statusText, headers });
}
