import { unreachable } from '../errors.ts';
import type { License } from './license.ts';
import type { Approved } from './manifest.ts';
import { renderOutcome } from './render.ts';
import { openRendering, quoteName, type Rendering, type RenderOptions } from './render-text.ts';

/** What a license states besides A, as decided by the proposal. */
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
  | 'revision'
>;

/**
 * Everything that an approver signs, as text: the outcome and the terms of the license. A license
 * binds this text, so nothing between the proposal and the signature can add executions or
 * dependent work without showing it.
 */
export function renderLicense(
  terms: Terms,
  approved: Approved,
  options: RenderOptions = {},
): string {
  const { task, planRevision, occurrences, continuations, fieldMatch = [], action } = terms;
  const executions =
    occurrences === 1
      ? 'one execution'
      : `${occurrences} executions, each with all of these changes`;
  const actions =
    action === undefined
      ? 'of any action with this outcome'
      : `of one action only (${action.slice(0, 16)})`;
  const rendering = openRendering(options);
  const lines = [
    renderState(terms, approved, rendering),
    `For task ${quoteName(task, rendering)}, plan revision ${planRevision}; ${describeSource(terms)}`,
    `Buys ${executions}, ${actions}`,
    `Releases: ${continuations.length === 0 ? 'nothing' : continuations.join(', ')}`,
    ...(fieldMatch.length === 0
      ? []
      : [`Releases even if only the fields match: ${fieldMatch.join(', ')}`]),
  ];
  // Rendered last, because it says whether anything was shortened, including the lines above.
  return [renderOutcome('Proposed', approved, rendering), ...lines].join('\n');
}

/** What must still be as it was when proposed, besides the old values of the changes. */
function renderState(
  { revision }: Terms,
  { requires, watch }: Approved,
  rendering: Rendering,
): string {
  const rows = (count: number) => `${count} ${count === 1 ? 'row' : 'rows'}`;
  const bound = [
    ...(requires.length === 0 ? [] : [`${rows(requires.length)} required, as listed above`]),
    ...(watch.length === 0 ? [] : [`${rows(watch.length)} watched, as listed above`]),
    ...(revision === undefined
      ? []
      : [`revision ${quoteName(revision, rendering)} of the application`]),
  ];
  if (bound.length > 0) return `Bound to state: ${bound.join('; ')}`;
  return 'Bound to state: none; other rows may change before it runs';
}

function describeSource({ source, operation }: Terms): string {
  switch (source) {
    case 'manifest':
      return 'stated by the application';
    case 'contract':
      return `computed by operation ${operation}`;
    case 'rehearsed':
      return 'seen in two rehearsals';
    default:
      return unreachable(source);
  }
}
