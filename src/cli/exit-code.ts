import type { Terminal } from '../protocol/terminal.ts';

/** What a script learns from a verb without reading its output. */
export const EXIT = {
  done: 0,
  fault: 1,
  rejected: 2,
  diverged: 3,
  indeterminate: 4,
  halted: 5,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit code of a verdict. No terminal is no permission, which is its own code. */
export function exitCodeOf(terminal: Terminal | undefined): ExitCode {
  if (terminal === undefined) return EXIT.halted;
  return terminal.kind === 'committed' ? EXIT.done : EXIT[terminal.kind];
}
