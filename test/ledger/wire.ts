// Two things that stand between a client and a server: a pooler that gives every transaction
// whichever session is free, and a line that is cut at a chosen message.
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Messages of the protocol as they arrive: a type, a length and a body. */
class Messages {
  #bytes = Buffer.alloc(0);

  *read(chunk: Buffer): Generator<{ readonly type: string; readonly body: Buffer }> {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    while (this.#bytes.length >= 5) {
      const end = 1 + this.#bytes.readInt32BE(1);
      if (this.#bytes.length < end) return;
      const body = this.#bytes.subarray(5, end);
      yield { type: String.fromCharCode(this.#bytes[0] ?? 0), body };
      this.#bytes = this.#bytes.subarray(end);
    }
  }
}

interface Listening extends AsyncDisposable {
  readonly port: number;
}

async function listen(server: Server, sockets: readonly Socket[]): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A session of the server, and the client whose transaction it carries. */
interface PooledSession {
  readonly socket: Socket;
  client: Socket | undefined;
  /** Messages that ask for readiness and have no answer yet. */
  asked: number;
}

/**
 * A pooler in transaction mode. Clients log in at the server through it; then each transaction goes
 * to the session that has been free for longest, and `handedOver` counts those that went to another
 * session than the transaction before.
 */
export async function startTransactionPooler(
  port: number,
): Promise<Listening & { readonly handedOver: () => number }> {
  const sockets: Socket[] = [];
  const free: PooledSession[] = [];
  const waiting: (() => void)[] = [];
  let handedOver = 0;

  const server = createServer((client) => {
    const socket = connect(port, '127.0.0.1');
    sockets.push(client, socket);
    const own: PooledSession = { socket, client, asked: 1 };
    let current: PooledSession | undefined = own;
    let last: PooledSession | undefined;
    let isLoggedIn = false;
    const answers = new Messages();
    socket.on('data', (chunk) => {
      own.client?.write(chunk);
      for (const { type, body } of answers.read(chunk)) {
        if (type !== 'Z') continue;
        own.asked -= 1;
        if (own.asked > 0 || body[0] !== 'I'.charCodeAt(0)) continue;
        own.client?.emit('free');
        own.client = undefined;
        free.push(own);
        waiting.shift()?.();
      }
    });
    client.on('free', () => {
      isLoggedIn = true;
      last = current;
      current = undefined;
    });
    const send = (chunk: Buffer): void => {
      if (current === undefined) {
        const next = free.shift();
        if (next === undefined) {
          waiting.push(() => send(chunk));
          return;
        }
        if (next !== last) handedOver += 1;
        next.client = client;
        current = next;
      }
      for (const { type } of new Messages().read(chunk))
        if (type === 'S' || type === 'Q') current.asked += 1;
      current.socket.write(chunk);
    };
    client.on('data', (chunk) => {
      if (!isLoggedIn) socket.write(chunk);
      else if (chunk[0] !== 'X'.charCodeAt(0)) send(chunk);
    });
    for (const end of [client, socket]) end.on('error', () => {});
  });
  return { ...(await listen(server, sockets)), handedOver: () => handedOver };
}

/** How a session prepares the function that is a whole transaction of the ledger. */
const PREPARED_DECISION = /(effectmatch_[0-9a-f]{32})\0select "[^"]*"\.decide\(/g;

/** What happens to the next message that ends a transaction. */
export type Cut = 'before' | 'after' | undefined;

/** A line that can be cut, and counts how often a client asked the server to be ready again. */
interface CuttingLine extends Listening {
  cutNext(cut: Cut): void;
  readonly cuts: () => number;
  readonly messages: () => number;
}

/** A line to a server that is cut once, before a COMMIT arrives or before its answer does. */
export async function startCuttingLine(port: number): Promise<CuttingLine> {
  const sockets: Socket[] = [];
  let pending: Cut;
  let cuts = 0;
  let messages = 0;
  const server = createServer((client) => {
    const socket = connect(port, '127.0.0.1');
    sockets.push(client, socket);
    let isCut = false;
    const answers = new Messages();
    const deciding = new Set<string>();
    const ends = (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      for (const [, name] of text.matchAll(PREPARED_DECISION)) deciding.add(String(name));
      const isDecision = () => [...deciding].some((name) => text.includes(name));
      return text.includes('commit\0') || text.includes('.decide(') || isDecision();
    };
    const cut = () => {
      isCut = true;
      client.destroy();
    };
    socket.on('data', (chunk) => {
      for (const { type } of answers.read(chunk)) if (type === 'Z') messages += 1;
      if (!isCut) client.write(chunk);
    });
    client.on('data', (chunk) => {
      const isEnd = ends(chunk);
      if (pending === undefined || !isEnd) {
        socket.write(chunk);
        return;
      }
      cuts += 1;
      const when = pending;
      pending = undefined;
      cut();
      if (when === 'after') socket.write(chunk);
      else socket.destroy();
    });
    socket.on('close', () => client.destroy());
    for (const end of [client, socket]) end.on('error', () => {});
  });
  return {
    ...(await listen(server, sockets)),
    cutNext(cut) {
      pending = cut;
    },
    cuts: () => cuts,
    messages: () => messages,
  };
}
