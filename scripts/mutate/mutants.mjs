// Finds every check in a source file and says how to make it stop mattering, one mutant at a time.
import { stripTypeScriptTypes } from 'node:module';
import { tokenize } from './tokens.mjs';

const COMPARISONS = ['===', '!==', '==', '!=', '<', '<=', '>', '>=', 'instanceof', 'in'];
/** How tightly an operator binds; an operand ends at the first operator that binds no tighter. */
const BINDING = new Map([
  ['??', 1],
  ['||', 1],
  ['&&', 2],
  ...COMPARISONS.map((operator) => [operator, 3]),
]);
const BEFORE_EXPRESSION = new Set(
  [', ; ? : => = += ( [ { } ...', 'return throw case else do'].flatMap((words) => words.split(' ')),
);
const AFTER_EXPRESSION = new Set([',', ';', '?', ':', ')', ']', '}']);
const PREDICATES = new Set(['filter', 'some', 'every', 'find']);
/** Calls made for what they refuse, undo or announce, not for what they return. */
const CHECKING_CALL =
  /^#?(invariant|assert\w*|demand|(?:admit|check|refuse|require)[A-Z]\w*|\w*[pP]robe[A-Z]?\w*|discard|acknowledge|beat|announcePlan)$/;

/**
 * The mutants of one file. Types are stripped first, which keeps every position, so that a mutant
 * is plain JavaScript and a broken type never counts as a killed mutant.
 */
export function findMutants(file, source) {
  if (file.endsWith('.sql')) return findConstraints(file, source);
  const text = stripTypeScriptTypes(source);
  if (text.length !== source.length) throw new Error(`${file}: stripping types moved the code`);
  const tokens = tokenize(text);
  const mutants = new Map();
  const add = (kind, first, last, replacement) => {
    if (first > last) return;
    const start = tokens[first].start;
    const end = tokens[last].end;
    const key = `${start}:${end}:${replacement}`;
    if (!mutants.has(key))
      mutants.set(key, describe(file, source, { kind, start, end, replacement }));
  };
  const force = (kind, [first, last]) => {
    add(`${kind}-false`, first, last, 'false');
    add(`${kind}-true`, first, last, 'true');
  };
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token.value === 'if' && next?.value === '(') force('if', [index + 2, next.partner - 1]);
    if (token.value === '?') force('ternary', [operandStart(tokens, index, 0), index - 1]);
    if (token.value === 'case') add('case', index + 1, operandEnd(tokens, index, 0), 'Symbol()');
    if (token.value === "'flushed'" && !COMPARISONS.includes(tokens[index - 1]?.value))
      add('durability', index, index, "'relaxed'");
    if (token.value === 'planRevision' && next?.value === ':' && tokens[index + 3]?.value === '.')
      add('revision', index + 2, operandEnd(tokens, index + 1, 0), '1');
    if (token.value === '[' && isPath(tokens, token.partner))
      for (const [first, last] of elements(tokens, index)) add('part', first, last, "''");
    if (isMethod(tokens, index, 'catch')) add('catch', index - 1, next.partner, '');
    if (PREDICATES.has(token.value) && isMethod(tokens, index, token.value)) {
      const body = arrowBody(tokens, index + 1);
      if (body !== undefined) force('predicate', body);
    }
    if (isChecking(tokens, index) && next?.value === '(') {
      const first = statementStart(tokens, index);
      if (first !== undefined && tokens[next.partner + 1]?.value === ';')
        add('call', first, next.partner, 'void 0');
    }
    if (['&&', '||', '??'].includes(token.value)) {
      const kind = { '&&': 'and', '||': 'or', '??': 'nullish' }[token.value];
      const neutral = { '&&': 'true', '||': 'false', '??': 'undefined' }[token.value];
      const binding = BINDING.get(token.value);
      add(kind, operandStart(tokens, index, binding), index - 1, neutral);
      add(kind, index + 1, operandEnd(tokens, index, binding), neutral);
    }
  });
  // Last, because most comparisons are a whole condition, operand or invariant, which has its
  // mutants already.
  const ranges = new Set([...mutants.values()].map(({ start, end }) => `${start}:${end}`));
  tokens.forEach((token, index) => {
    if (!COMPARISONS.includes(token.value)) return;
    const first = operandStart(tokens, index, 3);
    const last = operandEnd(tokens, index, 3);
    if (ranges.has(`${tokens[first].start}:${tokens[last].end}`)) return;
    if (tokens[first - 2]?.value !== 'invariant') force('compare', [first, last]);
  });
  return { source, text, mutants: [...mutants.values()].sort((a, b) => a.start - b.start) };
}

/** Each constraint of a table that has a line of its own, left out. */
function findConstraints(file, source) {
  const found = [...source.matchAll(/,\s*constraint [^\n]*?(?=,?\n)/g)];
  const mutants = found.map(({ 0: text, index }) =>
    describe(file, source, {
      kind: 'constraint',
      start: index,
      end: index + text.length,
      replacement: '',
    }),
  );
  return { source, text: source, mutants };
}

function describe(file, source, mutant) {
  const before = source.slice(0, mutant.start).split('\n');
  const line = source.split('\n')[before.length - 1].trim();
  const column = before.at(-1).length + 1;
  const original = source.slice(mutant.start, mutant.end).replace(/\s+/g, ' ');
  const firstLine = before.length;
  const lastLine = firstLine + source.slice(mutant.start, mutant.end).split('\n').length - 1;
  return {
    ...mutant,
    file,
    firstLine,
    lastLine,
    id: `${file}:${firstLine}:${column}:${mutant.kind}`,
    line,
    original,
  };
}

/** `open(...)` and `outlets.open(...)` are how a survey reports a route that is not closed. */
function isChecking(tokens, index) {
  const { value } = tokens[index];
  if (value !== 'open') return CHECKING_CALL.test(value);
  return tokens[index - 1]?.value !== '.' || tokens[index - 2]?.value === 'outlets';
}

/** Whether the list that ends here is joined to a path, which names something that is signed. */
function isPath(tokens, close) {
  return isMethod(tokens, close + 2, 'join') && tokens[close + 4]?.value === "'/'";
}

/** The elements of the list that begins at `open`. */
function elements(tokens, open) {
  const found = [];
  for (let at = open; at < tokens[open].partner; at = found.at(-1)[1] + 1)
    found.push([at + 1, operandEnd(tokens, at, 0)]);
  return found;
}

function isMethod(tokens, index, name) {
  return (
    tokens[index]?.value === name &&
    tokens[index - 1]?.value === '.' &&
    tokens[index + 1]?.value === '('
  );
}

function operandStart(tokens, operator, binding) {
  let at = operator - 1;
  while (at >= 0) {
    const { value, partner } = tokens[at];
    if (value === ')' || value === ']') at = partner - 1;
    else if (BEFORE_EXPRESSION.has(value) || (BINDING.get(value) ?? 9) <= binding) break;
    else at -= 1;
  }
  return at + 1;
}

function operandEnd(tokens, operator, binding) {
  let at = operator + 1;
  while (at < tokens.length) {
    const { value, partner } = tokens[at];
    if (['(', '[', '{'].includes(value)) at = partner + 1;
    else if (AFTER_EXPRESSION.has(value) || (BINDING.get(value) ?? 9) <= binding) break;
    else at += 1;
  }
  return at - 1;
}

/** The expression an arrow function in the call at `open` returns, if it has no block. */
function arrowBody(tokens, open) {
  const close = tokens[open].partner;
  const arrow = tokens.findIndex(
    ({ value }, index) => index > open && index < close && value === '=>',
  );
  if (arrow === -1 || tokens[arrow + 1].value === '{') return undefined;
  return [arrow + 1, operandEnd(tokens, arrow, 0)];
}

/**
 * The first token of the statement that calls the name at `index`, if the call is all the statement
 * does.
 */
function statementStart(tokens, index) {
  let at = index;
  while (tokens[at - 1]?.value === '.') at -= 2;
  if (tokens[at - 1]?.value === 'await') at -= 1;
  return [';', '{', '}', ')'].includes(tokens[at - 1]?.value) ? at : undefined;
}
