import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Ledgers } from '../contract/ledgers.ts';
import type { Sealer } from '../contract/seal.ts';
import { digestText } from '../crypto/digest.ts';
import { type Keyring, loadKeyring, openKeyring } from '../crypto/keyring.ts';
import { createSealer } from '../crypto/seal.ts';
import { sqliteLedgers } from '../ledger/sqlite/index.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { GuidedError } from './guided-error.ts';

/** A deployment's records, without its backends. */
export interface Store extends AsyncDisposable {
  readonly ledgers: Ledgers;
  readonly sealer: Sealer;
  readonly keyring: Keyring;
}

/**
 * Opens keyring and store and nothing else: no adapter is opened, and what does not exist is not
 * created.
 */
export async function openStore(config: RuntimeConfig): Promise<Store> {
  assertPresent(config);
  return await openOrMakeStore(config);
}

/**
 * The same for verbs that begin a deployment's records: a store that does not exist is made, a
 * keyring is not.
 */
export async function openOrMakeStore(config: RuntimeConfig): Promise<Store> {
  assertKeyring(config);
  const keyring = openPresentKeyring(config);
  const sealer = createSealer(keyring);
  const factory = typeof config.store === 'string' ? sqliteLedgers(config.store) : config.store;
  const ledgers = await factory.open({ sealer, digest: digestText });
  return { ledgers, sealer, keyring, [Symbol.asyncDispose]: () => ledgers.close() };
}

/**
 * A deployment that has run once has a keyring and a store. Without them a path is wrong, or
 * nothing ever ran.
 */
export function assertPresent(config: RuntimeConfig): void {
  assertKeyring(config);
  const store = typeof config.store === 'string' ? config.store : config.store.file;
  if (store !== undefined && !existsSync(store)) throw absent('store', store);
}

/**
 * Verbs that begin a deployment's records make the store, but no keys: a second keyring could not
 * read the first's.
 */
export function assertKeyring({ keyring }: RuntimeConfig): void {
  if (typeof keyring === 'string' && !existsSync(keyring)) throw absent('keyring', keyring);
}

function openPresentKeyring({ keyring }: RuntimeConfig): Keyring {
  return typeof keyring === 'string' ? loadKeyring(keyring) : openKeyring(keyring);
}

const MAKERS = {
  keyring:
    '`effectmatch init` makes one, and so does an application the first time it calls createRuntime',
  store:
    '`effectmatch plan` and `run` make it, and so does an application the first time it calls createRuntime',
};

function absent(what: keyof typeof MAKERS, path: string): GuidedError<'ERR_EM_NOT_FOUND'> {
  return new GuidedError(
    'ERR_EM_NOT_FOUND',
    `there is no ${what} at ${resolve(path)}, and this verb does not create one; nothing was done`,
    `check \`${what}\` in the configuration; ${MAKERS[what]}`,
  );
}
