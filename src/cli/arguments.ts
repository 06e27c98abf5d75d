import { parseArgs } from 'node:util';
import { usageError } from './guided-error.ts';

/** One flag of a verb, as its help lists it. */
export interface Flag {
  /** What stands after the flag, for example `FILE`; absent for a switch. */
  readonly value?: string;
  readonly about: string;
}

export type Flags = Readonly<Record<string, Flag>>;

/** Every verb takes these. */
export const COMMON_FLAGS = {
  json: { about: 'print one JSON document' },
  'no-color': { about: 'print without colour' },
  help: { about: 'print this help' },
} satisfies Flags;

/** Verbs that need a deployment take this one too. */
export const CONFIG_FLAG = {
  config: {
    value: 'FILE',
    about: 'configuration file (default: effectmatch.config.ts, .mts, .js or .mjs in this folder)',
  },
} satisfies Flags;

/**
 * What a verb was called with: every flag is known, given once, and has a value where it takes one.
 */
export interface Arguments {
  readonly positionals: readonly string[];
  has(flag: string): boolean;
  value(flag: string): string | undefined;
  /** A whole number of at least `least`. */
  count(flag: string, least: number): number | undefined;
}

/**
 * Reads a verb's arguments strictly: anything unknown, doubled or incomplete is refused before
 * anything is done.
 */
export function readArguments(
  verb: string,
  argv: readonly string[],
  spec: {
    readonly flags: Flags;
    readonly positionals: readonly string[];
    readonly optional?: readonly string[];
  },
): Arguments {
  const flags: Flags = { ...spec.flags, ...COMMON_FLAGS };
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [
      name,
      {
        type: flag.value === undefined ? ('boolean' as const) : ('string' as const),
        ...(name === 'help' && { short: 'h' }),
      },
    ]),
  );
  const { tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const values = new Map<string, string | true>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined)
      throw usageError(unknownWord('flag', rawName, Object.keys(flags).map(dashed)), verb);
    if (values.has(name)) throw usageError(`${rawName} is given twice`, verb);
    if (flag.value === undefined && value !== undefined)
      throw usageError(`${rawName} takes no value`, verb);
    if (
      flag.value !== undefined &&
      (value === undefined || value === '' || (!token.inlineValue && value.startsWith('-')))
    ) {
      throw usageError(`${rawName} needs a value: ${rawName} ${flag.value}`, verb);
    }
    values.set(name, value ?? true);
  }
  if (!values.has('help'))
    checkPositionals(verb, positionals, spec.positionals, spec.optional?.length ?? 0);
  const value = (flag: string) => {
    const found = values.get(flag);
    return found === true ? undefined : found;
  };
  return {
    positionals,
    has: (flag) => values.has(flag),
    value,
    count: (flag, least) => readCount(verb, flag, value(flag), least),
  };
}

function checkPositionals(
  verb: string,
  given: readonly string[],
  wanted: readonly string[],
  more: number,
): void {
  const missing = wanted[given.length];
  if (missing !== undefined)
    throw usageError(`<${missing}> is missing: effectmatch ${verb} <${wanted.join('> <')}>`, verb);
  const extra = given[wanted.length + more];
  if (extra !== undefined) throw usageError(`\`${verb}\` does not take "${extra}"`, verb);
}

function readCount(
  verb: string,
  flag: string,
  text: string | undefined,
  least: number,
): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= least))
    throw usageError(`--${flag} takes a whole number of at least ${least}, not "${text}"`, verb);
  return number;
}

const dashed = (name: string): string => `--${name}`;
const bare = (word: string): string => word.replace(/^-+/, '');

/** Says that a word is not known, and which known one was probably meant. */
export function unknownWord(what: string, word: string, known: readonly string[]): string {
  const [nearest] = known
    .map((candidate) => ({
      candidate,
      distance: countSlips(bare(word.toLowerCase()), bare(candidate)),
    }))
    .sort((a, b) => a.distance - b.distance);
  const near =
    nearest !== undefined &&
    nearest.distance <= Math.max(1, Math.floor(bare(nearest.candidate).length / 3));
  return `unknown ${what} "${word}"${near ? `; did you mean "${nearest.candidate}"?` : ''}`;
}

/**
 * How many slips lie between two words: a letter too many, too few or wrong, or two neighbours
 * swapped.
 */
function countSlips(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j += 1) {
      const wrong = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : wrong;
      row.push(Math.min(wrong, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(a.length, b.length);
}
