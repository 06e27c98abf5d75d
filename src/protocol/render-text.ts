import { unreachable } from '../errors.ts';
import type { Cell } from './effect.ts';
import { isObject, readTag, type Tagged, type Value } from './value.ts';

/** How much to show. By default, long values and large sets are shortened, and the text says so. */
export interface RenderOptions {
  readonly full?: boolean;
}

/**
 * The state of one rendering: whether everything is shown, and whether anything was left out so
 * far.
 */
export interface Rendering {
  readonly full: boolean;
  cut: boolean;
}

export function openRendering(options: RenderOptions): Rendering {
  return { full: options.full === true, cut: false };
}

/** Longer names of tasks and revisions are shortened. */
const NAME_LONG = 80;
const LONG = 200;
const HEAD = 120;
const TAIL = 40;

/**
 * Characters that are invisible, or that move or enclose their neighbours, including blanks other
 * than the space.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{DI}\p{Cn}\p{Me}\u2800\ufffc\u{16fe4}\u{1d159}]|(?! )\p{Zs}/u;
/** Long runs of blanks are shown as a count: they could push what follows to the next line. */
const BLANKS = / {8,}/g;
const EIGHT_BLANKS = ' '.repeat(8);
/** Text that is shown unchanged: printable ASCII without quote and backslash. Most text is. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const MARK = /\p{M}/u;
const LETTER = /\p{L}/u;
/** More accents than this on one letter would reach into neighbouring lines. */
const MARKS_SHOWN = 3;
const RIGHT_TO_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * A table name. Plain identifiers, including dotted ones, are shown unchanged; others are quoted.
 */
export function renderTarget(name: string): string {
  return /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/.test(name) ? name : quote(name);
}

/** A column name. Plain identifiers are shown unchanged; others are quoted. */
export function renderColumn(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : quote(name);
}

/**
 * A value in a form that cannot pass for another one. Text is always quoted, and invisible
 * characters are escaped. Types of numbers look alike, except that floating-point numbers have a
 * point or an exponent: one column has one type.
 */
export function renderValue(value: Value, rendering: Rendering): string {
  if (typeof value === 'string') return quoteValue(value, rendering);
  if (value === null || typeof value !== 'object') return String(value);
  const tagged = readTag(value);
  if (tagged !== undefined) return renderTagged(tagged, rendering);
  const [open, close, items] = isObject(value)
    ? [
        '{',
        '}',
        Object.keys(value)
          .sort()
          .map((key) => () => renderField(key, value[key] ?? null, rendering)),
      ]
    : ['[', ']', value.map((item) => () => renderValue(item, rendering))];
  return `${open}${joinWithin(items, rendering)}${close}`;
}

/**
 * What the approver states about one column. Constraints and placeholders are in angle brackets,
 * values never are.
 */
export function renderCell(cell: Cell, rendering: Rendering): string {
  if ('is' in cell) return renderValue(cell.is, rendering);
  if ('any' in cell) return '<any>';
  if ('generated' in cell) return `<generated ${renderColumn(cell.generated)}>`;
  if ('oneOf' in cell)
    return `<one of ${joinWithin(
      cell.oneOf.map((item) => () => renderValue(item, rendering)),
      rendering,
    )}>`;
  if ('between' in cell)
    return `<between ${cell.between.map((end) => renderValue(end, rendering)).join(' and ')}>`;
  if ('matches' in cell) return `<matches ${quote(cell.matches)}>`;
  if ('now' in cell)
    return `<now within ${renderDuration(cell.now.withinMs)}${UNITS[cell.now.unit]}>`;
  return unreachable(cell);
}

const UNITS = { iso: '', s: ', in seconds', ms: ', in milliseconds' } as const;

function renderDuration(ms: number): string {
  for (const [unit, size] of [
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
  ] as const) {
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}

function renderTagged({ tag, text }: Tagged, rendering: Rendering): string {
  switch (tag) {
    case '$int':
    case '$dec':
      return text;
    case '$real':
      return /^-?\d+$/.test(text) ? `${text}.0` : text;
    case '$bytes':
      return `bytes ${shortenHex(text, rendering)}`;
    case '$text':
      return `bytes ${shortenHex(text, rendering)} (as text)`;
    case '$digest':
      return `<value kept as digest ${renderColumn(text.slice(0, 16))}>`;
    case '$omitted':
      return `<value of ${text} bytes, too long to be kept>`;
    default:
      return unreachable(tag);
  }
}

function shortenHex(hex: string, rendering: Rendering): string {
  if (rendering.full || hex.length <= LONG) return `0x${hex}`;
  rendering.cut = true;
  return `0x${hex.slice(0, HEAD)} ... ${hex.slice(-TAIL)} (${hex.length / 2} bytes, shortened)`;
}

/** A field of data. Keys are shown as the application wrote them, without the doubled `$`. */
function renderField(key: string, value: Value, rendering: Rendering): string {
  return `${quoteValue(key.startsWith('$$') ? key.slice(1) : key, rendering)}: ${renderValue(value, rendering)}`;
}

function joinWithin(items: readonly (() => string)[], rendering: Rendering): string {
  const shown: string[] = [];
  let length = 0;
  for (const item of items) {
    if (!rendering.full && length > LONG) {
      rendering.cut = true;
      return `${shown.join(', ')}, <${items.length - shown.length} more, shortened>`;
    }
    const text = item();
    shown.push(text);
    length += text.length;
  }
  return shown.join(', ');
}

function quoteValue(text: string, rendering: Rendering): string {
  if (rendering.full || text.length <= LONG) return quote(text);
  const characters = Array.from(text);
  if (characters.length <= LONG) return quote(text);
  rendering.cut = true;
  const head = quote(characters.slice(0, HEAD).join(''));
  const tail = quote(characters.slice(-TAIL).join(''));
  return `${head} ... ${tail} (${characters.length} characters, shortened)`;
}

/**
 * Quotes text so that what is seen is what is there: controls, invisible and bidirectional
 * characters, blanks other than the space, and accents without a letter are written \u{…}. Eight or
 * more spaces are counted: \u{20 ×40}. Text with right-to-left letters is followed by Latin ones,
 * so that a display that reorders text cannot swap it with its neighbours.
 */
export function quote(text: string): string {
  if (PLAIN.test(text) && !text.includes(EIGHT_BLANKS)) return `"${text}"`;
  const escaped = /^[\x20-\x7e]*$/.test(text) ? text.replace(/["\\]/g, '\\$&') : spellOut(text);
  const shown = escaped.replace(BLANKS, countBlanks);
  return RIGHT_TO_LEFT.test(shown) ? `"${shown}"(rtl)` : `"${shown}"`;
}

function countBlanks(blanks: string): string {
  return `\\u{20 ×${blanks.length}}`;
}

/** The quoted name of a task or revision, shortened if it is long. */
export function quoteName(name: string, rendering: Rendering): string {
  const characters = Array.from(name);
  if (rendering.full || characters.length <= NAME_LONG) return quote(name);
  rendering.cut = true;
  const head = quote(characters.slice(0, NAME_LONG / 2).join(''));
  return `${head} ... (${characters.length} characters, shortened)`;
}

/** A sentence with control and formatting characters escaped, so that none takes effect. */
export function showControls(sentence: string): string {
  return sentence.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/**
 * Text from others on one line, without quotes. Characters that are invisible or move their
 * neighbours are escaped as in {@link quote}.
 */
export function showText(text: string): string {
  // Leading blanks are kept: they indent SQL.
  const shown = spellOut(text, '').replace(/(?<=\S) {8,}/g, countBlanks);
  return RIGHT_TO_LEFT.test(shown) ? `${shown}(rtl)` : shown;
}

function spellOut(text: string, escaped = '"\\'): string {
  let shown = '';
  let marksLeft = 0;
  for (const character of text) {
    if (HIDDEN.test(character) || isOverlay(character)) {
      shown += escapeCharacter(character);
      marksLeft = 0;
    } else if (MARK.test(character)) {
      shown += marksLeft > 0 ? character : escapeCharacter(character);
      marksLeft -= 1;
    } else {
      shown += escaped.includes(character) ? `\\${character}` : character;
      marksLeft = LETTER.test(character) ? MARKS_SHOWN : 0;
    }
  }
  return shown;
}

/** Marks that strike out letters, and marks for symbols: they could make a value look withdrawn. */
function isOverlay(character: string): boolean {
  const codePoint = character.codePointAt(0) ?? 0;
  return (codePoint >= 0x334 && codePoint <= 0x338) || (codePoint >= 0x20d0 && codePoint <= 0x20ff);
}

function escapeCharacter(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
