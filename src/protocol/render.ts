import { unreachable } from '../errors.ts';
import { sortedColumns } from './bag.ts';
import { asApproved, type CountedEffect, type Diff } from './diff.ts';
import {
  type ApprovedEffect,
  type CellRow,
  columnOf,
  type Op,
  type Requirement,
  type StateRead,
} from './effect.ts';
import { inKeyOrder } from './key-order.ts';
import type { Approved } from './manifest.ts';
import { summariseColumns } from './render-summary.ts';
import {
  openRendering,
  type Rendering,
  type RenderOptions,
  renderCell,
  renderColumn,
  renderTarget,
  renderValue,
} from './render-text.ts';
import type { Row } from './value.ts';

export type { RenderOptions } from './render-text.ts';

/** More changes than fit on a screen are summarised before they are listed. */
const SCREEN = 40;
/** Up to this many changes of one kind need no summary. */
const FEW = 5;
const LARGE = 200;
const SAMPLES = 20;
const SIGNS = { insert: '+', update: '~', delete: '-' } as const;

/** What was approved, as text; see {@link renderOutcome}. */
export function renderApproved(approved: Approved, options: RenderOptions = {}): string {
  return renderOutcome('Approved', approved, openRendering(options));
}

/**
 * The text that a person approves. The same bytes of A always give the same text. Names and values
 * cannot imitate other parts of it. It says what is not shown or not compared. A license is bound
 * to this text, as part of `renderLicense`.
 */
export function renderOutcome(
  heading: 'Proposed' | 'Approved',
  approved: Approved,
  rendering: Rendering,
): string {
  const { adapter, registration, effects, requires, watch, settings = {} } = approved;
  const lines = [
    `${heading} changes in ${adapter}: ${sumCounts(effects)} (${registration.profile})`,
    ...renderEffects(inKeyOrder(effects), rendering),
    ...renderList(
      requires,
      rendering,
      (requirement) => `requires  ${renderRequirement(requirement, rendering)}`,
    ),
    ...renderList(watch, rendering, (read) => `watches   ${renderStateRead(read, rendering)}`),
    ...sortedColumns(settings).map(
      (name) =>
        `Runs with the session setting ${name} = ${renderValue(settings[name] ?? '', rendering)}`,
    ),
    `Nothing else may change in: ${registration.targets.map((target) => renderTarget(target.name)).join(', ')}`,
  ];
  const written = new Set(effects.map(({ target }) => target));
  const touched = registration.targets.filter(({ name }) => written.has(name));
  const volatile = touched.flatMap((target) =>
    target.volatile.map((column) => `${renderTarget(target.name)}.${renderColumn(column)}`),
  );
  if (volatile.length > 0) lines.push(`Not compared: ${volatile.join(', ')}`);
  if (registration.profile === 'relation-write') {
    lines.push(
      'Not compared: rows and values; only how often each table is written, and by which operation',
    );
  }
  lines.push(...renderAssurance(registration));
  if (rendering.cut)
    lines.push('Shortened: an approval covers all of it, also what is not shown here');
  return lines.join('\n');
}

/** What an approver must not take for granted about a backend. */
function renderAssurance(registration: Approved['registration']): string[] {
  const { profile, capability, boundary } = registration;
  return [
    ...(boundary === 'managed'
      ? ['Held behind a managed boundary: part of it is closed by reading statements and code']
      : []),
    ...(profile === 'registered-fields'
      ? [
          'Compared: the registered fields as read back afterwards; who wrote them is not established',
        ]
      : []),
    ...(capability === 'MEDIATED'
      ? [
          'Sent once by the gateway and compared afterwards: it is not held first, and nothing is rolled back',
        ]
      : []),
    ...(capability === 'OPAQUE'
      ? [
          'Sent once to a service that is not controlled here, and compared afterwards: no promise of rollback',
        ]
      : []),
  ];
}

/** One approved change on one line. */
export function renderEffect(effect: ApprovedEffect, options: RenderOptions = {}): string {
  return renderLine(effect, openRendering(options));
}

/** One observed change on one line. */
export function renderObserved(effect: CountedEffect, options: RenderOptions = {}): string {
  return renderLine(asApproved(effect), openRendering(options));
}

/**
 * How E differs from A: one line per difference with its kind, or two lines for an altered change.
 */
export function renderDiff(diff: Diff, options: RenderOptions = {}): string {
  const rendering = openRendering(options);
  const extra = inKeyOrder(diff.extra.map(asApproved));
  const missing = inKeyOrder(diff.missing);
  const altered = diff.altered.map((pair) => ({ ...pair, count: pair.approved.count }));
  const counts = [sumCounts(extra), sumCounts(missing), sumCounts(altered), diff.omitted];
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return 'no differences';
  const kinds = ['extra', 'missing', 'altered', ...(diff.omitted > 0 ? ['not kept'] : [])];
  const line = (effect: ApprovedEffect) => renderLine(effect, rendering);
  return [
    `${countOf(total, 'difference')}: ${kinds.map((kind, at) => `${counts[at]} ${kind}`).join(', ')}`,
    ...renderList(
      extra,
      rendering,
      (effect) => `extra    ${line(effect)}   (observed, not approved)`,
    ),
    ...renderList(
      missing,
      rendering,
      (effect) => `missing  ${line(effect)}   (approved, not observed)`,
    ),
    ...renderList(altered, rendering, ({ approved, observed }) =>
      [
        `altered  ${line(approved)}   (approved)`,
        `         ${line(asApproved(observed))}   (observed instead)`,
      ].join('\n'),
    ),
  ].join('\n');
}

function renderLine(effect: ApprovedEffect, rendering: Rendering): string {
  const { op, target, key, before, after, count } = effect;
  const head = `${SIGNS[op]} ${renderTarget(target)}`;
  if (key === undefined && before === undefined && after === undefined)
    return `${head}: ${countOf(count, op)}`;
  const columns = renderColumns(effect, rendering);
  return [
    key === undefined ? head : `${head} ${renderCells(key, rendering)}`,
    ...(columns === '' ? [] : [columns]),
    ...(count === 1 ? [] : [`(${count} times)`]),
  ].join('  ');
}

function renderEffects(effects: readonly ApprovedEffect[], rendering: Rendering): string[] {
  const renderOne = (effect: ApprovedEffect) => renderLine(effect, rendering);
  const list = (indent: string, listed: readonly ApprovedEffect[]) =>
    listed.map((effect) => `${indent}${renderOne(effect)}`);
  if (rendering.full || effects.length <= SCREEN) return list('  ', effects);
  const groups = [
    ...Map.groupBy(effects, ({ op, target }) => `${SIGNS[op]} ${renderTarget(target)}`),
  ];
  const summary = groups.flatMap(([name, group]) => [
    `  ${name}: ${countOf(sumCounts(group), group[0]?.op ?? 'update')}`,
    ...(group.length <= FEW
      ? list('      ', group)
      : summariseColumns(group, rendering).map((line) => `      ${line}`)),
  ]);
  const many = groups.filter(([, group]) => group.length > FEW);
  if (effects.length <= LARGE)
    return [...summary, ...many.flatMap(([, group]) => list('  ', group))];
  const samples = many.flatMap(([name, group]) => [
    `  ${name}, by key:`,
    ...renderSamples(group, rendering, renderOne).map((line) => `      ${line}`),
  ]);
  return [...summary, ...samples];
}

function renderList<T extends object>(
  items: readonly T[],
  rendering: Rendering,
  render: (item: T) => string,
): string[] {
  if (rendering.full || items.length <= LARGE) return items.map(render);
  return renderSamples(items, rendering, render);
}

function renderSamples<T extends object>(
  items: readonly T[],
  rendering: Rendering,
  render: (item: T) => string,
): string[] {
  const lines = items.slice(0, SAMPLES).map(render);
  if (items.length === lines.length) return lines;
  rendering.cut = true;
  return [...lines, `${sumCounts(items.slice(SAMPLES))} more of these, not shown`];
}

function renderColumns(
  { op, before = {}, after = {} }: ApprovedEffect,
  rendering: Rendering,
): string {
  switch (op) {
    case 'insert':
      return renderCells(after, rendering);
    case 'delete':
      return Object.keys(before).length === 0 ? '' : `was ${renderCells(before, rendering)}`;
    case 'update':
      if (Object.keys({ ...before, ...after }).length === 0) return 'written, no column changes';
      // Fields that are compared as read back have no `before`.
      if (Object.keys(before).length === 0) return renderCells(after, rendering);
      return sortedColumns({ ...before, ...after })
        .map(
          (column) =>
            `${renderColumn(column)}: ${renderSide(before, column, rendering)} -> ${renderSide(after, column, rendering)}`,
        )
        .join(', ');
    default:
      return unreachable(op);
  }
}

function renderSide(cells: CellRow, column: string, rendering: Rendering): string {
  const cell = columnOf(cells, column);
  return cell === undefined ? '<not stated>' : renderCell(cell, rendering);
}

function renderCells(cells: CellRow, rendering: Rendering): string {
  return sortedColumns(cells)
    .map((column) => `${renderColumn(column)}=${renderSide(cells, column, rendering)}`)
    .join(', ');
}

/** A row that must exist with these values, or must not exist, on one line. */
export function renderRequirement({ target, key, row }: Requirement, rendering: Rendering): string {
  return `${renderKey(target, key, rendering)}: ${row === null ? 'does not exist' : renderRow(row, rendering)}`;
}

function renderRow(row: Row, rendering: Rendering): string {
  const columns = sortedColumns(row).map(
    (column) => `${renderColumn(column)} = ${renderValue(row[column] ?? null, rendering)}`,
  );
  return columns.length === 0 ? 'exists' : columns.join(', ');
}

/** A row that must not change, on one line. */
export function renderStateRead({ target, key, columns }: StateRead, rendering: Rendering): string {
  return `${renderKey(target, key, rendering)}: ${columns?.map(renderColumn).join(', ') ?? 'every column'} unchanged`;
}

function renderKey(target: string, key: Row, rendering: Rendering): string {
  const columns = sortedColumns(key).map(
    (column) => `${renderColumn(column)}=${renderValue(key[column] ?? null, rendering)}`,
  );
  return `${renderTarget(target)} ${columns.join(', ')}`;
}

/** The total count. An item without a count counts once. */
function sumCounts(items: readonly object[]): number {
  return items.reduce((sum, item) => sum + ('count' in item ? Number(item.count) : 1), 0);
}

function countOf(count: number, what: Op | 'difference'): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
