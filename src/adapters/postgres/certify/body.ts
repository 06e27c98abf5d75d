import { SESSION_STATE } from './builtins.ts';

/** A word, literal or symbol in SQL or PL/pgSQL text. */
interface Token {
  readonly kind: 'word' | 'quoted' | 'string' | 'sign';
  /** Words have A to Z folded to lower case. Quoted identifiers and strings have no quotes. */
  readonly text: string;
  /** The string has escapes, so its text is not its value. */
  readonly escaped?: boolean;
}

/**
 * The server treats every character beyond ASCII as part of a name, even spaces and symbols. Only
 * six characters are blanks.
 */
const START = String.raw`[A-Za-z_\u{80}-\u{10ffff}]`;
const INNER = String.raw`A-Za-z_0-9\u{80}-\u{10ffff}`;
const BLANK = String.raw`[ \t\n\r\f\v]`;
const LINE_COMMENT = String.raw`--[^\n\r]*`;
/** Strings separated by a line break are one string, read like the first. */
const NEXT_LINE = String.raw`(?:[ \t\f\v]|${LINE_COMMENT})*[\n\r](?:${BLANK}|${LINE_COMMENT}[\n\r])*`;
const ESCAPED = String.raw`'(?:[^'\\]|''|\\[\s\S])*'`;

const LEXEME = new RegExp(
  [
    `(${LINE_COMMENT})`,
    String.raw`(\/\*)`,
    `([eE]${ESCAPED}(?:${NEXT_LINE}${ESCAPED})*|[bBxXnN]?'(?:[^']|'')*')`,
    String.raw`(\$(?:${START}[${INNER}]*)?\$)`,
    '"((?:[^"]|"")+)"',
    `(${START}[${INNER}$]*)`,
    String.raw`(\d[\d.]*|${BLANK}+)`,
    String.raw`([\s\S])`,
  ].join('|'),
  'gu',
);

/**
 * Splits SQL into tokens, with standard-conforming strings. A function that changes how strings are
 * read is refused for that setting. The result need not be exact for text that PostgreSQL would
 * reject.
 */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  LEXEME.lastIndex = 0;
  for (let match = LEXEME.exec(text); match !== null; match = LEXEME.exec(text)) {
    const [whole, line, block, string, dollar, quoted, word, skipped] = match;
    if (line !== undefined || skipped !== undefined) continue;
    if (block !== undefined) LEXEME.lastIndex = endOfComment(text, match.index);
    else if (string !== undefined) tokens.push(readString(string));
    else if (dollar !== undefined) {
      const end = text.indexOf(dollar, match.index + dollar.length);
      const stop = end < 0 ? text.length : end;
      tokens.push({ kind: 'string', text: text.slice(match.index + dollar.length, stop) });
      LEXEME.lastIndex = Math.min(text.length, stop + dollar.length);
    } else if (quoted !== undefined)
      tokens.push({ kind: 'quoted', text: quoted.replaceAll('""', '"') });
    else if (word !== undefined) tokens.push({ kind: 'word', text: foldWord(word) });
    else tokens.push({ kind: 'sign', text: whole });
  }
  return tokens;
}

function readString(string: string): Token {
  const text = string.slice(string.indexOf("'") + 1, -1).replaceAll("''", "'");
  const escaped = /^[eE]/.test(string) && /[\\\n\r]/.test(text);
  return { kind: 'string', text, ...(escaped ? { escaped } : {}) };
}

/** The server folds A to Z; whether it folds other capitals depends on its encoding. */
function foldWord(word: string): string {
  return word.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
}

/** Block comments nest. */
function endOfComment(text: string, start: number): number {
  let depth = 0;
  const edge = /\/\*|\*\//g;
  edge.lastIndex = start;
  for (let match = edge.exec(text); match !== null; match = edge.exec(text)) {
    depth += match[0] === '/*' ? 1 : -1;
    if (depth === 0) return edge.lastIndex;
  }
  return text.length;
}

/** Statements that neither recorders nor counters can see, or that act outside the transaction. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  notify: 'sends a notification (NOTIFY), which no privilege denies',
  listen: 'subscribes the session (LISTEN)',
  unlisten: 'changes subscriptions of the session (UNLISTEN)',
  load: 'loads a library (LOAD)',
  copy: 'reads or writes outside the database (COPY)',
  discard: 'resets the session (DISCARD)',
  prepare: 'prepares a statement in the session (PREPARE)',
  deallocate: 'removes a prepared statement of the session (DEALLOCATE)',
  reset: 'changes a setting of the session (RESET)',
  commit: 'ends the transaction (COMMIT)',
  do: 'runs an anonymous block (DO)',
};

const BEFORE_STATEMENTS = new Set(['begin', 'then', 'else', 'loop', ';', '>', 'atomic']);

/** Whether a statement may begin with this token. */
export function startsStatement(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1];
  return before === undefined || (before.kind !== 'string' && BEFORE_STATEMENTS.has(before.text));
}

/**
 * Why a function body cannot be certified from its text; empty if it can. Conservative: SQL that is
 * built at run time, which the text hides, is reported as such.
 */
export function judgeBody(text: string): readonly string[] {
  const tokens = tokenize(text);
  const found = new Set<string>();
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1];
    const act = next?.text === '(' ? unseenAct(token) : undefined;
    if (act !== undefined) found.add(act);
    if (token.kind !== 'word') continue;
    const starts = startsStatement(tokens, index);
    const why = starts ? FORBIDDEN[token.text] : undefined;
    if (why !== undefined && !isAssignment(next)) found.add(why);
    if (starts && token.text === 'set' && next?.text === 'local') {
      const setting = tokens[index + 2]?.text ?? '';
      if (LIMITS.test(setting))
        found.add(`changes a time limit of the stage (SET LOCAL ${setting})`);
      if (READING.test(setting)) found.add(`changes how strings are read (SET LOCAL ${setting})`);
    }
    if (starts && token.text === 'set' && next?.text !== 'local' && !isAssignment(next)) {
      if (next?.text !== 'constraints') found.add('changes a setting of the session (SET)');
      else found.add('changes when constraints are checked (SET CONSTRAINTS)');
    }
    if (token.text === 'with' && next?.text === 'hold')
      found.add('opens a cursor that outlives the transaction (WITH HOLD)');
    if (token.text === 'u' && next?.text === '&' && tokens[index + 2]?.kind !== 'word') {
      found.add('hides names behind Unicode escapes');
    }
    if (token.text === 'execute')
      for (const reason of judgeExecute(tokens, index)) found.add(reason);
  }
  return [...found];
}

/**
 * Settings that decide where strings end, here or in the session's next statement. Their names are
 * case-insensitive.
 */
const READING = /^(?:standard_conforming_strings|client_encoding|names)$/i;

/** Settings that limit how long a stage takes and holds its locks. */
const LIMITS = /^(?:statement_timeout|transaction_timeout|idle_in_transaction_session_timeout)$/i;

/** Whether the word is a variable that is assigned to, and so does not begin a statement. */
function isAssignment(next: Token | undefined): boolean {
  return next?.kind === 'sign' && (next.text === ':' || next.text === '=');
}

function judgeExecute(tokens: readonly Token[], index: number): readonly string[] {
  const argument = tokens[index + 1];
  const after = tokens[index + 2];
  if (argument === undefined || (argument.kind === 'word' && argument.text === 'on')) return [];
  // A string on the next line continues the first one.
  const isWhole =
    after === undefined ||
    (after.kind !== 'string' && [';', 'using', 'into', 'loop'].includes(after.text));
  if (argument.kind === 'string' && !argument.escaped && isWhole) return judgeBody(argument.text);
  return ['runs SQL put together at run time (EXECUTE)'];
}

/**
 * The first call in an expression that nothing counts, or that reads tables the text does not name;
 * undefined if there is none.
 */
export function findUnseenAct(text: string): string | undefined {
  return tokenize(text)
    .map(unseenAct)
    .find((why) => why !== undefined);
}

/**
 * Functions that every role may execute. Setting a sequence survives a rollback. A table that is
 * passed as a value may be a view, whose functions were never checked.
 */
function unseenAct({ kind, text }: Token): string | undefined {
  if (kind === 'string') return undefined;
  if (text === 'setval')
    return 'moves a sequence (setval), which neither recorders nor counters see';
  if (SESSION_STATE.has(text)) return `changes the session (${text})`;
  if (READS_TOLD.test(text)) return `runs SQL that it is told, on a table or view (${text})`;
  return undefined;
}

const READS_TOLD = /^(?:table|schema|database)_to_xml(?:schema|_and_xmlschema)?$/;

/** Every name that the text could refer to: words, quoted identifiers, and words in its strings. */
export function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const token of tokenize(text)) {
    if (token.kind === 'sign') continue;
    if (token.kind === 'string') for (const name of namesIn(token.text)) names.add(name);
    for (const form of token.kind === 'word'
      ? [token.text, token.text.toLowerCase()]
      : [token.text]) {
      for (const name of cutName(form)) names.add(name);
    }
  }
  return names;
}

const NAME_BYTES = 63;
const CHARACTER_BYTES = 4;

/**
 * A name and the forms the server may truncate it to. The limit is 63 bytes, so the number of
 * characters depends on the server's encoding.
 */
function cutName(name: string): readonly string[] {
  if (Buffer.byteLength(name) <= NAME_BYTES) return [name];
  const characters = Array.from(name.slice(0, 2 * NAME_BYTES));
  const shortest = Math.floor(NAME_BYTES / CHARACTER_BYTES);
  return [
    name,
    ...Array.from({ length: NAME_BYTES + 1 - shortest }, (_, more) =>
      characters.slice(0, shortest + more).join(''),
    ),
  ];
}
