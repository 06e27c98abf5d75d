import type { Arguments, Flags } from './arguments.ts';
import type { ExitCode } from './exit-code.ts';
import type { Output } from './output.ts';

/** One verb of the command: what its help says and what it does. */
export interface Verb {
  readonly name: string;
  /** One line for the list of verbs. */
  readonly summary: string;
  /** Whole sentences for the verb's own help. */
  readonly about: string;
  /** What stands after the verb, in order, all of it required. */
  readonly positionals: readonly string[];
  /** What may stand after that. */
  readonly optional?: readonly string[];
  readonly flags: Flags;
  readonly examples: readonly string[];
  run(args: Arguments, output: Output): Promise<ExitCode>;
}
