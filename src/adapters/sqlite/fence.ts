import { constants, type DatabaseSync } from 'node:sqlite';
import type { Relation } from './catalog.ts';
import { isControlName, PROBE_TABLE } from './control.ts';
import { ALLOWED_FUNCTIONS } from './functions.ts';
import { OBSERVED_PRAGMAS } from './snapshot.ts';

const { SQLITE_OK, SQLITE_DENY } = constants;

/**
 * What the fence has to know: the relations that may be written, and the names that people know
 * triggers by.
 */
export interface FenceRules {
  /** The registered relations. */
  readonly writable: ReadonlyMap<string, Relation>;
  /**
   * Writing to a view writes nothing by itself; what its INSTEAD OF triggers write is checked on
   * its own.
   */
  readonly views: ReadonlySet<string>;
  readonly triggers: ReadonlySet<string>;
  /** The admission probe writes to the adapter's own probe table. */
  readonly isProbe: boolean;
}

/**
 * What the fence saw: relations that may have been written, with the columns of updates, and what
 * it denied.
 */
export class FenceLog {
  readonly written = new Map<string, Written>();
  /**
   * The same in the order asked, so that a statement that is compiled once can be entered again
   * when it runs again.
   */
  readonly writes: Write[] = [];
  readonly denied: string[] = [];

  enter(write: Write): void {
    const { table, code, column } = write;
    const entry = this.written.get(table) ?? { inserted: false, updated: new Set<string>() };
    this.written.set(table, entry);
    if (code === constants.SQLITE_INSERT) entry.inserted = true;
    if (code === constants.SQLITE_UPDATE && column !== null) entry.updated.add(column);
    this.writes.push(write);
  }
}

export interface Written {
  inserted: boolean;
  readonly updated: Set<string>;
}

/** One write that a statement may do. */
export interface Write {
  readonly code: number;
  readonly table: string;
  readonly column: string | null;
}

/**
 * Puts an allow-list between SQLite's compiler and every statement of this connection: reading,
 * recursion, listed functions, and writes to registered relations. Everything else is denied,
 * including codes a later SQLite may add. SQLite asks for every statement, trigger program and
 * foreign-key action when it compiles them, so what was not asked for cannot run. The callback
 * never throws: an exception would surface as something other than a denial.
 *
 * It stands as long as the connection. SQLite compiles every statement again after an authorizer
 * was set, so it is set once, and what it lets through depends on whose turn it is: the action's,
 * nobody's, or ours.
 */
export class Fence {
  #turn: { readonly rules: FenceRules; readonly log: FenceLog } | 'nobody' | 'ours' = 'ours';
  #trespasses = 0;

  constructor(db: DatabaseSync) {
    db.setAuthorizer((code, first, second, schema, inner) => {
      const turn = this.#turn;
      if (turn === 'ours') return SQLITE_OK;
      if (turn === 'nobody') {
        if (isObserving(code, first, second)) return SQLITE_OK;
        this.#trespasses += 1;
        return SQLITE_DENY;
      }
      const what = judge({ code, first, second, schema }, turn.rules, turn.log);
      if (what === undefined) return SQLITE_OK;
      turn.log.denied.push(`${nameSource(inner, turn.rules)} ${what}`);
      return SQLITE_DENY;
    });
  }

  /** Statements of an action from here on. */
  raise(rules: FenceRules, log: FenceLog): void {
    this.#turn = { rules, log };
  }

  /**
   * Only what observes a candidate from here on: nothing that writes, sets, begins or ends can be
   * compiled.
   */
  hold(): void {
    this.#turn = 'nobody';
  }

  /** Statements of our own from here on. */
  lower(): void {
    this.#turn = 'ours';
  }

  /** How often something was denied while nobody had the turn. */
  get trespasses(): number {
    return this.#trespasses;
  }
}

/**
 * What reading rows and settings asks for, and what a session asks for when it makes a changeset.
 */
function isObserving(code: number, first: string | null, second: string | null): boolean {
  switch (code) {
    case constants.SQLITE_SELECT:
    case constants.SQLITE_RECURSIVE:
    case constants.SQLITE_READ:
    case constants.SQLITE_FUNCTION:
      return true;
    case constants.SQLITE_PRAGMA:
      return (
        first === 'table_xinfo' ||
        (second === null && first !== null && OBSERVED_PRAGMAS.has(first))
      );
    case constants.SQLITE_SAVEPOINT:
      return second === 'changeset';
    default:
      return false;
  }
}

interface Request {
  readonly code: number;
  readonly first: string | null;
  readonly second: string | null;
  readonly schema: string | null;
}

/** What the request would do that is not allowed; undefined where it is. */
function judge(request: Request, rules: FenceRules, log: FenceLog): string | undefined {
  const { code, first, second } = request;
  switch (code) {
    case constants.SQLITE_SELECT:
    case constants.SQLITE_RECURSIVE:
      return undefined;
    case constants.SQLITE_READ:
      return first !== null && isForeignControl(first, rules)
        ? `reads "${first}", ${OURS}`
        : undefined;
    case constants.SQLITE_FUNCTION:
      if (second !== null && ALLOWED_FUNCTIONS.has(second.toLowerCase())) return undefined;
      return `calls the function ${second ?? '?'}, which is not on the list of allowed functions`;
    case constants.SQLITE_INSERT:
    case constants.SQLITE_UPDATE:
    case constants.SQLITE_DELETE:
      return judgeWrite(request, rules, log);
    case constants.SQLITE_PRAGMA:
      // The session extension asks for the columns of a table when it is first written.
      if (first === 'table_xinfo' && second !== null && rules.writable.has(second))
        return undefined;
      return `uses PRAGMA ${first ?? '?'}, which agent SQL may not use`;
    case constants.SQLITE_TRANSACTION:
    case constants.SQLITE_SAVEPOINT:
      return `uses ${first ?? 'transaction control'}, but the transaction is not the agent’s to control`;
    default:
      return `uses ${STATEMENTS[code] ?? `an operation that SQLite calls ${code}`}, which is not allowed`;
  }
}

const OURS = 'which belongs to EffectMatch';

function judgeWrite(request: Request, rules: FenceRules, log: FenceLog): string | undefined {
  const { code, first, second, schema } = request;
  const table = first ?? '?';
  if (/^sqlite_(temp_)?(master|schema)$/i.test(table))
    return 'changes the schema, which is not allowed';
  if (isForeignControl(table, rules)) return `writes to "${table}", ${OURS}`;
  const relation = schema === 'main' ? rules.writable.get(table) : undefined;
  if (relation === undefined) {
    if (schema === 'main' && rules.views.has(table)) return undefined;
    return `writes to "${table}", which is not registered`;
  }
  const hiddenRowid = !relation.withoutRowid && relation.rowidAlias === undefined;
  if (code === constants.SQLITE_UPDATE && second === 'ROWID' && hiddenRowid) {
    return `changes the hidden rowid of "${table}", which no column shows`;
  }
  log.enter({ code, table, column: second });
  return undefined;
}

function isForeignControl(table: string, rules: FenceRules): boolean {
  return isControlName(table) && !(rules.isProbe && table === PROBE_TABLE);
}

/**
 * SQLite names the innermost trigger or view, and for common table expressions their name, which
 * helps nobody.
 */
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
