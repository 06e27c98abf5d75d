// The tools of an episode at an MCP server on 127.0.0.1, and an MCP client that calls them.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpHandler, Server, type Tool } from '@modelcontextprotocol/server';
import type { ToolSchema } from '../../data/state-native.ts';
import type { Answer, Arguments } from '../../state-tools/desk.ts';
import type { ToolPort } from './session.ts';

const NAME = { name: 'live-agents', version: '1' } as const;

/** The same tools, by way of the protocol: what is offered and answered comes over HTTP. */
export async function openMcpPort(session: ToolPort): Promise<ToolPort & AsyncDisposable> {
  const handler = createMcpHandler(() => serverFor(session));
  const http = createServer((request, response) => {
    serve(handler, request, response).catch(() => response.destroy());
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  const client = new Client(NAME);
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
  const { tools } = await client.listTools();
  return {
    tools: tools.map(readTool),
    call: (tool, args) => callTool(client, tool, args),
    async [Symbol.asyncDispose]() {
      await client.close();
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
      await handler.close();
    },
  };
}

function serverFor(session: ToolPort): Server {
  const server = new Server(NAME, { capabilities: { tools: {} } });
  const tools = session.tools.map(
    ({ name, description, parameters }) =>
      ({ name, description, inputSchema: parameters }) as unknown as Tool,
  );
  server.setRequestHandler('tools/list', () => ({ tools }));
  server.setRequestHandler('tools/call', async ({ params }) => {
    const answer = await session.call(params.name, (params.arguments ?? {}) as Arguments);
    return { content: [{ type: 'text' as const, text: JSON.stringify(answer) }] };
  });
  return server;
}

function readTool({ name, description = '', inputSchema }: Tool): ToolSchema {
  const parameters = JSON.parse(JSON.stringify(inputSchema)) as ToolSchema['parameters'];
  return { name, description, parameters, isWrite: false };
}

async function callTool(client: Client, name: string, args: Arguments): Promise<Answer> {
  const { content } = await client.callTool({ name, arguments: { ...args } });
  const [first] = content as readonly { readonly type: string; readonly text?: string }[];
  if (first?.text === undefined) throw new Error(`${name} answered without text`);
  return JSON.parse(first.text) as Answer;
}

async function serve(
  handler: ReturnType<typeof createMcpHandler>,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  const { method = 'GET' } = incoming;
  const headers = new Headers(
    Object.entries(incoming.headers).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as [string, string]] : [],
    ),
  );
  const body = method === 'POST' ? { body: Buffer.concat(chunks) } : {};
  const request = new Request('http://127.0.0.1/mcp', { method, headers, ...body });
  const served = await handler.fetch(request);
  response.writeHead(served.status, Object.fromEntries(served.headers));
  if (served.body === null) response.end();
  else await pipeline(Readable.fromWeb(served.body), response).catch(() => {});
}
