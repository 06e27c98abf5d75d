import { EffectMatchError } from '../errors.ts';

const MAX_SOURCE = 256;
const MAX_REPEAT = 256;
const LAST_CODE_POINT = 0x10ffff;

/** Code points from..to, inclusive. */
export type Range = readonly [number, number];

/** A parsed pattern. An empty sequence matches the empty text. */
export type PatternNode =
  | { readonly kind: 'set'; readonly ranges: readonly Range[] }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly PatternNode[] }
  | {
      readonly kind: 'repeat';
      readonly part: PatternNode;
      readonly min: number;
      readonly max: number;
    };

const DIGIT: readonly Range[] = [[0x30, 0x39]];
const WORD: readonly Range[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const SPACE: readonly Range[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const CLASSES: Readonly<Record<string, readonly Range[]>> = {
  d: DIGIT,
  w: WORD,
  s: SPACE,
  D: complement(DIGIT),
  W: complement(WORD),
  S: complement(SPACE),
};

/** Parses a pattern; see `compilePattern` for the syntax. Errors name the position. */
export function parsePattern(source: string): PatternNode {
  return new Parser(source).parse();
}

class Parser {
  readonly #source: string;
  readonly #characters: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#source = source;
    this.#characters = Array.from(source);
    if (source.length > MAX_SOURCE)
      throw this.#refuse(`longer than ${MAX_SOURCE} characters`, MAX_SOURCE + 1);
  }

  parse(): PatternNode {
    const node = this.#parseChoice();
    if (this.#at < this.#characters.length) throw this.#refuse('a ) without its (', this.#at + 1);
    return node;
  }

  #parseChoice(): PatternNode {
    const parts = [this.#parseSequence()];
    while (this.#take('|')) parts.push(this.#parseSequence());
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'choice', parts };
  }

  #parseSequence(): PatternNode {
    const parts: PatternNode[] = [];
    for (
      let next = this.#peek();
      next !== undefined && next !== '|' && next !== ')';
      next = this.#peek()
    ) {
      parts.push(this.#parseRepeat());
    }
    return { kind: 'sequence', parts };
  }

  #parseRepeat(): PatternNode {
    const part = this.#parseAtom();
    const bounds = this.#parseBounds();
    if (bounds === undefined) return part;
    const after = this.#peek();
    if (after === '?' || after === '+' || after === '*' || after === '{') {
      throw this.#refuse(
        'a repetition of a repetition, or a lazy one; use a group, or drop it',
        this.#at + 1,
      );
    }
    return { kind: 'repeat', part, ...bounds };
  }

  #parseBounds(): { readonly min: number; readonly max: number } | undefined {
    if (this.#take('*')) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take('+')) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take('?')) return { min: 0, max: 1 };
    if (!this.#take('{')) return undefined;
    const min = this.#parseNumber();
    let max = min;
    if (this.#take(','))
      max = this.#peek() === '}' ? Number.POSITIVE_INFINITY : this.#parseNumber();
    if (!this.#take('}'))
      throw this.#refuse('a repetition that is not {m}, {m,} or {m,n}', this.#at + 1);
    if (max < min) throw this.#refuse('a repetition whose upper bound is below its lower bound');
    return { min, max };
  }

  #parseNumber(): number {
    let digits = '';
    while (/^[0-9]$/.test(this.#peek() ?? '') && digits.length < 4) digits += this.#next();
    if (digits === '')
      throw this.#refuse('a repetition that is not {m}, {m,} or {m,n}', this.#at + 1);
    if (Number(digits) > MAX_REPEAT) throw this.#refuse(`a repetition of more than ${MAX_REPEAT}`);
    return Number(digits);
  }

  #parseAtom(): PatternNode {
    const character = this.#next();
    switch (character) {
      case '(': {
        const opened = this.#at;
        if (this.#take('?') && !this.#take(':'))
          throw this.#refuse('a group that is not (…) or (?:…); no lookaround');
        const node = this.#parseChoice();
        if (!this.#take(')')) throw this.#refuse('a ( without its )', opened);
        return node;
      }
      case '[':
        return this.#parseClass();
      case '.':
        return { kind: 'set', ranges: [[0, LAST_CODE_POINT]] };
      case '\\':
        return { kind: 'set', ranges: this.#parseEscape() };
      case '^':
      case '$':
        throw this.#refuse(
          `an anchor; a pattern always covers the whole text, write \\${character} for the character`,
        );
      case '*':
      case '+':
      case '?':
        throw this.#refuse('a repetition of nothing');
      case '{':
      case '}':
      case ']':
        throw this.#refuse(`a ${character} that must be written \\${character}`);
      default:
        return { kind: 'set', ranges: [toRange(character)] };
    }
  }

  #parseClass(): PatternNode {
    const negated = this.#take('^');
    const ranges: Range[] = [];
    while (!this.#take(']')) {
      const low = this.#parseMember();
      const isRange = this.#peek() === '-' && this.#characters[this.#at + 1] !== ']';
      if (!isRange) {
        ranges.push(...low);
        continue;
      }
      this.#next();
      const high = this.#parseMember();
      const from = singleOf(low);
      const to = singleOf(high);
      if (from === undefined || to === undefined || to < from)
        throw this.#refuse('a range that is not from-to');
      ranges.push([from, to]);
    }
    if (ranges.length === 0) throw this.#refuse('an empty class');
    return { kind: 'set', ranges: negated ? complement(ranges) : ranges };
  }

  #parseMember(): readonly Range[] {
    const character = this.#next();
    if (character === '[') throw this.#refuse('a [ inside a class that must be written \\[');
    return character === '\\' ? this.#parseEscape() : [toRange(character)];
  }

  #parseEscape(): readonly Range[] {
    const character = this.#next();
    const ranges = CLASSES[character];
    if (ranges !== undefined) return ranges;
    if (!/^[!-/:-@[-`{-~]$/.test(character)) {
      throw this.#refuse(
        `an escape \\${character}; only \\d \\w \\s \\D \\W \\S and punctuation can be escaped`,
      );
    }
    return [toRange(character)];
  }

  #peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at += 1;
    return true;
  }

  #next(): string {
    const character = this.#peek();
    this.#at += 1;
    if (character === undefined) throw this.#refuse('cut short');
    return character;
  }

  /** Positions count from 1. The default is the character just taken. */
  #refuse(why: string, position = this.#at): EffectMatchError {
    return new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      `pattern ${JSON.stringify(this.#source)} is not supported: ${why} (at character ${position})`,
    );
  }
}

function toRange(character: string): Range {
  const codePoint = character.codePointAt(0) ?? 0;
  return [codePoint, codePoint];
}

function singleOf(ranges: readonly Range[]): number | undefined {
  const first = ranges[0];
  return ranges.length === 1 && first !== undefined && first[0] === first[1] ? first[0] : undefined;
}

function complement(ranges: readonly Range[]): Range[] {
  const result: Range[] = [];
  let from = 0;
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (low > from) result.push([from, low - 1]);
    from = Math.max(from, high + 1);
  }
  if (from <= LAST_CODE_POINT) result.push([from, LAST_CODE_POINT]);
  return result;
}
