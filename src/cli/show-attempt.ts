import { renderTerminal } from '../protocol/render-terminal.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { toneOf } from './journal-entries.ts';
import { indent, type Output } from './output.ts';

/**
 * How one attempt ended, in a few lines: when, whose, the verdict with its differences, and the
 * certificate.
 */
export function describeAttempt(terminal: Terminal, replay: boolean, { paint }: Output): string {
  const { kind, execution, recordedAt } = terminal;
  const role = replay ? '  (another attempt holds the claim)' : '';
  const certificate = 'certificate' in terminal ? terminal.certificate : undefined;
  return [
    `${recordedAt}  ${execution}${role}`,
    indent(paint(toneOf(kind), renderTerminal(terminal)), 2),
    ...(certificate === undefined ? [] : [`  certificate ${certificate}`]),
  ].join('\n');
}
