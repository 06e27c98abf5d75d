import { EffectMatchError } from '../../errors.ts';
import { sqlName } from '../../postgres/identifier.ts';

/**
 * What the gate makes of a text: a statement that may be tried, with its highest parameter and
 * whether it returns rows, or what it is instead.
 */
type StatementFinding =
  | { readonly kind: 'admitted'; readonly parameters: number; readonly returnsRows: boolean }
  | Refused;

interface Refused {
  readonly kind: 'refused';
  readonly why: string;
}

/** A text divided into its statements, without what comes between them. */
interface Script {
  readonly kind: 'script';
  readonly statements: readonly string[];
}

/**
 * Reads SQL with PostgreSQL's own grammar. This is for admission and display: it keeps mistakes and
 * plain abuse out early and in readable words. It is never the safety argument, because functions,
 * triggers and text that is executed inside the database are beyond any parser; the rights of the
 * execution login and the witnesses of the stage are.
 */
export interface StatementGate {
  /** `procedures` are the targets that a CALL may name. */
  check(sql: string, procedures: ReadonlySet<string>): StatementFinding;
  /** The statements of a script, where the grammar ends each of them. */
  split(script: string): Script | Refused;
}

let loading: Promise<StatementGate> | undefined;

/** Loads the parser once; from then on checks are synchronous. */
export function loadGate(): Promise<StatementGate> {
  loading ??= openGate().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function openGate(): Promise<StatementGate> {
  let parser: typeof import('libpg-query');
  try {
    parser = await import('libpg-query');
    await parser.loadModule();
  } catch (cause) {
    const what =
      'postgres: the parser for statements could not be loaded; install the package libpg-query';
    throw new EffectMatchError('ERR_EM_ADAPTER_REFUSED', what, { cause });
  }
  const parse: Parse = (text) => parser.parseSync(text);
  return rememberFindings({
    check: (sql, procedures) => checkText(parse, sql, procedures),
    split: (script) => splitText(parse, script),
  });
}

const REMEMBERED_MAX = 500;
const REMEMBERED_CHARACTERS_MAX = 10_000;

/**
 * Agents send the same few texts with other values, and a finding depends on text and procedures
 * alone.
 */
function rememberFindings(gate: StatementGate): StatementGate {
  const known = new Map<
    string,
    { readonly procedures: ReadonlySet<string>; readonly finding: StatementFinding }
  >();
  return {
    split: (script) => gate.split(script),
    check(sql, procedures) {
      const remembered = known.get(sql);
      if (remembered?.procedures === procedures) return remembered.finding;
      const finding = gate.check(sql, procedures);
      if (sql.length > REMEMBERED_CHARACTERS_MAX) return finding;
      const [oldest] = known.keys();
      if (known.size >= REMEMBERED_MAX && oldest !== undefined) known.delete(oldest);
      known.set(sql, { procedures, finding });
      return finding;
    },
  };
}

/**
 * A node of the syntax tree: plain data whose keys are node or field names, never text of the
 * statement.
 */
type Node = { readonly [field: string]: unknown };

/** Throws if the text does not parse. */
type Parse = (sql: string) => unknown;

/** One statement of a parsed text. Offsets are in bytes; without a length it reaches to the end. */
interface ParsedStatement {
  readonly stmt?: Node;
  readonly stmt_location?: number;
  readonly stmt_len?: number;
}

function parseStatements(parse: Parse, sql: string): readonly ParsedStatement[] {
  const { stmts = [] } = parse(sql) as { readonly stmts?: readonly ParsedStatement[] };
  return stmts;
}

function splitText(parse: Parse, script: string): Script | Refused {
  try {
    const bytes = Buffer.from(script);
    const statements = parseStatements(parse, script).map(({ stmt_location = 0, stmt_len }) => {
      const end = stmt_len === undefined ? bytes.length : stmt_location + stmt_len;
      return bytes.toString('utf8', stmt_location, end).trim();
    });
    return { kind: 'script', statements };
  } catch (error) {
    return refuseUnparsed(error);
  }
}

function refuseUnparsed(error: unknown): Refused {
  if (error instanceof RangeError) return refused('it is nested too deeply');
  return refused(`it cannot be parsed: ${error instanceof Error ? error.message : String(error)}`);
}

function checkText(parse: Parse, sql: string, procedures: ReadonlySet<string>): StatementFinding {
  try {
    const stmts = parseStatements(parse, sql);
    const [only] = stmts;
    if (stmts.length > 1)
      return refused(`it has ${stmts.length} statements; submit them as a list of statements`);
    const [kind, content] = Object.entries(only?.stmt ?? {})[0] ?? [];
    if (kind === undefined) return refused('it has no statement');
    if (kind !== 'CallStmt')
      return new Walk().read(only?.stmt ?? {}, returnsRows(kind, content as Node));
    const name = readName((content as { readonly funccall: Node }).funccall.funcname);
    if (!procedures.has(name))
      return refused(`CALL of ${name} is not admitted: it is not a registered entry point`);
    return new Walk().read((content as Node).funccall as Node, true);
  } catch (error) {
    return refuseUnparsed(error);
  }
}

function returnsRows(kind: string, { returningClause, returningList }: Node): boolean {
  return kind === 'SelectStmt' || returningClause !== undefined || returningList !== undefined;
}

const ADMITTED = new Set(['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt']);

/**
 * Looks at every node of a statement, however deep: common table expressions, subqueries, RETURNING
 * lists.
 */
class Walk {
  #parameters = 0;
  #why: string | undefined;

  read(root: Node, returnsRows: boolean): StatementFinding {
    this.#visit(root);
    return this.#why === undefined
      ? { kind: 'admitted', parameters: this.#parameters, returnsRows }
      : refused(this.#why);
  }

  #visit(node: unknown): void {
    if (this.#why !== undefined || typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) {
      for (const item of node) this.#visit(item);
      return;
    }
    this.#judge(node as Node);
    for (const [field, inner] of Object.entries(node)) {
      if (/^[A-Z]\w*Stmt$/.test(field) && !ADMITTED.has(field))
        this.#why ??= describeStatement(field, inner as Node);
      this.#visit(inner);
    }
  }

  #judge(node: Node): void {
    if (node.intoClause !== undefined)
      this.#why ??= 'SELECT INTO is not admitted: it creates a table';
    if (node.schemaname === 'effectmatch')
      this.#why ??= 'a table of the schema effectmatch is not admitted: it is not for operations';
    if (Array.isArray(node.funcname)) this.#why ??= judgeFunction(node.funcname);
    const parameter = (node.ParamRef as Node | undefined)?.number;
    if (typeof parameter === 'number') this.#parameters = Math.max(this.#parameters, parameter);
  }
}

/** What a refused statement is called in SQL, from the name of its node. */
function describeStatement(node: string, content: Node): string {
  const known: Readonly<Record<string, string>> = {
    ConstraintsSetStmt: 'SET CONSTRAINTS',
    CreateStmt: 'CREATE TABLE',
    DefineStmt: 'CREATE',
    DropdbStmt: 'DROP DATABASE',
    IndexStmt: 'CREATE INDEX',
    LoadStmt: 'LOAD',
    RuleStmt: 'CREATE RULE',
    VariableSetStmt: 'SET',
    VariableShowStmt: 'SHOW',
    ViewStmt: 'CREATE VIEW',
  };
  const words = node.slice(0, -'Stmt'.length).replace(/(?<=[a-z])(?=[A-Z])/g, ' ');
  const kind =
    node === 'TransactionStmt'
      ? String(content.kind).replace('TRANS_STMT_', '').replaceAll('_', ' ')
      : words;
  return `${known[node] ?? kind.toUpperCase()} is not admitted; only SELECT, INSERT, UPDATE, DELETE and MERGE are`;
}

/**
 * Built-ins that act beyond the transaction or execute text. Their rights are revoked as well; this
 * says it earlier.
 */
const OUTSIDE = new RegExp(
  `^(?:${[
    'pg_notify|set_config|setseed|pg_logical_emit_message|pg_export_snapshot|pg_sleep\\w*',
    'nextval|setval|currval|lastval',
    'lo_\\w+|loread|lowrite|pg_read_\\w+|pg_ls_\\w+|pg_stat_file|pg_file_\\w+',
    'pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_rotate_logfile|pg_promote|pg_log_\\w+',
    'pg_(?:try_)?advisory_\\w+|pg_stat_reset\\w*|pg_stat_force_next_flush',
    'pg_switch_wal|pg_create_\\w+|pg_drop_\\w+|pg_copy_\\w+|pg_backup_\\w+|pg_wal_replay_\\w+|pg_replication_\\w+',
    'pg_logical_slot_\\w+|pg_sync_\\w+|binary_upgrade_\\w+|pg_import_system_collations',
    '(?:query|table|cursor|schema|database)_to_xml\\w*|ts_stat|ts_rewrite',
  ].join('|')})$`,
);

function judgeFunction(funcname: readonly unknown[]): string | undefined {
  const parts = funcname.map(readPart);
  const name = parts.at(-1) ?? '';
  const schema = parts.at(-2) ?? 'pg_catalog';
  if (schema === 'effectmatch')
    return 'a function of the schema effectmatch is not admitted: it is not for operations';
  const outside = schema === 'pg_catalog' ? OUTSIDE.test(name) : false;
  return outside || name.startsWith('dblink')
    ? `${name}() is not admitted: it acts outside the transaction`
    : undefined;
}

/** A name as registrations have it. */
function readName(funcname: unknown): string {
  const parts = Array.isArray(funcname) ? funcname.map(readPart) : [];
  const [schema, name] = parts.length === 1 ? ['public', parts[0]] : parts;
  return sqlName({ schema: schema ?? '', name: name ?? '' });
}

function readPart(node: unknown): string {
  return String((node as { readonly String?: { readonly sval?: unknown } }).String?.sval ?? '');
}

function refused(why: string): Refused {
  return { kind: 'refused', why };
}
