// Opens the example of an adapter on LMDB, whose package is in a folder of `integrations`.
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AdapterFactory } from '../../src/contract/index.ts';
import { integration } from '../integration.ts';

const parentURL = pathToFileURL(join(integration('lmdb'), 'index.js')).href;
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, specifier === 'lmdb' ? { ...context, parentURL } : context),
});
// By its address: the compiler would look for the package. The test compiles it with the package.
const example = new URL('../../examples/lmdb-adapter/adapter.ts', import.meta.url).href;
const { lmdbTables } = (await import(example)) as {
  readonly lmdbTables: (options: object) => AdapterFactory;
};

const TABLES = {
  invoice: { columns: ['id', 'status', 'amount'], key: ['id'] },
  balance: { columns: ['account', 'period', 'amount'], key: ['account', 'period'] },
};

export default (file: string): AdapterFactory => lmdbTables({ file, tables: TABLES });
