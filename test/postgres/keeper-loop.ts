// The process between a test and its server. It is the parent of the server, and it ends the server
// and removes the folder when the channel to its owner closes: the one thing that happens however the
// owner ends, by SIGKILL too. It has a session of its own, so Ctrl-C in a terminal does not reach it
// before it has done that.

/** What the owner asks for; `create` comes first and says which server. */
export type KeeperOrder<Create> =
  | ({ readonly kind: 'create' } & Create)
  | { readonly kind: 'start' | 'shutdown' | 'crash' };

/** What the keeper answers, in the order of the orders. */
export type KeeperAnswer =
  | {
      readonly kind: 'done';
      readonly port: number;
      readonly folder: string;
      readonly socketFolder: string;
      readonly pid: number | undefined;
    }
  | { readonly kind: 'failed'; readonly message: string };

/** A data folder with, most of the time, a server running on it. */
export interface KeptServer<Create> {
  readonly port: number;
  readonly folder: string;
  readonly socketFolder: string;
  readonly pid: number | undefined;
  create(order: Create): Promise<void>;
  start(): Promise<void>;
  shutdown(): Promise<void>;
  crash(): Promise<void>;
  remove(): Promise<void>;
}

/** Obeys the owner's orders, one after another, until the channel closes. */
export function keep<Create>(open: () => KeptServer<Create>): void {
  let server: KeptServer<Create> | undefined;
  let leaving = false;

  async function leave(): Promise<void> {
    if (leaving) return;
    leaving = true;
    await server?.remove();
    process.exit(0);
  }

  async function obey(order: KeeperOrder<Create>): Promise<void> {
    if (order.kind === 'create') {
      server = open();
      return server.create(order);
    }
    await server?.[order.kind]();
  }

  function answer(message: KeeperAnswer): void {
    if (process.connected) process.send?.(message);
  }

  let turn = Promise.resolve();
  process.on('message', (order: KeeperOrder<Create>) => {
    turn = turn.then(async () => {
      try {
        await obey(order);
        const { port = 0, folder = '', socketFolder = '', pid } = server ?? {};
        answer({ kind: 'done', port, folder, socketFolder, pid });
      } catch (error) {
        answer({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
      }
    });
  });
  process.on('disconnect', leave);
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, leave);
}
