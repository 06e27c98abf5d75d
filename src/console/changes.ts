import { asApproved, type Diff } from '../protocol/diff.ts';
import { type ApprovedEffect, type Cell, columnOf, type Op } from '../protocol/effect.ts';
import type { Registration, Target } from '../protocol/registration.ts';
import { type Rendering, renderCell, renderColumn, renderTarget } from '../protocol/render-text.ts';
import { type Html, html } from './html.ts';
import { scrolling } from './layout.ts';

const SIGNS: Readonly<Record<Op, string>> = { insert: '+', update: '~', delete: '−' };
const WORDS: Readonly<Record<Op, string>> = {
  insert: 'added',
  update: 'changed',
  delete: 'removed',
};
const OPS: readonly Op[] = ['insert', 'update', 'delete'];

const MARKS = {
  extra: 'not approved',
  missing: 'approved, not observed',
  approved: 'approved',
  observed: 'observed instead',
  matched: 'as approved',
};

/** A change to show, with an optional label. */
interface ShownChange {
  readonly effect: ApprovedEffect;
  readonly mark?: keyof typeof MARKS;
}

/** Renders the changes as one table per relation, with one row per change. */
export function changeTables(
  changes: readonly ShownChange[],
  { targets }: Pick<Registration, 'targets'>,
): readonly Html[] {
  const names = [...new Set(changes.map(({ effect }) => effect.target))];
  return names.map((name) => {
    const target = targets.find((candidate) => candidate.name === name);
    return changeTable(
      name,
      changes.filter(({ effect }) => effect.target === name),
      target,
    );
  });
}

/** Summarises in one line how many rows each relation gains, changes and loses. */
export function summarise(effects: readonly ApprovedEffect[]): Html {
  const names = [...new Set(effects.map(({ target }) => target))];
  const parts = names.map((name) => {
    const own = effects.filter(({ target }) => target === name);
    const counts = OPS.filter((op) => own.some((effect) => effect.op === op)).map((op) => {
      const count = own.reduce((sum, effect) => sum + (effect.op === op ? effect.count : 0), 0);
      return html`<span class="op ${op}">${SIGNS[op]}${count}</span>`;
    });
    return html`<span class="where"><b>${renderTarget(name)}</b> ${counts}</span>`;
  });
  return parts.length === 0 ? html`<span class="where">no change</span>` : html`${parts}`;
}

/** A list spells out at most this many changes. */
const FEW = 2;

/** A short form of the changes: each of them if there are few, otherwise a summary. */
export function headline(effects: readonly ApprovedEffect[]): Html {
  if (effects.length === 0 || effects.length > FEW) return summarise(effects);
  return html`${effects.map((effect) => html`<span class="line">${changeLine(effect)}</span>`)}`;
}

function changeLine(effect: ApprovedEffect): Html {
  const { op, target, key = {}, before = {}, after = {}, count } = effect;
  const named = Object.values(key).map((cell) => html` ${value(cell, '')}`);
  const times = count > 1 && html` <span class="times">×${count}</span>`;
  const columns = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const cells = columns.map(
    (column) =>
      html` <span class="aside">${renderColumn(column)}</span> ${changeCell(effect, column)}`,
  );
  return html`<span class="op ${op}">${SIGNS[op]}</span> <b>${renderTarget(target)}</b>${named}${times}${cells}`;
}

/** Turns the differences between outcome and approval into labelled changes. */
export function changesOfDiff({ extra, missing, altered }: Diff): readonly ShownChange[] {
  return [
    ...extra.map((effect) => ({ effect: asApproved(effect), mark: 'extra' as const })),
    ...missing.map((effect) => ({ effect, mark: 'missing' as const })),
    ...altered.flatMap(({ approved, observed }) => [
      { effect: approved, mark: 'approved' as const },
      { effect: asApproved(observed), mark: 'observed' as const },
    ]),
  ];
}

function changeTable(
  name: string,
  changes: readonly ShownChange[],
  target: Target | undefined,
): Html {
  const used = new Set(
    changes.flatMap(({ effect: { key = {}, before = {}, after = {} } }) => [
      ...Object.keys(key),
      ...Object.keys(before),
      ...Object.keys(after),
    ]),
  );
  const known = (target?.columns ?? []).filter((column) => used.has(column));
  const columns = [...known, ...[...used].filter((column) => !known.includes(column)).sort()];
  const head = columns.map((column) => {
    const isKey = target?.key.includes(column) === true;
    return html`<th scope="col"${isKey && html` class="key"`}>${renderColumn(column)}</th>`;
  });
  const shown = html`<table>
<thead><tr><th scope="col" class="sign">change</th>${head}</tr></thead>
<tbody>${changes.map((change) => changeRow(change, columns))}</tbody>
</table>`;
  return html`<section class="changes">
<h3>${renderTarget(name)}</h3>
${scrolling(`changes of ${name}`, shown)}
${target !== undefined && target.volatile.length > 0 && notCompared(target)}
</section>`;
}

function notCompared({ volatile }: Target): Html {
  return html`<p class="aside">Not compared: ${volatile.map(renderColumn).join(', ')}</p>`;
}

function changeRow({ effect, mark }: ShownChange, columns: readonly string[]): Html {
  const { op, count } = effect;
  const times = count > 1 && html` <span class="times">×${count}</span>`;
  const note = mark !== undefined && html` <span class="mark ${mark}">${MARKS[mark]}</span>`;
  const cells = columns.map((column) => html`<td>${changeCell(effect, column)}</td>`);
  return html`<tr class="${op}${mark !== undefined && ` ${mark}`}">
<th scope="row" class="sign"><span class="op ${op}">${SIGNS[op]} ${WORDS[op]}</span>${times}${note}</th>${cells}</tr>`;
}

/** One column of a change: its value, or the old and the new value. */
function changeCell(effect: ApprovedEffect, column: string): Html {
  const { op, key = {}, before = {}, after = {} } = effect;
  const [from, to] = [columnOf(before, column), columnOf(after, column)];
  if (op === 'update' && (from !== undefined || to !== undefined))
    return html`${from && value(from, 'old')} <span class="arrow" aria-label="becomes">→</span> ${to && value(to, 'new')}`;
  const only = columnOf(key, column) ?? from ?? to;
  return only === undefined ? html`` : value(only, '');
}

/** Renders a value as the signed text does, so that no value can pass for another. */
function value(cell: Cell, side: 'old' | 'new' | ''): Html {
  const rendering: Rendering = { full: false, cut: false };
  const text = renderCell(cell, rendering);
  const kind = 'is' in cell ? kindOf(cell.is) : 'rule';
  return html`<code class="${kind} ${side}">${text}</code>`;
}

function kindOf(is: unknown): string {
  if (is === null) return 'null';
  return typeof is === 'string' ? 'text' : 'number';
}
