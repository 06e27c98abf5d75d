import { EffectMatchError } from '../errors.ts';

const MAX_SOURCE = 256;
const MAX_REPEAT = 256;
const MAX_STATES = 4096;

/**
 * A state consumes one character that its expression matches, or forks without consuming any. The
 * last state accepts.
 */
type State =
  | { readonly kind: 'set'; readonly characters: RegExp }
  | { readonly kind: 'fork'; readonly to: readonly number[] };

/** A compiled `matches` pattern. It always applies to the whole text. */
export interface Pattern {
  readonly source: string;
  readonly states: readonly State[];
}

/**
 * Compiles a pattern in the small language that approvers may use: literals, `.`, classes, `\d \w
 * \s` and their negations, groups, `|`, `* + ?` and counted repetition, over code points. Anything
 * else is refused with its position, because a pattern that its author misreads approves the wrong
 * thing.
 */
export function compilePattern(source: string): Pattern {
  return { source, states: new Compiler(source).compile() };
}

/**
 * Whether the whole text matches, and how many states were visited. All alternatives advance
 * together, one code point at a time, so the work is at most text length × states for any pattern:
 * the agent chooses the text and must not control the cost. The run stops after `maxSteps`, and
 * `matched` is then meaningless.
 */
export function runPattern(
  pattern: Pattern,
  text: string,
  maxSteps = Number.POSITIVE_INFINITY,
): { readonly matched: boolean; readonly steps: number } {
  const { states } = pattern;
  const seenAt = new Int32Array(states.length + 1).fill(-1);
  let current: number[] = [];
  let steps = 0;
  const enter = (state: number, round: number, list: number[]): void => {
    const pending = [state];
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      if (seenAt[at] === round) continue;
      seenAt[at] = round;
      steps += 1;
      const found = states[at];
      if (found?.kind === 'fork') pending.push(...found.to);
      else list.push(at);
    }
  };
  let round = 0;
  enter(0, round, current);
  for (const character of text) {
    if (current.length === 0) break;
    if (steps > maxSteps) return { matched: false, steps };
    const next: number[] = [];
    round += 1;
    for (const at of current) {
      const state = states[at];
      if (state?.kind === 'set' && state.characters.test(character)) enter(at + 1, round, next);
    }
    current = next;
  }
  return { matched: current.includes(states.length), steps };
}

/**
 * A part of a pattern: appends its states. It ends by falling through to the state after its last
 * one, and a repetition calls it several times.
 */
type Part = () => void;

/** One code point, or a shorthand such as `\d` for many. */
type Member = number | string;

/** Reads the whole pattern before it makes any state, so that errors name the position. */
class Compiler {
  readonly #source: string;
  readonly #characters: readonly string[];
  readonly #states: State[] = [];
  #at = 0;

  constructor(source: string) {
    this.#source = source;
    this.#characters = Array.from(source);
    if (source.length > MAX_SOURCE)
      throw this.#refuse(`longer than ${MAX_SOURCE} characters`, MAX_SOURCE + 1);
  }

  compile(): readonly State[] {
    const emit = this.#readChoice();
    if (this.#at < this.#characters.length) throw this.#refuse('a ) without its (', this.#at + 1);
    emit();
    return this.#states;
  }

  #readChoice(): Part {
    const parts = [this.#readSequence()];
    while (this.#take('|')) parts.push(this.#readSequence());
    const [only] = parts;
    if (parts.length === 1 && only !== undefined) return only;
    return () => {
      const fork = this.#reserve();
      const starts: number[] = [];
      const ends: number[] = [];
      for (const emit of parts) {
        starts.push(this.#states.length);
        emit();
        ends.push(this.#reserve());
      }
      this.#fork(fork, ...starts);
      for (const end of ends) this.#fork(end, this.#states.length);
    };
  }

  #readSequence(): Part {
    const parts: Part[] = [];
    while (!['|', ')', undefined].includes(this.#peek())) parts.push(this.#readRepeat());
    return () => {
      for (const emit of parts) emit();
    };
  }

  #readRepeat(): Part {
    const emit = this.#readAtom();
    const bounds = this.#readBounds();
    if (bounds === undefined) return emit;
    if (['?', '+', '*', '{'].includes(this.#peek() ?? '')) {
      throw this.#refuse(
        'a repetition of a repetition, or a lazy one; use a group, or drop it',
        this.#at + 1,
      );
    }
    return () => this.#repeat(emit, bounds);
  }

  #repeat(emit: Part, { min, max }: { readonly min: number; readonly max: number }): void {
    for (let count = 0; count < min; count += 1) {
      const start = this.#reserve(); // empty parts count too
      this.#fork(start, start + 1);
      emit();
    }
    if (max === Number.POSITIVE_INFINITY) {
      const fork = this.#reserve();
      emit();
      const back = this.#reserve();
      this.#fork(back, fork);
      this.#fork(fork, fork + 1, back + 1);
      return;
    }
    const forks: number[] = [];
    for (let count = min; count < max; count += 1) {
      forks.push(this.#reserve());
      emit();
    }
    for (const fork of forks) this.#fork(fork, fork + 1, this.#states.length);
  }

  #readBounds(): { readonly min: number; readonly max: number } | undefined {
    if (this.#take('*')) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take('+')) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take('?')) return { min: 0, max: 1 };
    if (!this.#take('{')) return undefined;
    const min = this.#readNumber();
    let max = min;
    if (this.#take(',')) max = this.#peek() === '}' ? Number.POSITIVE_INFINITY : this.#readNumber();
    if (!this.#take('}'))
      throw this.#refuse('a repetition that is not {m}, {m,} or {m,n}', this.#at + 1);
    if (max < min) throw this.#refuse('a repetition whose upper bound is below its lower bound');
    return { min, max };
  }

  #readNumber(): number {
    let digits = '';
    while (/^[0-9]$/.test(this.#peek() ?? '') && digits.length < 4) digits += this.#next();
    if (digits === '')
      throw this.#refuse('a repetition that is not {m}, {m,} or {m,n}', this.#at + 1);
    if (Number(digits) > MAX_REPEAT) throw this.#refuse(`a repetition of more than ${MAX_REPEAT}`);
    return Number(digits);
  }

  #readAtom(): Part {
    const character = this.#next();
    switch (character) {
      case '(':
        return this.#readGroup();
      case '[':
        return this.#readClass();
      case '.':
        return this.#setOf('.');
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
        return this.#setOf(spell(this.#readMember(character)));
    }
  }

  #readGroup(): Part {
    const opened = this.#at;
    if (this.#take('?') && !this.#take(':'))
      throw this.#refuse('a group that is not (…) or (?:…); no lookaround');
    const emit = this.#readChoice();
    if (!this.#take(')')) throw this.#refuse('a ( without its )', opened);
    return emit;
  }

  #readClass(): Part {
    const negation = this.#take('^') ? '^' : '';
    let members = '';
    while (!this.#take(']')) {
      const low = this.#readClassMember();
      members += spell(low);
      if (this.#peek() !== '-' || this.#characters[this.#at + 1] === ']') continue;
      this.#next();
      const high = this.#readClassMember();
      if (typeof low === 'string' || typeof high === 'string' || high < low)
        throw this.#refuse('a range that is not from-to');
      members += `-${spell(high)}`;
    }
    if (members === '') throw this.#refuse('an empty class');
    return this.#setOf(`[${negation}${members}]`);
  }

  #readClassMember(): Member {
    const character = this.#next();
    if (character === '[') throw this.#refuse('a [ inside a class that must be written \\[');
    return this.#readMember(character);
  }

  #readMember(character: string): Member {
    if (character !== '\\') return character.codePointAt(0) ?? 0;
    const escaped = this.#next();
    if (/^[dwsDWS]$/.test(escaped)) return `\\${escaped}`;
    if (/^[!-/:-@[-`{-~]$/.test(escaped)) return escaped.codePointAt(0) ?? 0;
    throw this.#refuse(
      `an escape \\${escaped}; only \\d \\w \\s \\D \\W \\S and punctuation can be escaped`,
    );
  }

  /** RegExp only ever sees one character at a time, so it has nothing to backtrack over. */
  #setOf(expression: string): Part {
    const characters = new RegExp(expression, 'su');
    return () => this.#push({ kind: 'set', characters });
  }

  #fork(state: number, ...to: readonly number[]): void {
    this.#states[state] = { kind: 'fork', to };
  }

  #reserve(): number {
    return this.#push({ kind: 'fork', to: [] });
  }

  #push(state: State): number {
    if (this.#states.length < MAX_STATES) return this.#states.push(state) - 1;
    throw new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      `pattern ${JSON.stringify(this.#source)} needs more than ${MAX_STATES} states; repeat less or nest fewer repetitions`,
    );
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

/** A member as RegExp writes it. */
function spell(member: Member): string {
  return typeof member === 'string' ? member : `\\u{${member.toString(16)}}`;
}
