// Splits JavaScript into tokens with positions: as much of a scanner as finding conditions and
// their operands takes.
const PUNCTUATORS = [
  ['>>>=', '...', '===', '!==', '**=', '<<=', '>>=', '>>>', '&&=', '||=', '??='],
  [
    '=>',
    '==',
    '!=',
    '<=',
    '>=',
    '&&',
    '||',
    '??',
    '?.',
    '++',
    '--',
    '+=',
    '-=',
    '*=',
    '/=',
    '%=',
    '**',
    '<<',
    '>>',
  ],
].flat();
const CLOSER = { '(': ')', '[': ']', '{': '}' };
const BEFORE_REGEX = new Set(['return', 'case', 'typeof', 'await', 'throw', 'in', 'of', 'void']);

/**
 * Tokens of `text`; brackets know the index of their partner. Comments are left out, a template is
 * one token.
 */
export function tokenize(text) {
  const tokens = [];
  const open = [];
  let at = 0;
  while (at < text.length) {
    const end = endOfToken(text, at, tokens.at(-1));
    const value = text.slice(at, end);
    if (!/^(\s|\/\/|\/\*)/.test(value)) {
      const token = { value, start: at, end, partner: -1 };
      if (Object.hasOwn(CLOSER, value)) open.push(tokens.length);
      if (value === ')' || value === ']' || value === '}') {
        token.partner = open.pop() ?? -1;
        const partner = tokens[token.partner];
        if (partner === undefined || CLOSER[partner.value] !== value)
          throw new Error(`unbalanced ${value} at ${at}`);
        partner.partner = tokens.length;
      }
      tokens.push(token);
    }
    at = end;
  }
  return tokens;
}

function endOfToken(text, at, previous) {
  const rest = (pattern) => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0].length ?? 0;
  };
  const blank = rest(/\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\//y);
  if (blank > 0) return at + blank;
  const word = rest(/[\w$#]+/y);
  if (word > 0) return at + word;
  const quoted = rest(/'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"/y);
  if (quoted > 0) return at + quoted;
  if (text[at] === '`') return endOfTemplate(text, at);
  if (text[at] === '/' && startsRegex(previous)) {
    return at + rest(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y);
  }
  const punctuator = PUNCTUATORS.find((candidate) => text.startsWith(candidate, at));
  return at + (punctuator?.length ?? 1);
}

function startsRegex(previous) {
  if (previous === undefined || BEFORE_REGEX.has(previous.value)) return true;
  return !/^[\w$#)\]}'"`]/.test(previous.value);
}

function endOfTemplate(text, start) {
  let at = start + 1;
  while (at < text.length && text[at] !== '`') {
    if (text[at] === '\\') at += 2;
    else if (text.startsWith('${', at)) at = endOfHole(text, at + 2);
    else at += 1;
  }
  return at + 1;
}

function endOfHole(text, start) {
  let depth = 1;
  let at = start;
  let previous;
  while (depth > 0 && at < text.length) {
    const end = endOfToken(text, at, previous);
    const value = text.slice(at, end);
    if (value === '{') depth += 1;
    if (value === '}') depth -= 1;
    if (/\S/.test(value)) previous = { value };
    at = end;
  }
  return at;
}
