import { connect, createServer, type Socket } from 'node:net';

/** How many bytes still pass, once it is armed; everything else does. */
export interface Cut {
  readonly side: 'client' | 'server';
  readonly after: number;
}

/** Stands before a server, and cuts its connections after so many bytes. */
export class Relay implements AsyncDisposable {
  armed: Cut | undefined;
  /** What passed since it was armed. */
  passed = { client: 0, server: 0 };
  port = 0;
  readonly #sockets: Socket[] = [];
  readonly #server = createServer((client) => {
    const server = connect(this.#target, '127.0.0.1');
    this.#sockets.push(client, server);
    for (const socket of [client, server]) socket.on('error', () => {});
    this.#pass('client', client, server);
    this.#pass('server', server, client);
  });
  readonly #target: number;

  constructor(target: number) {
    this.#target = target;
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
    return this;
  }

  #pass(side: 'client' | 'server', from: Socket, to: Socket): void {
    from.on('data', (bytes) => {
      const left =
        this.armed?.side === side
          ? Math.max(0, this.armed.after - this.passed[side])
          : bytes.length;
      this.passed[side] += bytes.length;
      to.write(bytes.subarray(0, left));
      if (left < bytes.length) for (const socket of [from, to]) socket.destroySoon();
    });
    from.on('close', () => to.destroySoon());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
