import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { suggest } from '../protocol/nearest.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type GuidedError, usageError } from './fault.ts';
import type { Output } from './output.ts';

/** The exit codes, for scripts that do not parse the output. */
export const EXIT = {
  done: 0,
  fault: 1,
  rejected: 2,
  diverged: 3,
  indeterminate: 4,
  halted: 5,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit code of a verdict. A missing verdict has its own code, because it permits nothing. */
export function exitCodeOf(terminal: Terminal | undefined): ExitCode {
  if (terminal === undefined) return EXIT.halted;
  return terminal.kind === 'committed' ? EXIT.done : EXIT[terminal.kind];
}

/** A command of the CLI. Parsing, help and completion all use this description. */
export interface Verb {
  /** One line for the list of verbs. */
  readonly summary: string;
  /** The text of the verb's help, in whole sentences. */
  readonly about: string;
  /** The required arguments, in order. */
  readonly positionals?: readonly string[];
  /** The optional arguments after them. */
  readonly optional?: readonly string[];
  readonly flags?: Flags;
  /** The arguments of example commands. */
  readonly examples: readonly string[];
  /** Text to copy, printed verbatim after the examples. */
  readonly blocks?: readonly { readonly title: string; readonly text: string }[];
  // biome-ignore lint/suspicious/noConfusingVoidType: a verb that returns no exit code is done.
  run(args: Arguments, output: Output): Promise<ExitCode | void>;
}

/** A verb with the name of its file. */
export type NamedVerb = Verb & { readonly name: string };

/** One flag of a verb. */
interface Flag {
  /** The placeholder of the flag's value, such as `FILE`; absent for a switch. */
  readonly value?: string;
  readonly about: string;
  /** The flag requires this other flag. */
  readonly needs?: string;
  /** The flag may be given several times. */
  readonly repeats?: true;
  /** The flag cannot be combined with any of these. */
  readonly excludes?: readonly string[];
}

export type Flags = Readonly<Record<string, Flag>>;

/** The flags of every verb. */
const COMMON_FLAGS: Flags = {
  json: { about: 'print one JSON document' },
  'no-color': { about: 'print without colour' },
  help: { about: 'print this help' },
};

/** The flag of every verb that needs a deployment. */
export const CONFIG_FLAG = {
  config: {
    value: 'FILE',
    about: 'configuration file (default: effectmatch.config.ts, .mts, .js or .mjs in this folder)',
  },
} satisfies Flags;

/** The flags of a verb, including the common ones. */
export const flagsOf = ({ flags }: Pick<Verb, 'flags'>): Flags => ({ ...flags, ...COMMON_FLAGS });

/** The parsed arguments of a verb. All flags are known and have a value if they need one. */
export class Arguments {
  readonly positionals: readonly string[];
  readonly #verb: string;
  /** Verbs may change to the folder of the configuration later. */
  readonly #folder = process.cwd();
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(
    verb: string,
    positionals: readonly string[],
    values: ReadonlyMap<string, readonly string[]>,
  ) {
    this.#verb = verb;
    this.positionals = positionals;
    this.#values = values;
  }

  /** The first argument; empty if it is optional and missing. */
  get first(): string {
    return this.positionals[0] ?? '';
  }

  has(flag: string): boolean {
    return this.#values.has(flag);
  }

  value(flag: string): string | undefined {
    return this.values(flag)[0];
  }

  /** Every value of a flag, in the order given. */
  values(flag: string): readonly string[] {
    return this.#values.get(flag) ?? [];
  }

  /** The value of a required flag. */
  needed(flag: string): string {
    const value = this.value(flag);
    if (value === undefined) throw this.wrong(`--${flag} is required`);
    return value;
  }

  /** The absolute path of the file that a flag names. */
  path(flag: string): string | undefined {
    return this.has(flag) ? this.neededPath(flag) : undefined;
  }

  neededPath(flag: string): string {
    return resolve(this.#folder, this.needed(flag));
  }

  /** A whole number of at least `least`. */
  count(flag: string, least: number): number | undefined {
    const text = this.value(flag);
    if (text === undefined) return undefined;
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least) return number;
    throw this.wrong(`--${flag} takes a whole number of at least ${least}, not "${text}"`);
  }

  /** One of a few words. */
  choice<W extends string>(flag: string, words: readonly W[]): W | undefined {
    const given = this.value(flag);
    const word = words.find((known) => known === given);
    if (given === undefined || word !== undefined) return word;
    throw this.wrong(`--${flag} takes one of ${words.join(', ')}, not "${given}"`);
  }

  /** A usage error that refers to the verb's help. */
  wrong(message: string): GuidedError<'ERR_EM_USAGE'> {
    return usageError(message, this.#verb);
  }
}

/** What looks like a flag. SQL that starts with a comment (`-- …`) does not. */
const FLAG = /^--?[a-z][\w-]*(?:=|$)/i;

/** The part of a verb's description that defines its arguments. */
type Signature = Pick<Verb, 'flags' | 'positionals' | 'optional'>;

/**
 * Parses a verb's arguments strictly. Rejects unknown, repeated and incomplete flags before
 * anything is done.
 */
export function readArguments(
  verb: string,
  argv: readonly string[],
  signature: Signature,
): Arguments {
  const flags = flagsOf(signature);
  const options = Object.entries(flags).map(([name, { value }]) => {
    const type: 'boolean' | 'string' = value === undefined ? 'boolean' : 'string';
    return [name, { type, ...(name === 'help' && { short: 'h' }) }] as const;
  });
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(options),
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
  const args = new Arguments(verb, positionals, values);
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue = false } = token;
    if (!Object.hasOwn(flags, name))
      throw args.wrong(unknownWord('flag', rawName, Object.keys(flags).map(dashed)));
    const { value: wanted, repeats = false } = flags[name] ?? {};
    const given = values.get(name);
    if (given !== undefined && !repeats) throw args.wrong(`${rawName} is given twice`);
    if (wanted === undefined && value !== undefined) throw args.wrong(`${rawName} takes no value`);
    const isMissing = !value || (!inlineValue && FLAG.test(value));
    if (wanted !== undefined && isMissing)
      throw args.wrong(`${rawName} needs a value: ${rawName} ${wanted}`);
    values.set(name, [...(given ?? []), ...(value === undefined ? [] : [value])]);
  }
  if (args.has('help')) return args;
  checkPositionals(verb, args, signature);
  checkTogether(args, flags);
  return args;
}

function checkPositionals(verb: string, args: Arguments, signature: Signature): void {
  const { positionals: wanted = [], optional = [] } = signature;
  const given = args.positionals;
  const missing = wanted[given.length];
  if (missing !== undefined)
    throw args.wrong(`<${missing}> is missing: effectmatch ${verb} <${wanted.join('> <')}>`);
  const extra = given[wanted.length + optional.length];
  if (extra !== undefined) throw args.wrong(`\`${verb}\` does not take "${extra}"`);
}

function checkTogether(args: Arguments, flags: Flags): void {
  for (const [name, { needs, excludes = [] }] of Object.entries(flags)) {
    if (!args.has(name)) continue;
    const other = excludes.find((excluded) => args.has(excluded));
    if (other !== undefined) throw args.wrong(`--${other} cannot be combined with --${name}`);
    if (needs !== undefined && !args.has(needs)) throw args.wrong(`--${name} needs --${needs}`);
  }
}

const dashed = (name: string): string => `--${name}`;

/** Reports an unknown word and suggests a similar known one. */
export function unknownWord(what: string, word: string, known: readonly string[]): string {
  return `unknown ${what} "${word}"${suggest(word, known)}`;
}
