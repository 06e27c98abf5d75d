import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import type { MysqlConnection, RawRow } from './connection.ts';
import { quoteName } from './sql.ts';

/** Application code that a write may run: a trigger, a routine, a view or a default. */
export interface CodeObject {
  readonly name: string;
  /** The database in which unqualified names are looked up. */
  readonly schema: string;
  readonly text: string;
}

/** What certification found out about code that a protected write may reach. */
export interface CodeFinding {
  readonly object: string;
  /** The digest that a person adds to `reviews` after reading the code. */
  readonly digest: string;
  /** Why the code could have an effect that is not observed; undefined if it cannot. */
  readonly problem: string | undefined;
}

/** What belongs to this deployment. Other code must not touch it. */
interface OurCode {
  readonly controlDatabase: string;
  /** The names of the recorders. Their texts are compared elsewhere. */
  readonly recorders: ReadonlySet<string>;
}

/** Everything that code can name, by lower-case `database.name`. */
interface Server {
  readonly code: ReadonlyMap<string, readonly CodeObject[]>;
  /** The keys of `code` that are routines. The server compares routine names by a collation. */
  readonly routines: readonly string[];
  /** Objects that a rollback does not restore: tables of other engines, and sequences. */
  readonly unsafe: ReadonlyMap<string, string>;
  readonly variables: ReadonlySet<string>;
}

/**
 * Finds all code that the first objects can reach, and judges it by the words it contains. MariaDB
 * does not allow dynamic SQL in triggers and functions, so their text names everything they use.
 */
export async function judgeCode(
  connection: MysqlConnection,
  first: readonly CodeObject[],
  { controlDatabase, recorders }: OurCode,
): Promise<readonly CodeFinding[]> {
  if (first.length === 0) return [];
  const server = await readServer(connection, recorders);
  const seen = new Map<string, CodeFinding>();
  const open = [...first];
  for (let object = open.pop(); object !== undefined; object = open.pop()) {
    if (seen.has(object.name)) continue;
    const words = readWords(object.text);
    seen.set(object.name, {
      object: object.name,
      digest: digestOf(object.name, object.text),
      problem: findProblem(server, object, words, lower(controlDatabase)),
    });
    const used = [...namesIn(object, words, server.code), ...routinesIn(words, server.routines)];
    for (const key of used) open.push(...(server.code.get(key) ?? []));
  }
  return [...seen.values()].sort((a, b) => (a.object < b.object ? -1 : 1));
}

/** Names an object. A part that contains a dot is quoted, so that no two objects share a name. */
export function objectName(kind: string, ...parts: readonly (string | null | undefined)[]): string {
  const shown = parts.map(String).map((part) => (/[.\x60]/.test(part) ? quoteName(part) : part));
  return `${kind} ${shown.join('.')}`;
}

/** Lower case as the server folds names: one character for one, so `İ` is `i` and `Σ` is `σ`. */
function lower(text: string): string {
  return text.replaceAll('\u0130', 'i').toLowerCase().replaceAll('\u03c2', '\u03c3');
}

/** The digest that identifies a piece of code in `reviews`. */
export function digestOf(name: string, text: string): string {
  return hash('sha256', `${name}\n${text}`, 'hex');
}

async function readServer(
  connection: MysqlConnection,
  recorders: ReadonlySet<string>,
): Promise<Server> {
  const system = "('information_schema', 'performance_schema')";
  const routines = await connection.query(
    'select db, name, json_array(lower(type), db, name), body_utf8, body from mysql.proc',
  );
  const views = await connection.query(
    `select table_schema, table_name, json_array('view', table_schema, table_name), view_definition
      from information_schema.views where table_schema not in ${system}`,
  );
  const triggers = await connection.query(
    `select event_object_schema, event_object_table, json_array('trigger', trigger_schema, trigger_name),
        action_statement from information_schema.triggers`,
  );
  // Only these defaults have effects. They also run for an INSERT IGNORE that skips its row.
  const defaults = await connection.query(
    `select table_schema, table_name, json_array('default of', table_schema, table_name, column_name),
        column_default from information_schema.columns
      where table_schema not in ${system} and column_default rlike '${SEQUENCE_FUNCTION.source}'`,
  );
  const unsafe = await connection.query(
    `select table_schema, table_name, concat(table_type, ' of engine ', engine) from information_schema.tables
      where table_schema not in ${system} and (engine <> 'InnoDB' or table_type = 'SEQUENCE')`,
  );
  const variables = await connection.texts(
    "select lower(variable_name) from information_schema.system_variables where variable_scope <> 'GLOBAL'",
  );
  const keyOf = ([schema, name]: RawRow) => lower(`${schema}.${name}`);
  const objects = [...routines, ...views, ...triggers, ...defaults]
    .map((row) => ({
      key: keyOf(row),
      object: { name: readName(row[2]), schema: String(row[0]), text: readText(row.slice(3)) },
    }))
    .filter(({ object }) => !recorders.has(object.name));
  const code = Map.groupBy(objects, ({ key }) => key);
  return {
    routines: routines.map(keyOf),
    code: new Map([...code].map(([key, group]) => [key, group.map(({ object }) => object)])),
    unsafe: new Map(unsafe.map((row) => [keyOf(row), String(row[2])])),
    variables: new Set(variables.map(([name]) => String(name))),
  };
}

function readName(cell: Buffer | null | undefined): string {
  const [kind, ...parts] = JSON.parse(String(cell)) as readonly [string, ...string[]];
  return objectName(kind, ...parts);
}

/**
 * The text of an object. A routine has two: the one that is shown, and the one that runs, in the
 * character set of whoever created it. Both count if they differ.
 */
function readText(cells: RawRow): string {
  const texts = cells.map((cell) => cell?.toString(isUtf8(cell) ? 'utf8' : 'latin1') ?? '');
  return [...new Set(texts)].join('\n');
}

interface Word {
  readonly word: string;
  /** Whether a name and a dot stand directly before it: a column, for example of `new`. */
  readonly isQualified: boolean;
}

const WORD = /[\p{L}\p{N}_$]+/gu;

/** A name and a dot. Between them and the word there is nothing, so no comment ends there. */
const QUALIFIER = /[\p{L}\p{N}_$][\x22\x60]?\.[\x22\x60]?$/u;

/** As much as a {@link QUALIFIER} is long, in UTF-16. */
const QUALIFIER_LENGTH = 5;

/** A function that draws from a sequence, or sets it, in a default as the catalogue shows it. */
export const SEQUENCE_FUNCTION = /nextval|lastval|setval/i;

/** A name without special characters. Databases, tables and routines may have others. */
const PLAIN_NAME = /^[\p{L}\p{N}_$]+$/u;

/**
 * Returns all words, including those in strings and comments, because where a string ends depends
 * on the SQL mode. Code may be refused for a word it only mentions, but no use is missed.
 */
function readWords(text: string): readonly Word[] {
  return Array.from(lower(text).matchAll(WORD), ({ 0: word, index, input }) => ({
    word,
    isQualified: QUALIFIER.test(input.slice(Math.max(0, index - QUALIFIER_LENGTH), index)),
  }));
}

/**
 * The names that the object uses. A name of its own database counts wherever it appears, and one of
 * another database if that appears too: what stands between them may be a comment. A name with
 * special characters counts wherever it appears.
 */
function namesIn(
  object: CodeObject,
  words: readonly Word[],
  names: ReadonlyMap<string, unknown>,
): readonly string[] {
  const known = new Set([lower(object.schema), ...words.map(({ word }) => word)]);
  const written = new Set(words.map(({ word }) => word));
  // Quotes are doubled inside a quoted name.
  const text = lower(object.text).replace(/([\x22\x60])\1/g, '$1');
  return [...names.keys()].filter((key) => {
    const [schema = '', name = '', ...more] = key.split('.');
    const isPlain = more.length === 0 && PLAIN_NAME.test(schema) && PLAIN_NAME.test(name);
    if (isPlain) return written.has(name) && known.has(schema);
    return text.includes(key.slice(key.lastIndexOf('.') + 1));
  });
}

/** A name that a collation cannot equate with a different spelling. */
const ASCII_NAME = /^[\w$]+$/;

/**
 * Routines that the object may call under another spelling: the server treats `é` as `e` in routine
 * names. A routine with non-ASCII characters counts as used, and a non-ASCII character in a word
 * matches any character.
 */
function routinesIn(words: readonly Word[], routines: readonly string[]): readonly string[] {
  const foreign = words.filter(({ word }) => !ASCII_NAME.test(word));
  const spellings = foreign.map(
    ({ word }) => new RegExp(`^${[...word].map((c) => (/[\w]/.test(c) ? c : '.')).join('')}$`, 'u'),
  );
  return routines.filter((key) => {
    const name = key.slice(key.indexOf('.') + 1);
    return !ASCII_NAME.test(name) || spellings.some((spelling) => spelling.test(name));
  });
}

/** Words that let code act outside the transaction, or change the meaning of a session. */
const FORBIDDEN = [
  ...['outfile', 'dumpfile', 'load_file', 'global', 'persist', 'mysql', 'performance_schema'],
  ...['xa', 'statement', 'kill', 'shutdown', 'binlog'],
  // A temporary table hides the table of the same name, also from recorders.
  'temporary',
];

/** What the server takes for nothing between two words of a statement. */
const GAP = String.raw`(?:\s|/\*[\s\S]*?\*/|--[^\n]*\n|#[^\n]*\n)+`;

/** Finds one of these phrases, each of words that may have comments between them. */
function findPhrase(text: string, phrases: readonly string[]): string | undefined {
  return phrases.find((phrase) =>
    new RegExp(`(?<![\\w$])${phrase.split(' ').join(GAP)}(?![\\w$])`, 'i').test(text),
  );
}

/** Statements that write files or tables of the server, and that a trigger may have. */
const FORBIDDEN_PHRASES = [
  ...['change master', 'start slave', 'start replica', 'start all', 'stop slave', 'stop replica'],
  ...['stop all', 'purge binary', 'purge master'],
  ...['create server', 'replace server', 'alter server', 'drop server'],
];

function findProblem(
  { unsafe, variables }: Server,
  object: CodeObject,
  words: readonly Word[],
  controlDatabase: string,
): string | undefined {
  const { text } = object;
  if (text === '') return 'its text cannot be read';
  if (lower(`${object.schema} ${text}`).includes(controlDatabase))
    return 'it names the database of records';
  if (/\/\*M?!/.test(text)) return 'it has an executable comment';
  if (text.includes('@@')) return 'it uses a system variable';
  const forbidden = words.find(({ word }) => FORBIDDEN.includes(word));
  if (forbidden !== undefined) return `it has the word "${forbidden.word}"`;
  const phrase = findPhrase(text, FORBIDDEN_PHRASES);
  if (phrase !== undefined) return `it has the words "${phrase}"`;
  const [key] = namesIn(object, words, unsafe);
  if (key !== undefined)
    return `it names ${key} (${unsafe.get(key)}), which a rollback does not restore`;
  return findSetting(text, words, variables);
}

/** What SET changes besides variables, by the words it is written with. */
const SETTINGS = ['names', 'charset'];
const SETTING_PHRASES = ['char set', 'character set', 'transaction isolation', 'transaction read'];

/** Under the Oracle mode, `:=` assigns without SET. */
function findSetting(
  text: string,
  words: readonly Word[],
  variables: ReadonlySet<string>,
): string | undefined {
  if (!text.includes(':=') && !words.some(({ word }) => word === 'set')) return undefined;
  const isSetting = (word: string) => variables.has(word) || SETTINGS.includes(word);
  const setting =
    words.find(({ word, isQualified }) => !isQualified && isSetting(word))?.word ??
    findPhrase(text, SETTING_PHRASES);
  return setting && `it may set the session variable "${setting}"`;
}
