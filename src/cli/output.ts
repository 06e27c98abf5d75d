import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';

/** What text may be emphasised as; each maps to one terminal colour. */
export type Tone = 'plain' | 'strong' | 'dim' | 'good' | 'bad' | 'caution';

const CODES: Record<Tone, readonly [number, number] | undefined> = {
  plain: undefined,
  strong: [1, 22],
  dim: [2, 22],
  good: [32, 39],
  bad: [31, 39],
  caution: [33, 39],
};

/** Where a verb prints: lines for people, or one JSON document for programs, never both. */
export interface Output {
  readonly json: boolean;
  /** How many columns a line may have: those of the terminal, or as `COLUMNS` says. */
  readonly width: number;
  /** One or several lines for people; nothing in JSON mode. */
  line(text?: string): void;
  /** The one document of JSON mode; nothing otherwise. */
  document(value: unknown): void;
  /** One of many documents in JSON mode, one per line, for a stream without an end. */
  row(value: unknown): void;
  /** Text in a colour, where colour is wanted. */
  paint(tone: Tone, text: string): string;
}

/** Colour only on a terminal, and never when `NO_COLOR` or `--no-color` says so. */
export function createOutput(
  stream: NodeJS.WriteStream,
  options: { readonly json: boolean; readonly noColor: boolean },
): Output {
  const { json, noColor } = options;
  const { NO_COLOR, TERM } = process.env;
  const coloured = stream.isTTY && !noColor && (NO_COLOR ?? '') === '' && TERM !== 'dumb';
  const { columns = Number(process.env.COLUMNS) || Number.POSITIVE_INFINITY } = stream;
  return {
    json,
    width: columns,
    line(text = '') {
      if (!json) stream.write(`${text}\n`);
    },
    document(value) {
      if (json) stream.write(`${escapeHidden(JSON.stringify(value, null, 2))}\n`);
    },
    row(value) {
      if (json) stream.write(`${escapeHidden(JSON.stringify(value))}\n`);
    },
    paint(tone, text) {
      const codes = CODES[tone];
      return codes === undefined || !coloured
        ? text
        : `\u001b[${codes[0]}m${text}\u001b[${codes[1]}m`;
    },
  };
}

/** What a terminal acts on or does not show: controls, reordering marks, invisible characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Text from records as a terminal may show it: control characters, marks that reorder text and
 * invisible characters become visible escapes, so that nothing stored in a journal can repaint or
 * imitate the text around it. Line breaks stay.
 */
export function printable(text: string): string {
  return text.replace(HIDDEN, (char) =>
    char === '\n' ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`,
  );
}

/** The same for JSON, which by itself escapes only the oldest controls. The value stays the same. */
function escapeHidden(json: string): string {
  return json.replace(HIDDEN, (char) =>
    char === '\n'
      ? char
      : char.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

/** The same on one line: a line break in a record must not start what looks like a new row. */
export function printableLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n');
}

/** Every line moved to the right. */
export function indent(text: string, by: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(by));
}

/** The words of a paragraph on lines of at most `width` characters; a longer word gets its own. */
export function fold(paragraph: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of paragraph.split(/\s+/)) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push(line);
      line = '';
    }
    line += line === '' ? word : ` ${word}`;
  }
  return [...lines, line];
}

/** Lines of at most `width` characters, broken at spaces if possible, continued with an indent. */
export function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap((line) => {
    const lines: string[] = [];
    let rest = line;
    while (rest.length > width) {
      const space = rest.lastIndexOf(' ', width);
      const at = space > width / 2 ? space : width;
      lines.push(rest.slice(0, at));
      rest = `  ${rest.slice(at).trimStart()}`;
    }
    return [...lines, rest];
  });
}

/** The text in at most `width` characters; an ellipsis stands for what is left out. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1).toWellFormed()}…`;
}

/** `1 row`, `2 rows`. */
export function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Enough of an id to name it: verbs take any unique prefix. */
export function shortId(occurrence: OccurrenceId): string {
  return occurrence.slice(0, 16);
}

/** Green for the one verdict that releases work, red and yellow for those that do not. */
export function toneOf(kind: Terminal['kind']): Tone {
  if (kind === 'committed') return 'good';
  return kind === 'indeterminate' ? 'caution' : 'bad';
}
