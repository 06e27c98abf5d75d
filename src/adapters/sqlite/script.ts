import { refuseAction } from '../../contract/action-input.ts';

/** A character of a name in SQLite's tokenizer. All non-ASCII characters belong to names. */
const ID = '[\\w$\\u0080-\\uffff]';

/**
 * Matches tokens in the order of SQLite's tokenizer: first everything that may contain a parameter
 * sign, then parameters, then any other character. A doubled quote inside a string reads as two
 * strings, which is the same here. An unclosed token extends to the end of the text, so that no
 * character is scanned repeatedly.
 */
export const TOKEN = new RegExp(
  [
    ...["'[^']*(?:'|$)", '"[^"]*(?:"|$)', '`[^`]*(?:`|$)', '\\[[^\\]]*(?:\\]|$)'],
    ...['--[^\\n]*', '/\\*(?:[^*]|\\*(?!/))*(?:\\*/|$)'],
    ...[`[A-Za-z_\\u0080-\\uffff]${ID}*`, `\\d(?:${ID}|\\.)*`],
    ...['(?<numbered>\\?\\d*)', `(?<named>[:@$](?:${ID}|::)+(?:\\([^\\s)]*\\)?)?)`],
    '[^]',
  ].join('|'),
  'g',
);

/** The first words of allowed statements. None of these statements has a body with semicolons. */
const BEGINNINGS = ['select', 'insert', 'update', 'delete', 'replace', 'with', 'values'];

/**
 * Splits a script into statements, each with its preceding comments. Semicolons in strings, quoted
 * names and comments do not count. Statements other than queries and writes are refused by their
 * first word, such as BEGIN, or CREATE TRIGGER, whose body has semicolons. When a piece is
 * compiled, SQLite reports where its first statement ends, and text after it is refused.
 */
export function splitScript(script: string): readonly string[] {
  const statements: string[] = [];
  let begins = 0;
  let word: string | undefined;
  const close = (end: number) => {
    if (word !== undefined) {
      checkBeginning(word, statements.length + 1);
      statements.push(script.slice(begins, end).trim());
    }
    begins = end + 1;
    word = undefined;
  };
  for (const { 0: token, index } of script.matchAll(TOKEN)) {
    if (token === ';') close(index);
    else if (!isBlank(token)) word ??= token;
  }
  close(script.length);
  return statements;
}

function isBlank(token: string): boolean {
  return token.trim() === '' || token.startsWith('--') || token.startsWith('/*');
}

function checkBeginning(word: string, number: number): void {
  if (BEGINNINGS.includes(word.toLowerCase())) return;
  throw refuseAction(
    `statement ${number} begins with ${word.slice(0, 40).toUpperCase()}; ` +
      'a script may have SELECT, INSERT, UPDATE, DELETE, REPLACE, WITH and VALUES',
  );
}
