import type { License } from './license.ts';
import type { Approved } from './manifest.ts';
import { renderApproved } from './render.ts';
import { quote, type RenderOptions } from './render-text.ts';

/** What a license says in addition to A and is decided by the proposal. */
export type Terms = Pick<
  License,
  | 'task'
  | 'planRevision'
  | 'source'
  | 'operation'
  | 'occurrences'
  | 'continuations'
  | 'fieldMatch'
  | 'action'
>;

/**
 * Everything that an approver signs, as text: the outcome, and what the license does with it. A
 * license binds this text, so nothing between the proposal and the signature can add executions or
 * dependent work without showing it.
 */
export function renderLicense(
  terms: Terms,
  approved: Approved,
  options: RenderOptions = {},
): string {
  const {
    task,
    planRevision,
    source,
    operation,
    occurrences,
    continuations,
    fieldMatch = [],
    action,
  } = terms;
  const executions =
    occurrences === 1
      ? 'one execution'
      : `${occurrences} executions, each with all of these changes`;
  const actions =
    action === undefined
      ? 'of any action with this outcome'
      : `of one action only (${action.slice(0, 16)})`;
  return [
    renderApproved(approved, options),
    `For task ${quote(task)}, plan revision ${planRevision}, approved from: ${source}${operation === undefined ? '' : ` ${operation}`}`,
    `Buys ${executions}, ${actions}`,
    `Releases: ${continuations.length === 0 ? 'nothing' : continuations.join(', ')}`,
    ...(fieldMatch.length === 0
      ? []
      : [`Releases even if only the fields match: ${fieldMatch.join(', ')}`]),
  ].join('\n');
}
