import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LedgerContext, Ledgers } from '../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import type { LedgerKit } from '../../src/testing/ledger-conformance.ts';

/** How processes of their own open the store; see `LedgerKit.module`. */
export async function openLedgers(location: string, context: LedgerContext): Promise<Ledgers> {
  return await sqliteLedgers(location).open(context);
}

/** A folder of its own under the system's temporary folder, removed with everything in it. */
export async function temporaryFolder(): Promise<
  AsyncDisposable & { readonly path: string; remove(): Promise<void> }
> {
  const path = await mkdtemp(join(tmpdir(), 'effectmatch-ledger-'));
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true });
  return { path, remove, [Symbol.asyncDispose]: remove };
}

export const sqliteKit: LedgerKit = {
  durable: true,
  shared: true,
  module: new URL(import.meta.url),
  async create() {
    const folder = await temporaryFolder();
    const location = join(folder.path, 'ledger.db');
    return { location, open: (context) => openLedgers(location, context), remove: folder.remove };
  },
};
