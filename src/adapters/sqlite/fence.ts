import { constants, type DatabaseSync } from 'node:sqlite';
import { isControlName, PROBE_TABLE } from './control.ts';
import { ALLOWED_FUNCTIONS } from './functions.ts';

const { SQLITE_OK, SQLITE_DENY } = constants;

/** What the fence has to know: the relations that may be written, and the names that people know triggers by. */
export interface FenceRules {
  /** Registered relations; `hiddenRowid` where the rowid is no column and so would change unseen. */
  readonly writable: ReadonlyMap<string, { readonly hiddenRowid: boolean }>;
  /** Writing to a view writes nothing by itself; what its INSTEAD OF triggers write is checked on its own. */
  readonly views: ReadonlySet<string>;
  readonly triggers: ReadonlySet<string>;
  /** The admission probe writes to the adapter's own probe table. */
  readonly isProbe: boolean;
}

/** What the fence saw: relations that may have been written, with the columns of updates, and what it denied. */
export interface FenceLog {
  readonly written: ReadonlyMap<string, Written>;
  readonly denied: readonly string[];
}

export interface Written {
  inserted: boolean;
  readonly updated: Set<string>;
}

/**
 * Puts an allow-list between SQLite's compiler and every statement of this connection: reading, recursion, listed
 * functions, and writes to registered relations. Everything else is denied, including codes a later SQLite may add.
 * SQLite asks for every statement, trigger program and foreign-key action when it compiles them, so what was not
 * asked for cannot run. The callback never throws: an exception would surface as something other than a denial.
 */
export function raiseFence(db: DatabaseSync, rules: FenceRules): FenceLog {
  const written = new Map<string, Written>();
  const denied: string[] = [];
  db.setAuthorizer((code, first, second, schema, inner) => {
    const request = { code, first, second, schema };
    const what = judge(request, rules, written);
    if (what === undefined) return SQLITE_OK;
    denied.push(`${nameSource(inner, rules)} ${what}`);
    return SQLITE_DENY;
  });
  return { written, denied };
}

/** Takes the fence away for statements of our own. */
export function lowerFence(db: DatabaseSync): void {
  db.setAuthorizer(null);
}

interface Request {
  readonly code: number;
  readonly first: string | null;
  readonly second: string | null;
  readonly schema: string | null;
}

/** What the request would do that is not allowed; undefined where it is. */
function judge(request: Request, rules: FenceRules, written: Map<string, Written>): string | undefined {
  const { code, first, second } = request;
  switch (code) {
    case constants.SQLITE_SELECT:
    case constants.SQLITE_RECURSIVE:
      return undefined;
    case constants.SQLITE_READ:
      return first !== null && isForeignControl(first, rules) ? `reads "${first}", ${OURS}` : undefined;
    case constants.SQLITE_FUNCTION:
      if (second !== null && ALLOWED_FUNCTIONS.has(second.toLowerCase())) return undefined;
      return `calls the function ${second ?? '?'}, which is not on the list of allowed functions`;
    case constants.SQLITE_INSERT:
    case constants.SQLITE_UPDATE:
    case constants.SQLITE_DELETE:
      return judgeWrite(request, rules, written);
    case constants.SQLITE_PRAGMA:
      // The session extension asks for the columns of a table when it is first written.
      if (first === 'table_xinfo' && second !== null && rules.writable.has(second)) return undefined;
      return `uses PRAGMA ${first ?? '?'}, which agent SQL may not use`;
    case constants.SQLITE_TRANSACTION:
    case constants.SQLITE_SAVEPOINT:
      return `uses ${first ?? 'transaction control'}, but the transaction is not the agent’s to control`;
    default:
      return `uses ${STATEMENTS[code] ?? `an operation that SQLite calls ${code}`}, which is not allowed`;
  }
}

const OURS = 'which belongs to EffectMatch';

function judgeWrite(request: Request, rules: FenceRules, written: Map<string, Written>): string | undefined {
  const { code, first, second, schema } = request;
  const table = first ?? '?';
  if (/^sqlite_(temp_)?(master|schema)$/i.test(table)) return 'changes the schema, which is not allowed';
  if (isForeignControl(table, rules)) return `writes to "${table}", ${OURS}`;
  const rule = schema === 'main' ? rules.writable.get(table) : undefined;
  if (rule === undefined) {
    if (schema === 'main' && rules.views.has(table)) return undefined;
    return `writes to "${table}", which is not registered`;
  }
  if (code === constants.SQLITE_UPDATE && second === 'ROWID' && rule.hiddenRowid) {
    return `changes the hidden rowid of "${table}", which no column shows`;
  }
  const entry = written.get(table) ?? { inserted: false, updated: new Set<string>() };
  written.set(table, entry);
  if (code === constants.SQLITE_INSERT) entry.inserted = true;
  if (code === constants.SQLITE_UPDATE && second !== null) entry.updated.add(second);
  return undefined;
}

function isForeignControl(table: string, rules: FenceRules): boolean {
  return isControlName(table) && !(rules.isProbe && table === PROBE_TABLE);
}

/** SQLite names the innermost trigger or view, and for common table expressions their name, which helps nobody. */
function nameSource(inner: string | null, rules: FenceRules): string {
  if (inner !== null && rules.triggers.has(inner)) return `trigger "${inner}"`;
  if (inner !== null && rules.views.has(inner)) return `view "${inner}"`;
  return 'the statement';
}

const STATEMENTS: { readonly [code: number]: string } = {
  [constants.SQLITE_CREATE_INDEX]: 'CREATE INDEX',
  [constants.SQLITE_CREATE_TABLE]: 'CREATE TABLE',
  [constants.SQLITE_CREATE_TEMP_INDEX]: 'CREATE TEMP INDEX',
  [constants.SQLITE_CREATE_TEMP_TABLE]: 'CREATE TEMP TABLE',
  [constants.SQLITE_CREATE_TEMP_TRIGGER]: 'CREATE TEMP TRIGGER',
  [constants.SQLITE_CREATE_TEMP_VIEW]: 'CREATE TEMP VIEW',
  [constants.SQLITE_CREATE_TRIGGER]: 'CREATE TRIGGER',
  [constants.SQLITE_CREATE_VIEW]: 'CREATE VIEW',
  [constants.SQLITE_DROP_INDEX]: 'DROP INDEX',
  [constants.SQLITE_DROP_TABLE]: 'DROP TABLE',
  [constants.SQLITE_DROP_TEMP_INDEX]: 'DROP INDEX',
  [constants.SQLITE_DROP_TEMP_TABLE]: 'DROP TABLE',
  [constants.SQLITE_DROP_TEMP_TRIGGER]: 'DROP TRIGGER',
  [constants.SQLITE_DROP_TEMP_VIEW]: 'DROP VIEW',
  [constants.SQLITE_DROP_TRIGGER]: 'DROP TRIGGER',
  [constants.SQLITE_DROP_VIEW]: 'DROP VIEW',
  [constants.SQLITE_ATTACH]: 'ATTACH',
  [constants.SQLITE_DETACH]: 'DETACH',
  [constants.SQLITE_ALTER_TABLE]: 'ALTER TABLE',
  [constants.SQLITE_REINDEX]: 'REINDEX',
  [constants.SQLITE_ANALYZE]: 'ANALYZE',
  [constants.SQLITE_CREATE_VTABLE]: 'CREATE VIRTUAL TABLE',
  [constants.SQLITE_DROP_VTABLE]: 'DROP TABLE',
};
