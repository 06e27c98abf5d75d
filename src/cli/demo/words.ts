import type { Release, Terminal } from '../../index.ts';
import type { Desk } from './desk.ts';

/** The part of a verdict that an act makes claims about. */
export function summaryOf(terminal: Terminal): { kind: string; reason?: string; reconciled?: true } {
  if (terminal.kind === 'rejected') return { kind: terminal.kind, reason: terminal.reason };
  if (terminal.kind === 'committed' && terminal.reconciled) return { kind: terminal.kind, reconciled: true };
  return { kind: terminal.kind };
}

/** What a worker was told about the dependent work. */
export function answerOf(release: Release<unknown> | undefined): string {
  if (release === undefined) return 'no answer';
  return release.kind === 'released' ? 'released' : `halted (${release.why})`;
}

/** How often the dependent work ran, by the traces it left. */
export function countRuns(desk: Desk): string {
  return `it ran ${desk.reconciliations === 1 ? 'once' : `${desk.reconciliations} times`}`;
}
