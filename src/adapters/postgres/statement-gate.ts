import { setFlagsFromString } from 'node:v8';
import { EffectMatchError, messageOf } from '../../errors.ts';
import { sqlName } from '../../postgres/identifier.ts';
import { actsOutside, SESSION_STATE } from './certify/builtins.ts';
import { type NameReading, readNames } from './gate/names.ts';
import { type GateCatalog, refuseNames } from './gate/resolve.ts';

/**
 * The gate's finding about a text: an admitted statement, with the number of its highest parameter
 * and whether it returns rows, or a refusal.
 */
type StatementFinding =
  | { readonly kind: 'admitted'; readonly parameters: number; readonly returnsRows: boolean }
  | Refused;

interface Refused {
  readonly kind: 'refused';
  readonly why: string;
}

/** A text split into its statements. */
interface Script {
  readonly kind: 'script';
  readonly statements: readonly string[];
}

/**
 * Checks SQL with PostgreSQL's own grammar. With the server boundary this is for admission and
 * display: it catches mistakes and plain abuse early, with readable messages, while safety rests on
 * the rights of the execution login and the evidence of the stage. With the managed boundary,
 * safety rests on the gate as well. Rights cannot close the server's own functions there, so the
 * gate looks up every name of a statement in the catalogue.
 */
export interface StatementGate {
  /**
   * `procedures` contains the targets that a CALL may name. With a catalogue, every name must refer
   * to something certified in it.
   */
  check(
    sql: string,
    procedures: Pick<ReadonlySet<string>, 'has'>,
    catalog?: GateCatalog,
  ): StatementFinding;
  /** Splits a script where the grammar ends each statement. */
  split(script: string): Script | Refused;
}

const REMEMBERED_MAX = 500;
const REMEMBERED_CHARACTERS_MAX = 10_000;

/**
 * Loads a parser. Checks are synchronous after that. `major` requires the grammar of that server
 * version: in a later one, the same text can be a different statement.
 */
export async function loadGate(major?: string): Promise<StatementGate> {
  const parse = major === undefined ? await loadParser('libpg-query') : await loadGrammar(major);
  // Agents send the same few texts with different values.
  const known = new Map<string, ReadText>();
  const judged = new WeakMap<GateCatalog, Map<ReadText, string | undefined>>();
  return {
    split: (script) => splitText(parse, script),
    check(sql, procedures, catalog) {
      const read = known.get(sql) ?? readText(parse, sql);
      if (known.size >= REMEMBERED_MAX) known.clear();
      if (sql.length <= REMEMBERED_CHARACTERS_MAX) known.set(sql, read);
      const { procedure, finding } = read;
      if (procedure !== undefined && !procedures.has(procedure))
        return refused(`CALL of ${procedure} is not admitted: it is not a registered entry point`);
      if (catalog === undefined || finding.kind === 'refused') return finding;
      const why = judgeOnce(judged, catalog, read);
      return why === undefined ? finding : refused(why);
    },
  };
}

/** Judges a text once per catalogue. A changed catalogue is a new object. */
function judgeOnce(
  judged: WeakMap<GateCatalog, Map<ReadText, string | undefined>>,
  catalog: GateCatalog,
  read: ReadText,
): string | undefined {
  const known = judged.get(catalog) ?? new Map<ReadText, string | undefined>();
  judged.set(catalog, known);
  if (known.has(read)) return known.get(read);
  const { names } = read;
  const why = names?.kind === 'names' ? refuseNames(names.names, catalog) : unread(names);
  if (known.size >= REMEMBERED_MAX) known.clear();
  known.set(read, why);
  return why;
}

function unread(names: Extract<NameReading, { kind: 'unknown' }> | undefined): string {
  return names?.why ?? 'its names cannot be read';
}

const NOT_LOADED =
  'postgres: the parser for statements could not be loaded; install the package libpg-query';

/** Loads a parser by package name. */
async function loadParser(name: string): Promise<Parse> {
  try {
    const parser = (await import(name)) as typeof import('libpg-query');
    await loadSmall(parser);
    return (sql) => (parser.parseSync(sql) as ReturnType<Parse>) ?? {};
  } catch (cause) {
    throw new EffectMatchError('ERR_EM_ADAPTER_REFUSED', NOT_LOADED, { cause });
  }
}

const OPTIMISING = ['wasm-tier-up', 'wasm-dynamic-tiering'];

/**
 * Loads the parser without letting V8 optimise it. After a few statements V8 would optimise its
 * largest function, which takes more than 500 MB for some seconds and makes parsing no faster. The
 * flags apply when a module is compiled, so the application's modules are optimised as usual. Flags
 * that the process was started with are left alone.
 */
async function loadSmall(
  parser: Pick<typeof import('libpg-query'), 'loadModule' | 'parseSync'>,
): Promise<void> {
  const isAsked = process.execArgv.some((flag) => /wasm|liftoff/.test(flag));
  const flags = isAsked ? [] : OPTIMISING;
  for (const flag of flags) setFlagsFromString(`--no-${flag}`);
  try {
    await parser.loadModule();
    parser.parseSync('select 1');
  } finally {
    for (const flag of flags) setFlagsFromString(`--${flag}`);
  }
}

/** Loads the parser for one server version, under its usual name or under an alias. */
async function loadGrammar(major: string): Promise<Parse> {
  for (const name of [`libpg-query-${major}`, 'libpg-query']) {
    const parse = await loadParser(name).catch(() => undefined);
    const { version = 0 } = parse?.('select 1') ?? {};
    if (parse !== undefined && Math.floor(version / 10_000) === Number(major)) return parse;
  }
  throw new EffectMatchError(
    'ERR_EM_ADAPTER_REFUSED',
    `postgres: the managed boundary needs the grammar of PostgreSQL ${major}, and the installed parser has another; ` +
      `run \`npm install libpg-query@${major}\`, or for several servers \`npm install libpg-query-${major}@npm:libpg-query@${major}\``,
  );
}

/** The finding about one text, and the procedure if it is a CALL. */
interface ReadText {
  readonly finding: StatementFinding;
  readonly procedure?: string;
  readonly names?: NameReading;
}

/**
 * A node of the syntax tree: plain data whose keys are node or field names, never text of the
 * statement.
 */
type Node = { readonly [field: string]: unknown };

/**
 * One statement of a parsed text. Offsets are in bytes. Without a length, it extends to the end.
 */
interface ParsedStatement {
  readonly stmt?: Node;
  readonly stmt_location?: number;
  readonly stmt_len?: number;
}

/** Throws if the text does not parse. */
type Parse = (sql: string) => {
  readonly version?: number;
  readonly stmts?: readonly ParsedStatement[];
};

function splitText(parse: Parse, script: string): Script | Refused {
  try {
    const bytes = Buffer.from(script);
    const { stmts = [] } = parse(script);
    const statements = stmts.map(({ stmt_location = 0, stmt_len }) => {
      const end = stmt_len === undefined ? bytes.length : stmt_location + stmt_len;
      return bytes.toString('utf8', stmt_location, end).trim();
    });
    return { kind: 'script', statements };
  } catch (error) {
    return refuseUnparsed(error, script);
  }
}

function refuseUnparsed(error: unknown, sql: string): Refused {
  if (error instanceof RangeError) return refused('it is nested too deeply');
  const what = messageOf(error);
  return refused(`it cannot be parsed: ${what}${lineOf(error, sql)}`);
}

/** The line where the parser stopped, if the text has several. */
function lineOf(error: unknown, sql: string): string {
  const { sqlDetails } = error as { sqlDetails?: { readonly cursorPosition: number } };
  if (sqlDetails === undefined || !sql.includes('\n')) return '';
  const line = sql.slice(0, sqlDetails.cursorPosition).split('\n').length;
  return ` in line ${line}`;
}

function readText(parse: Parse, sql: string): ReadText {
  try {
    const { stmts = [] } = parse(sql);
    const [kind, content] = Object.entries(stmts[0]?.stmt ?? {})[0] ?? [];
    if (kind === undefined) return { finding: refused('it has no statement') };
    if (stmts.length > 1) {
      const why = `it has ${stmts.length} statements; submit them as a list of statements`;
      return { finding: refused(why) };
    }
    const node = content as Node;
    const statement = stmts[0]?.stmt ?? {};
    if (kind !== 'CallStmt') {
      const finding = readNodes(statement, returnsRows(kind, node));
      return { finding, names: readNames(statement) };
    }
    const call = node.funccall as Node;
    const procedure = readName(call.funcname);
    return { finding: readNodes(call, true), procedure, names: readNames({ FuncCall: call }) };
  } catch (error) {
    return { finding: refuseUnparsed(error, sql) };
  }
}

function returnsRows(kind: string, { returningClause, returningList }: Node): boolean {
  return kind === 'SelectStmt' || returningClause !== undefined || returningList !== undefined;
}

const ADMITTED = new Set(['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt']);

/**
 * Checks every node of a statement, at any depth: common table expressions, subqueries, RETURNING
 * lists.
 */
function readNodes(root: Node, returnsRows: boolean): StatementFinding {
  let parameters = 0;
  let why: string | undefined;
  const visit = (node: unknown) => {
    if (why !== undefined || typeof node !== 'object' || node === null) return;
    why = judgeNode(node as Node);
    const parameter = (node as { readonly ParamRef?: Node }).ParamRef?.number;
    if (typeof parameter === 'number') parameters = Math.max(parameters, parameter);
    for (const [field, inner] of Object.entries(node)) {
      if (/^[A-Z]\w*Stmt$/.test(field) && !ADMITTED.has(field))
        why ??= describeStatement(field, inner as Node);
      visit(inner);
    }
  };
  visit(root);
  return why === undefined ? { kind: 'admitted', parameters, returnsRows } : refused(why);
}

function judgeNode({ intoClause, schemaname, funcname }: Node): string | undefined {
  if (intoClause !== undefined) return 'SELECT INTO is not admitted: it creates a table';
  if (schemaname === 'effectmatch')
    return 'a table of the schema effectmatch is not admitted: it is not for operations';
  return Array.isArray(funcname) ? judgeFunction(funcname) : undefined;
}

/** Describes a refused statement by its SQL name, which is derived from the name of its node. */
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

function judgeFunction(funcname: readonly unknown[]): string | undefined {
  const [name = '', schema = 'pg_catalog'] = funcname.map(readPart).reverse();
  if (schema === 'effectmatch')
    return 'a function of the schema effectmatch is not admitted: it is not for operations';
  if (SESSION_STATE.has(name)) return `${name}() is not admitted: it changes the session`;
  // The server boundary also revokes most of them; the gate refuses them earlier.
  const isOutside = schema === 'pg_catalog' && actsOutside(name);
  if (!isOutside && !name.startsWith('dblink')) return undefined;
  if (name === 'currval' || name === 'lastval')
    return `${name}() is not admitted; to use a new key, write WITH new AS (INSERT … RETURNING id) INSERT … SELECT id, … FROM new`;
  return `${name}() is not admitted: it acts outside the transaction`;
}

/** A name in the form that registrations use. */
function readName(funcname: unknown): string {
  const [name = '', schema = 'public'] = (funcname as readonly unknown[]).map(readPart).reverse();
  return sqlName({ schema, name });
}

function readPart(node: unknown): string {
  return String((node as { readonly String?: { readonly sval?: unknown } }).String?.sval ?? '');
}

function refused(why: string): Refused {
  return { kind: 'refused', why };
}
