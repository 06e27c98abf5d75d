import type { LedgerContext, Ledgers } from '../../src/contract/ledgers.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import type { LedgerKit, LedgerStore } from '../../src/testing/ledger-conformance.ts';
import { freshDatabase, type TestDatabase } from '../postgres/server.ts';

interface Location {
  readonly url: string;
  readonly schema: string;
}

/** How processes of their own open the store; see `LedgerKit.module`. */
export async function openLedgers(location: string, context: LedgerContext): Promise<Ledgers> {
  const { url, schema } = JSON.parse(location) as Location;
  return await postgresLedgers(url, { schema }).open(context);
}

let database: Promise<TestDatabase> | undefined;
let schemas = 0;

/** The database of this test file; every store has a schema in it. */
export function ledgerDatabase(): Promise<TestDatabase> {
  database ??= freshDatabase();
  return database;
}

/** A store in a schema of its own, which is its location's `schema`. */
export async function createStore(): Promise<LedgerStore & Location> {
  const db = await ledgerDatabase();
  schemas += 1;
  const schema = db.role(`ledger${schemas}`);
  const url = db.url(db.role(`appender${schemas}`));
  const factory = postgresLedgers(url, { schema });
  const provisioning = async (what: 'provision' | 'remove') => {
    await (await factory.provisioning?.(db.url(), what))?.apply();
  };
  await provisioning('provision');
  return {
    url,
    schema,
    location: JSON.stringify({ url, schema }),
    open: (context) => factory.open(context),
    remove: () => provisioning('remove'),
  };
}

export const postgresKit: LedgerKit = {
  durable: true,
  shared: true,
  module: new URL(import.meta.url),
  create: createStore,
};
