import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An HTTP server on this machine, closed with all its connections when it goes out of scope. */
export interface LoopbackServer extends AsyncDisposable {
  readonly origin: string;
}

/** What a test's server does with one request, whose body is complete. */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
) => void | Promise<void>;

/** Starts a server on a free port. A handler that throws cuts the connection. */
export async function startLoopback(handle: Handler): Promise<LoopbackServer> {
  const server = createServer(async (request, response) => {
    try {
      await handle(request, response, await bytesOf(request));
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Everything that a stream gives. */
export async function bytesOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
