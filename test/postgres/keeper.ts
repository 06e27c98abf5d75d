// The process between a test and its PostgreSQL. It is the parent of the server, and it ends the
// server and removes the folder when the channel to its owner closes: the one thing that happens
// however the owner ends, by SIGKILL too. It has a session of its own, so Ctrl-C in a terminal does
// not reach it before it has done that.
import type { Version } from './binaries.ts';
import { Cluster, type Settings } from './cluster.ts';

/** What the owner asks for. */
export type KeeperOrder =
  | {
      readonly kind: 'create';
      readonly version: Version;
      readonly settings: Settings;
      readonly bin?: string;
    }
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

let cluster: Cluster | undefined;
let leaving = false;

async function leave(): Promise<void> {
  if (leaving) return;
  leaving = true;
  await cluster?.remove();
  process.exit(0);
}

async function obey(order: KeeperOrder): Promise<void> {
  switch (order.kind) {
    case 'create':
      cluster = new Cluster();
      return cluster.create(order.version, order.settings, order.bin);
    case 'start':
      return cluster?.start();
    case 'shutdown':
      return cluster?.shutdown();
    case 'crash':
      return cluster?.crash();
  }
}

function answer(message: KeeperAnswer): void {
  if (process.connected) process.send?.(message);
}

let turn = Promise.resolve();
process.on('message', (order: KeeperOrder) => {
  turn = turn.then(async () => {
    try {
      await obey(order);
      const { port = 0, folder = '', socketFolder = '', pid } = cluster ?? {};
      answer({ kind: 'done', port, folder, socketFolder, pid });
    } catch (error) {
      answer({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
    }
  });
});
process.on('disconnect', leave);
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, leave);
