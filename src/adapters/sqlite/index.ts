/** Adapter for SQLite: agent SQL runs in a held transaction, behind an allow-list. @module */
import '../../node-version.ts';

import type { AdapterFactory } from '../../contract/adapter.ts';
import type { CheckedSqliteAction } from './action.ts';
import { openAdapter } from './adapter.ts';
import type { SqliteOptions } from './admission.ts';

export type { CheckedSqliteAction, SqliteAction, SqliteStatement, SqliteValue } from './action.ts';
export type { SqliteOptions, SqliteRelationOption } from './admission.ts';

/**
 * Protects writes to an existing SQLite file. Agent SQL runs in a held transaction behind an
 * allow-list, a session reports its net changes, and exactly that transaction commits together with
 * its marker.
 */
export function sqlite(options: SqliteOptions): AdapterFactory<CheckedSqliteAction> {
  return { open: async (context) => await openAdapter(options, context) };
}
