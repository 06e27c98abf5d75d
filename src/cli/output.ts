import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';

/** How text is emphasised. Each tone maps to one terminal style. */
export type Tone = 'plain' | 'strong' | 'dim' | 'good' | 'bad' | 'caution';

const CODES: Record<Tone, readonly [number, number] | undefined> = {
  plain: undefined,
  strong: [1, 22],
  dim: [2, 22],
  good: [32, 39],
  bad: [31, 39],
  caution: [33, 39],
};

/** Where a verb prints: lines for people, or JSON for programs, never both. */
export interface Output {
  readonly json: boolean;
  /** The columns of a line, from the terminal or from `COLUMNS`. */
  readonly width: number;
  /** Prints one or more lines for people. Prints nothing in JSON mode. */
  line(text?: string): void;
  /** Prints a line that begins with a coloured word. */
  item(tone: Tone, word: string, text: string): void;
  /** Prints the document in JSON mode. Prints nothing otherwise. */
  document(value: unknown): void;
  /** Prints one of many documents in JSON mode, one per line, for an endless stream. */
  row(value: unknown): void;
  /** Colours text, if colour is enabled. */
  paint(tone: Tone, text: string): string;
}

/** Colours are used only on a terminal, and never with `NO_COLOR` or `--no-color`. */
export function createOutput(
  stream: NodeJS.WriteStream,
  options: { readonly json: boolean; readonly noColor: boolean },
): Output {
  const { json, noColor } = options;
  const { NO_COLOR, TERM } = process.env;
  const coloured = stream.isTTY && !noColor && (NO_COLOR ?? '') === '' && TERM !== 'dumb';
  const { columns = Number(process.env.COLUMNS) || Number.POSITIVE_INFINITY } = stream;
  const line = (text = '') => {
    if (!json) stream.write(`${text}\n`);
  };
  const paint = (tone: Tone, text: string) => {
    const codes = CODES[tone];
    if (codes === undefined || !coloured) return text;
    return `\u001b[${codes[0]}m${text}\u001b[${codes[1]}m`;
  };
  return {
    json,
    width: columns,
    line,
    paint,
    item: (tone, word, text) => line(`${paint(tone, word)}  ${text}`),
    document(value) {
      if (json) stream.write(`${escapeHidden(JSON.stringify(value, null, 2))}\n`);
    },
    row(value) {
      if (json) stream.write(`${escapeHidden(JSON.stringify(value))}\n`);
    },
  };
}

/** Characters that a terminal acts on or hides: controls, reordering marks, invisible ones. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Makes text from records safe for a terminal. Control characters, marks that reorder text and
 * invisible characters become visible escapes, so that nothing in a journal can overwrite or
 * imitate the text around it. Line breaks stay.
 */
export function printable(text: string): string {
  return text.replace(HIDDEN, (char) =>
    char === '\n' ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`,
  );
}

/** Like {@link printable}, for JSON, which itself escapes only ASCII controls. */
function escapeHidden(json: string): string {
  return json.replace(HIDDEN, (char) =>
    char === '\n'
      ? char
      : char.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

/** Like {@link printable}, on one line: a line break in a record must not look like a new row. */
export function printableLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n');
}

/** Indents every line. */
export function indent(text: string, by: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(by));
}

/** Wraps text to `width` characters, at spaces if possible. Continuation lines are indented. */
export function wrap(text: string, width: number, indentation = '  '): string[] {
  return text.split('\n').flatMap((line) => {
    const lines: string[] = [];
    let rest = line;
    while (rest.length > width) {
      const space = rest.lastIndexOf(' ', width);
      const at = space > width / 2 ? space : width;
      lines.push(rest.slice(0, at));
      rest = `${indentation}${rest.slice(at).trimStart()}`;
    }
    return [...lines, rest];
  });
}

/** Wraps a paragraph, whatever its line breaks, to lines of at most `width` characters. */
export function fold(paragraph: string, width: number): readonly string[] {
  return wrap(paragraph.replace(/\s+/g, ' '), width, '');
}

/** The width of text for an approver if the terminal's width is unknown. */
const WIDTH_UNKNOWN = 80;
const WIDTH_MIN = 30;

/**
 * Wraps a line of an approval so that the terminal does not: a line broken by the terminal could
 * look like a separate line of the approval. Continuation lines repeat the indent and the bar of
 * the first, followed by `> `, with which no other line begins.
 */
export function wrapMarked(line: string, width: number): readonly string[] {
  const isKnown = width > 0 && Number.isFinite(width);
  const columns = Math.max(WIDTH_MIN, isKnown ? width : WIDTH_UNKNOWN);
  if (line.length <= columns && columnsOf(line) <= columns) return [line];
  const [start = ''] = /^ *(?:\| )?/.exec(line) ?? [];
  const lines: string[] = [];
  let shown = start;
  let used = start.length;
  const startLine = () => {
    lines.push(shown.trimEnd());
    shown = `${start}  > `;
    used = shown.length;
  };
  for (const word of line.slice(start.length).match(/[^ ]+ *| +/g) ?? []) {
    const length = columnsOf(word);
    if (used + length > columns && length <= columns / 2) startLine();
    for (const character of word) {
      const size = columnsOf(character);
      if (used + size > columns) startLine();
      shown += character;
      used += size;
    }
  }
  return [...lines, shown];
}

/** The most columns a text can take: terminals may draw non-ASCII characters twice as wide. */
function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += character > '\u007e' ? 2 : 1;
  return columns;
}

/** Shortens text to `width` characters, with an ellipsis at the end. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1).toWellFormed()}…`;
}

/** `1 row`, `2 rows`. */
export function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Enough of an id to identify it: verbs accept any unique prefix. */
export function shortId(occurrence: OccurrenceId): string {
  return occurrence.slice(0, 16);
}

/** Green for the only verdict that releases work, red or yellow for the others. */
export function toneOf(kind: Terminal['kind']): Tone {
  if (kind === 'committed') return 'good';
  return kind === 'indeterminate' ? 'caution' : 'bad';
}
