import type * as sqlite from 'node:sqlite';

/**
 * Node's SQLite. It is not a static import: without SQLite in Node, that would fail before the
 * entry points can say which version of Node is needed.
 */
export const { DatabaseSync, constants } = process.getBuiltinModule('node:sqlite');
export type DatabaseSync = sqlite.DatabaseSync;
