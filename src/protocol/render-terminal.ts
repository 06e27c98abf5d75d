import { unreachable } from '../errors.ts';
import { renderGenerated } from './generated.ts';
import { type RenderOptions, renderDiff } from './render.ts';
import { showControls } from './render-text.ts';
import { renderResidue } from './residue.ts';
import type { FailedTry, RecordedOutcome, Terminal } from './terminal.ts';

/**
 * How an attempt ended, as text: one line with the verdict and the reason, then any differences.
 * Text from a backend or an agent cannot move or hide anything around it.
 */
export function renderTerminal(terminal: Terminal, options: RenderOptions = {}): string {
  switch (terminal.kind) {
    case 'committed': {
      const how = terminal.reconciled ? ', as recovery established from the backend' : '';
      const verdict =
        terminal.match === 'registered-fields'
          ? `the registered fields were as approved when they were read back${how}; who wrote them is not established`
          : `what became durable is what was approved${how}`;
      const moved = renderResidue(terminal.residue ?? [], 'Moved');
      const more = [
        ...renderGenerated(terminal, options.full),
        ...renderTries(terminal.tries),
        ...moved,
      ];
      return [`committed: ${verdict}`, ...more].join('\n');
    }
    case 'rejected': {
      const { at, reason, detail, outcome, residue = [] } = terminal;
      const verdict = `rejected at ${at} (${reason}): ${showControls(detail)}`;
      const more = [...renderTries(terminal.tries), ...renderResidue(residue)];
      return [verdict, ...differences(outcome, options), ...more].join('\n');
    }
    case 'diverged': {
      const what =
        terminal.match === 'registered-fields'
          ? 'field mismatch: the registered fields were not as approved when they were read back; who changed them is not established'
          : 'durable, and not what was approved';
      return [`diverged: ${what}`, ...differences(terminal.outcome, options)].join('\n');
    }
    case 'indeterminate':
      return `indeterminate: may be durable, and could not be established: ${showControls(terminal.gap)}`;
    default:
      return unreachable(terminal);
  }
}

/** Earlier tries of the same execution, counted by reason. */
function renderTries(tries: readonly FailedTry[] = []): string[] {
  if (tries.length === 0) return [];
  const counts = Map.groupBy(tries, ({ reason }) => reason);
  const reasons = [...counts].map(([reason, all]) => `${reason} ${all.length} times`);
  const times = `Tried ${tries.length + 1} times`;
  return [`${times}, because other transactions were in the way (${reasons.join(', ')})`];
}

/** The reason already states the gaps of an incomplete observation. */
function differences(outcome: RecordedOutcome | undefined, options: RenderOptions): string[] {
  return outcome?.kind === 'DIVERGED' ? [renderDiff(outcome.diff, options)] : [];
}
