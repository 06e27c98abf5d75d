import type { LedgersFactory } from '../contract/ledgers.ts';
import { demandPlace, isPostgresAddress } from '../contract/store-place.ts';
import { EffectMatchError } from '../errors.ts';
import { sqliteLedgers } from './sqlite/index.ts';

/** The ledger that a configuration names: a file, a PostgreSQL address, or a factory. */
export function ledgersOf(store: string | LedgersFactory): LedgersFactory {
  if (typeof store !== 'string') return store;
  demandPlace('store', store);
  if (!isPostgresAddress(store)) return sqliteLedgers(store);
  const load = async () => (await loadPostgres()).postgresLedgers(store);
  return {
    open: async (context) => (await load()).open(context),
    provisioning: async (admin, what) => (await load()).provisioning(admin, what),
    copyFrom: async (context, file) => (await load()).copyFrom(context, file),
    archive: async (admin, before) => (await load()).archive(admin, before),
  };
}

/** Loads the driver only when needed: it is an optional package. */
async function loadPostgres() {
  try {
    return await import('./postgres/index.ts');
  } catch (cause) {
    const what = 'store: a ledger in PostgreSQL needs the package pg; run `npm install pg`';
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', what, { cause });
  }
}
