import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { breakMarkers } from '../../world/markers.ts';
import type { Backend } from './backend.ts';
import { sqliteBackend } from './sqlite.ts';

const intact = sqliteBackend('wal');

/** SQLite whose recovery finds no markers: a broken copy, which whoever kills processes must notice. */
export const unmarkedBackend: Backend = {
  ...intact,
  name: 'sqlite-unmarked',
  factory: (folder): AdapterFactory =>
    breakMarkers(intact.factory(folder), {
      find: async () => undefined,
      void: async () => ({ kind: 'inserted' }),
    }),
};
