import type * as sqlite from 'node:sqlite';

/**
 * SQLite as Node has it. Not imported statically: on a Node without it, the import would fail before
 * the entry points can say which Node is needed.
 */
export const { DatabaseSync, constants } = process.getBuiltinModule('node:sqlite');
export type DatabaseSync = sqlite.DatabaseSync;
