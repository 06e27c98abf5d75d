import { constants, type DatabaseSync } from '../../sqlite/engine.ts';
import type { SqliteRelation } from './catalog.ts';
import { isControlName, PROBE_TABLE } from './control.ts';
import { OBSERVED_PRAGMAS } from './snapshot.ts';

const { SQLITE_OK, SQLITE_DENY } = constants;

/** What the fence needs: the writable relations, and the names of views and triggers. */
export interface FenceRules {
  /** The registered relations. */
  readonly writable: ReadonlyMap<string, SqliteRelation>;
  /**
   * A write to a view writes nothing itself. The writes of its INSTEAD OF triggers are checked
   * separately.
   */
  readonly views: ReadonlySet<string>;
  readonly triggers: ReadonlySet<string>;
  /** Whether this is the admission probe, which writes to the adapter's own probe table. */
  readonly isProbe: boolean;
}

/** What the fence saw: relations that may have been written, the updated columns, and denials. */
export class FenceLog {
  readonly written = new Map<string, Written>();
  /**
   * The same writes in order, so that a compiled statement can log them again when it is reused.
   */
  readonly writes: CompiledWrite[] = [];
  readonly denied: string[] = [];

  /** Forgets the denials of a call that was undone. */
  forgetDenied(): void {
    this.denied.length = 0;
  }

  enter(write: CompiledWrite): void {
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

/** One write that a statement may perform. */
export interface CompiledWrite {
  readonly code: number;
  readonly table: string;
  readonly column: string | null;
}

/**
 * Whose statements may compile: those of an action, by its rules; none, so that a candidate can
 * only be observed (a statement that writes, sets a pragma, or begins or ends a transaction does not
 * compile); or all of ours.
 */
export type Turn = { readonly rules: FenceRules; readonly log: FenceLog } | 'none' | 'ours';

/**
 * Puts an allow-list between SQLite's compiler and every statement of this connection: reads,
 * recursion, listed functions, and writes to registered relations. It denies everything else,
 * including codes that a later SQLite may add. SQLite asks when it compiles a statement, trigger
 * program or foreign-key action, so nothing can run without being asked about. The callback never
 * throws: an exception would not look like a denial.
 *
 * The fence lasts as long as the connection. Setting an authorizer makes SQLite recompile every
 * statement, so it is set only once. What it allows depends on the current turn.
 */
export class Fence {
  turn: Turn = 'ours';
  /** The number of denials while a candidate was held. */
  trespasses = 0;

  constructor(db: DatabaseSync) {
    db.setAuthorizer((code, first, second, schema, inner) => {
      const { turn } = this;
      if (turn === 'ours') return SQLITE_OK;
      if (turn === 'none') {
        if (isObserving(code, first, second)) return SQLITE_OK;
        this.trespasses += 1;
        return SQLITE_DENY;
      }
      const what = judge({ code, first, second, schema }, turn.rules, turn.log);
      if (what === undefined) return SQLITE_OK;
      turn.log.denied.push(`${nameSource(inner, turn.rules)} ${what}`);
      return SQLITE_DENY;
    });
  }
}

/** The requests made by reading rows and settings, and by a session that creates a changeset. */
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

/** Why the request is not allowed; undefined if it is. */
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
      // The session extension reads the columns of a table when it is first written.
      if (first === 'table_xinfo' && second !== null && rules.writable.has(second))
        return undefined;
      return `uses PRAGMA ${first ?? '?'}, which agent SQL may not use`;
    case constants.SQLITE_TRANSACTION:
    case constants.SQLITE_SAVEPOINT:
      return `uses ${first ?? 'transaction control'}, but the transaction is not the agent’s to control`;
    default:
      return `uses ${STATEMENTS.get(code) ?? `an operation that SQLite calls ${code}`}, which is not allowed`;
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
 * SQLite names the innermost trigger or view. For a common table expression it gives that name,
 * which means nothing to a reader.
 */
function nameSource(inner: string | null, rules: FenceRules): string {
  if (inner !== null && rules.triggers.has(inner)) return `trigger "${inner}"`;
  if (inner !== null && rules.views.has(inner)) return `view "${inner}"`;
  return 'the statement';
}

/** SQLite's names for statements that change a schema, by authorizer code. */
const STATEMENTS = new Map(
  Object.entries(constants)
    .filter(([name]) => /^SQLITE_(CREATE|DROP|ALTER|ATTACH|DETACH|REINDEX|ANALYZE)/.test(name))
    .map(([name, code]) => [code, name.slice('SQLITE_'.length).replaceAll('_', ' ')]),
);

/**
 * Functions that agent SQL, and the triggers and views it uses, may call. They are built in and
 * have no effect outside the statement. This is an allow-list, so that functions from a later
 * SQLite, an extension or a virtual table stay denied until they are reviewed. `load_extension`,
 * `fts3_tokenizer` and `sqlite_log` are left out because they reach outside the database;
 * `optimize` and the other full-text functions can write. `changes`, `last_insert_rowid` and
 * `total_changes` may describe an earlier action until the first write. Their effects are observed
 * like any others.
 */
export const ALLOWED_FUNCTIONS: ReadonlySet<string> = new Set(
  `-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling changes char coalesce concat concat_ws cos cosh
  count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
  format glob group_concat hex if ifnull iif instr json json_array json_array_insert json_array_length
  json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty
  json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract
  jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
  julianday lag last_insert_rowid last_value lead length like likelihood likely ln log log10 log2 lower ltrim max median
  min mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont percentile_disc pi pow power
  printf quote radians random randomblob rank replace round row_number rtrim sign sin sinh sqlite_source_id
  sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total total_changes trim
  trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob`.split(/\s+/),
);
