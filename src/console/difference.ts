import { canonical } from '../protocol/canon.ts';
import type { ApprovedEffect } from '../protocol/effect.ts';
import type { Proposal } from '../protocol/license.ts';
import { changeTables, type ShownChange } from './changes.ts';
import { type Html, html } from './html.ts';

const SHOWN = 100;

/** Shows how a proposal differs from the one it replaced. */
export function differenceSection(earlier: Proposal, later: Proposal): Html {
  const [before, after] = [earlier, later].map(({ approved }) => textsOf(approved.effects));
  const changes: readonly ShownChange[] = [
    ...without(before, after).map((effect) => ({ effect, mark: 'before' as const })),
    ...without(after, before).map((effect) => ({ effect, mark: 'now' as const })),
  ];
  const shown = changes.toSorted((a, b) => compare(placeOf(a.effect), placeOf(b.effect)));
  const more = changes.length - SHOWN;
  return html`<section class="card difference"><h2>Difference from the earlier proposal</h2>
${changes.length === 0 ? sameWords(earlier, later) : changeTables(shown.slice(0, SHOWN), later.approved.registration)}
${more > 0 && html`<p class="aside">And ${more} more.</p>`}</section>`;
}

/** Indexes the changes by their canonical text. */
function textsOf(effects: readonly ApprovedEffect[]): ReadonlyMap<string, ApprovedEffect> {
  return new Map(effects.map((effect) => [canonical(effect), effect]));
}

function without(
  some: ReadonlyMap<string, ApprovedEffect> = new Map(),
  others: ReadonlyMap<string, ApprovedEffect> = new Map(),
): readonly ApprovedEffect[] {
  return [...some].flatMap(([text, effect]) => (others.has(text) ? [] : [effect]));
}

/** Sort key that groups changes by row and operation. The earlier proposal comes first in each. */
function placeOf({ target, key, op }: ApprovedEffect): string {
  return canonical([target, key ?? null, op]);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function sameWords({ draft: earlier }: Proposal, { draft: later }: Proposal): Html {
  const isSame = earlier.taskState === later.taskState;
  return html`<p>The changes are the same.${!isSame && ' The rows that it depends on have changed.'} What you sign is bound to the state and the rules as they are now.</p>`;
}
