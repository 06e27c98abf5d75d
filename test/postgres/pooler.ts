// A pooler in one page: clients log in at the real server through it, and after that their messages
// go to server sessions as `share` says. Enough of the protocol to know when a login is over; one
// client speaks at a time.
import { connect, createServer, type Socket } from 'node:net';

/**
 * Which of the server sessions, in the order in which they were opened, the next messages of a
 * client go to.
 */
export type Sharing = (client: number, sessions: number, turn: number) => number;

const READY = 'Z'.charCodeAt(0);

/** Listens on a port of its own in front of a server. */
export async function startPooler(
  port: number,
  share: Sharing,
): Promise<AsyncDisposable & { readonly port: number }> {
  const sessions: Socket[] = [];
  const clients: Socket[] = [];
  let speaking: Socket | undefined;
  let turn = 0;

  const server = createServer((client) => {
    const number = clients.push(client) - 1;
    const session = connect(port, '127.0.0.1');
    let login = Buffer.alloc(0);
    let ready = false;
    session.on('data', (bytes) => {
      if (ready) {
        speaking?.write(bytes);
        return;
      }
      login = Buffer.concat([login, bytes]);
      ready = endsReady(login);
      if (ready) sessions.push(session);
      client.write(bytes);
    });
    client.on('data', (bytes) => {
      if (!ready) {
        session.write(bytes);
        return;
      }
      if (bytes[0] === 'X'.charCodeAt(0)) return; // a client that leaves takes no server session along
      speaking = client;
      sessions[share(number, sessions.length, turn)]?.write(bytes);
      turn += 1;
    });
    for (const socket of [client, session]) socket.on('error', () => {});
    client.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async [Symbol.asyncDispose]() {
      for (const socket of [...clients, ...sessions]) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Whether the messages of the server end with the one that says that it waits for a query. */
function endsReady(bytes: Buffer): boolean {
  let at = 0;
  let last = 0;
  while (at + 5 <= bytes.length) {
    last = bytes[at] ?? 0;
    at += 1 + bytes.readInt32BE(at + 1);
  }
  return at === bytes.length && last === READY;
}
