import { errorsOf } from '../../errors.ts';

/** The text of each column of a row, null for NULL, in the order of the row type. */
export type Image = readonly (string | null)[];

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN = 0x28;
const CLOSE = 0x29;

/**
 * Parses the text of a row as PostgreSQL's output function for rows writes it. Throws for a text
 * that the function could not have written, because a guess here would be a guess about what became
 * durable.
 */
export function parseImage(text: string, columns: number): Image {
  const images = parseImages(text, columns);
  const [image] = images;
  if (image === undefined || images.length !== 1)
    throw broken(`there are ${images.length} rows and not one`);
  return image;
}

/** Parses rows that follow one another without a separator, as strictly as {@link parseImage}. */
export function parseImages(text: string, columns: number): readonly Image[] {
  return [...readImages(text, columns, (image) => image)];
}

/**
 * Like {@link parseImages}, but row by row, so that many rows are not held as text and as values at
 * once.
 */
export function* readImages<T>(
  text: string,
  columns: number,
  read: (image: Image) => T,
): Generator<T, undefined> {
  if (columns < 1) throw broken('a row type without columns has no images');
  let image: (string | null)[] = [];
  for (let at = expectOpening(text, 0); ; ) {
    const start = at;
    if (text.charCodeAt(at) === QUOTE) {
      at = findClosingQuote(text, at + 1);
      image.push(unescapeField(text.slice(start + 1, at)));
      at += 1;
    } else {
      at = skipPlain(text, at);
      image.push(at === start ? null : text.slice(start, at));
    }
    const next = text.charCodeAt(at);
    at += 1;
    if (next === COMMA) continue;
    if (next !== CLOSE) throw broken('a column does not end where it should');
    if (image.length !== columns) throw broken(`it has ${image.length} columns and not ${columns}`);
    yield read(image);
    if (at === text.length) return;
    image = [];
    at = expectOpening(text, at);
  }
}

function expectOpening(text: string, at: number): number {
  if (text.charCodeAt(at) !== OPEN) throw broken('a row does not start with a parenthesis');
  return at + 1;
}

/** Index of the quote that ends the field: the first one that is not doubled. */
function findClosingQuote(text: string, from: number): number {
  let at = from;
  for (;;) {
    at = text.indexOf('"', at);
    if (at < 0) throw broken('a quoted column has no end');
    if (text.charCodeAt(at + 1) !== QUOTE) return at;
    at += 2;
  }
}

/**
 * Characters that make the output function quote a text. Beyond ASCII, the server's locale decides
 * what counts as white space.
 */
const QUOTABLE = /[\t-\r "\\(),\u0080-\uffff]/;

/** Inside quotes, quotes and backslashes are doubled and nothing else is escaped. */
function unescapeField(quoted: string): string {
  if (quoted !== '' && !QUOTABLE.test(quoted)) throw broken('a column is quoted without need');
  const plain = quoted.includes('"') ? quoted.replaceAll('""', '"') : quoted;
  if (!plain.includes('\\')) return plain;
  if (/(?<!\\)(?:\\\\)*\\(?!\\)/.test(plain)) throw broken('a backslash is not doubled');
  return plain.replaceAll('\\\\', '\\');
}

/**
 * Finds the end of an unquoted field. Throws for characters that the output function always quotes.
 */
function skipPlain(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === CLOSE) return at;
    const quotable =
      code === QUOTE ||
      code === 0x5c ||
      code === OPEN ||
      code === 0x20 ||
      (code >= 0x09 && code <= 0x0d);
    if (quotable) throw broken('an unquoted column holds a character that would have been quoted');
  }
  return at;
}

const broken = errorsOf(
  'ERR_EM_INVARIANT',
  'a row of the database cannot be read as its output function writes it: ',
);
