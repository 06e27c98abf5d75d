/** A word, literal or sign of SQL or PL/pgSQL text. */
export interface Token {
  readonly kind: 'word' | 'quoted' | 'string' | 'sign';
  /** Words folded to lower case; quoted identifiers and strings without their quotes. */
  readonly text: string;
}

const LEXEME =
  /(--[^\n]*)|(\/\*)|([eE]'(?:[^'\\]|''|\\[\s\S])*'|[bBxXnN]?'(?:[^']|'')*')|(\$([\p{L}_][\p{L}\p{N}_]*)?\$)|"((?:[^"]|"")+)"|([\p{L}_][\p{L}\p{N}_$]*)|(\d[\d.]*|\s+)|([\s\S])/gu;

/**
 * Splits SQL into tokens, with strings as the standard has them: a function that changes how strings are read is refused
 * for its setting. It need not be exact where PostgreSQL itself would refuse the text.
 */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  LEXEME.lastIndex = 0;
  for (let match = LEXEME.exec(text); match !== null; match = LEXEME.exec(text)) {
    const [whole, line, block, string, dollar, , quoted, word, skipped] = match;
    if (line !== undefined || skipped !== undefined) continue;
    if (block !== undefined) LEXEME.lastIndex = endOfComment(text, match.index);
    else if (string !== undefined) tokens.push({ kind: 'string', text: string.slice(string.indexOf("'") + 1, -1) });
    else if (dollar !== undefined) {
      const end = text.indexOf(dollar, match.index + dollar.length);
      const stop = end < 0 ? text.length : end;
      tokens.push({ kind: 'string', text: text.slice(match.index + dollar.length, stop) });
      LEXEME.lastIndex = Math.min(text.length, stop + dollar.length);
    } else if (quoted !== undefined) tokens.push({ kind: 'quoted', text: quoted.replaceAll('""', '"') });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word.toLowerCase() });
    else tokens.push({ kind: 'sign', text: whole });
  }
  return tokens;
}

/** Comments nest. */
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

const STATEMENT_STARTS = new Set(['begin', 'then', 'else', 'loop', ';', '>', 'atomic']);

/**
 * Why a function body cannot be certified from its text, empty when it can. Conservative: what the text hides (SQL put
 * together at run time) is reported as such.
 */
export function judgeBody(text: string): readonly string[] {
  const tokens = tokenize(text);
  const found = new Set<string>();
  for (const [index, token] of tokens.entries()) {
    const before = tokens[index - 1];
    const next = tokens[index + 1];
    if (token.kind !== 'string' && token.text === 'setval' && next?.text === '(') {
      found.add('moves a sequence (setval), which neither recorders nor counters see');
    }
    if (token.kind !== 'word') continue;
    const starts = before === undefined || (before.kind !== 'string' && STATEMENT_STARTS.has(before.text));
    const why = starts ? FORBIDDEN[token.text] : undefined;
    if (why !== undefined && !isAssignment(next)) found.add(why);
    if (starts && token.text === 'set' && next?.text !== 'local' && !isAssignment(next)) {
      if (next?.text !== 'constraints') found.add('changes a setting of the session (SET)');
      else found.add('changes when constraints are checked (SET CONSTRAINTS)');
    }
    if (token.text === 'with' && next?.text === 'hold')
      found.add('opens a cursor that outlives the transaction (WITH HOLD)');
    if (token.text === 'u' && next?.text === '&' && tokens[index + 2]?.kind !== 'word') {
      found.add('hides names behind Unicode escapes');
    }
    if (token.text === 'execute') for (const reason of judgeExecute(tokens, index)) found.add(reason);
  }
  return [...found];
}

/** A variable of that name is assigned to, so it is no statement. */
function isAssignment(next: Token | undefined): boolean {
  return next?.kind === 'sign' && (next.text === ':' || next.text === '=');
}

function judgeExecute(tokens: readonly Token[], index: number): readonly string[] {
  const argument = tokens[index + 1];
  const after = tokens[index + 2];
  if (argument === undefined || (argument.kind === 'word' && argument.text === 'on')) return [];
  const isWhole = after === undefined || [';', 'using', 'into', 'loop'].includes(after.text);
  if (argument.kind === 'string' && isWhole) return judgeBody(argument.text.replaceAll("''", "'"));
  return ['runs SQL put together at run time (EXECUTE)'];
}

/** Every name the text could mean: words, quoted identifiers, and the words inside its strings. */
export function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const token of tokenize(text)) {
    if (token.kind === 'sign') continue;
    if (token.kind === 'string') for (const name of namesIn(token.text.replaceAll("''", "'"))) names.add(name);
    names.add(token.text);
  }
  return names;
}
