import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** A server that speaks bytes, not HTTP: it does what a test says with each connection. */
export class RawServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Everything that arrived, one text per connection. */
  readonly received: string[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(onRequest: (socket: Socket, text: string) => void): Promise<RawServer> {
    const server = createServer();
    const raw = new RawServer(server);
    server.on('connection', (socket) => {
      raw.#sockets.add(socket);
      const at = raw.received.push('') - 1;
      socket.on('error', () => {});
      socket.on('close', () => raw.#sockets.delete(socket));
      socket.on('data', (chunk) => {
        raw.received[at] += chunk.toString('latin1');
        onRequest(socket, raw.received[at] ?? '');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return raw;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
