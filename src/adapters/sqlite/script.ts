import { refuseAction } from '../../contract/action-input.ts';

/** A name as SQLite's tokenizer takes it; every character beyond ASCII belongs to one. */
const ID = '[\\w$\\u0080-\\uffff]';

/**
 * Everything that may contain a parameter's sign without being one, then parameters, then any other
 * character, in the order in which SQLite's tokenizer decides. A doubled quote inside a string
 * reads as two strings, which is the same here. Whatever is not closed reaches to the end, so that
 * no character is looked at again and again.
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

/** Words with which the statements of an action begin. No body of such a statement has a semicolon. */
const BEGINNINGS = ['select', 'insert', 'update', 'delete', 'replace', 'with', 'values'];

/**
 * The statements of a script, each with the comments before it. Semicolons in strings, quoted names
 * and comments do not count. Anything but a query or a write is refused by its first word, such as
 * CREATE TRIGGER, whose body has semicolons, and BEGIN. When a piece is compiled, SQLite says where
 * its first statement ends, and text after it is refused.
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
