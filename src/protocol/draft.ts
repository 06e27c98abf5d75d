import { EffectMatchError, errorsOf } from '../errors.ts';
import { checkCell } from './constraint.ts';
import {
  type Change,
  type Constraint,
  isMarked,
  type Plain,
  readCell,
  readChange,
} from './draft-cell.ts';
import { UNUSED } from './drawn.ts';
import type { ApprovedEffect, CellRow, Op, Requirement, StateRead } from './effect.ts';
import { type Manifest, manifestRecord } from './manifest.ts';
import type { SessionSettings } from './settings.ts';
import { fromJs, type Row } from './value.ts';

export {
  any,
  between,
  type Change,
  type Constraint,
  from,
  generated,
  matches,
  now,
  oneOf,
  type Plain,
  real,
  to,
} from './draft-cell.ts';

/** Maps columns to values or constraints. */
type DraftRow = { readonly [column: string]: Plain | Constraint };

/** Maps columns to changes: [from, to], the new value alone, `to` or `from`. */
export type DraftChanges = {
  readonly [column: string]:
    | Plain
    | Constraint
    | Change
    | readonly [Plain | Constraint, Plain | Constraint];
};

/** The manifest as the application states it, before the backend normalises it. */
export interface ManifestDraft {
  readonly adapter: string;
  readonly task: string;
  readonly planRevision: number;
  readonly effects: readonly ApprovedEffect[];
  readonly requires?: readonly Requirement[] | undefined;
  readonly watch?: readonly StateRead[] | undefined;
  /**
   * Session settings, such as `{ 'app.actor': 'alice' }`. The approver signs them, and the runtime
   * applies them before the action runs. Only for adapters that have settings: PostgreSQL.
   */
  readonly set?: SessionSettings | undefined;
}

/**
 * A new row. When the backend normalises the manifest, omitted columns get their constant default.
 */
export function insert(target: string, row: DraftRow): ApprovedEffect {
  return { op: 'insert', target, after: readCells(row, `insert ${target}`), count: 1 };
}

/**
 * A changed row. List only the columns that change; all others must stay the same. An update
 * without columns is a write that changes nothing, such as an upsert of equal values. It is an
 * effect only under the `row-event` profile.
 */
export function update(target: string, key: DraftRow, changes: DraftChanges): ApprovedEffect {
  const where = `update ${target}`;
  const entries = readEntries(changes, where).map(
    ([column, change]) => [column, readChange(change, `${where}, column ${column}`)] as const,
  );
  return {
    op: 'update',
    target,
    key: readKey(key, where),
    before: Object.fromEntries(entries.map(([column, change]) => [column, change.before])),
    after: Object.fromEntries(entries.map(([column, change]) => [column, change.after])),
    count: 1,
  };
}

/**
 * A removed row. `before` states what the row held, as far as it matters. `key` is null if the
 * target has no key.
 */
export function remove(target: string, key: DraftRow | null, before?: DraftRow): ApprovedEffect {
  const where = `remove ${target}`;
  if (key === null && before === undefined)
    throw refuse(`${where}: without a key, say what the row held`);
  return {
    op: 'delete',
    target,
    ...(key !== null && { key: readKey(key, where) }),
    ...(before !== undefined && { before: readCells(before, where) }),
    count: 1,
  };
}

/** The same effect `times` times. */
export function count(effect: ApprovedEffect, times: number): ApprovedEffect {
  if (!Number.isSafeInteger(times) || times < 1)
    throw refuse('count needs a whole number of at least 1');
  return { ...effect, count: times };
}

/**
 * Numbers that the operation draws from a sequence and that no row has in the end, because a
 * conflict kept the row out (`on conflict do nothing`), or the row was rolled back or removed
 * again.
 */
export function unused(sequence: string, numbers: Plain | Constraint): ApprovedEffect {
  const where = `unused ${sequence}`;
  return {
    op: 'update',
    target: sequence,
    before: readCells({ [UNUSED]: 0 }, where),
    after: readCells({ [UNUSED]: numbers }, where),
    count: 1,
  };
}

/**
 * A number of writes of one kind to a relation, for the `relation-write` profile, which does not
 * look at rows.
 */
export function writes(op: Op, target: string, times: number): ApprovedEffect {
  return count({ op, target, count: 1 }, times);
}

/**
 * A row that must exist with these values when the operation runs. Without columns, it only has to
 * exist.
 */
export function row(
  target: string,
  key: { readonly [column: string]: Plain },
  columns: { readonly [column: string]: Plain },
): Requirement {
  return {
    target,
    key: readExactKey(key, `row ${target}`),
    row: readValues(columns, `row ${target}`),
  };
}

/** A row that must not exist when the operation runs. */
export function absent(target: string, key: { readonly [column: string]: Plain }): Requirement {
  return { target, key: readExactKey(key, `absent ${target}`), row: null };
}

/**
 * A row that the approval depends on. If it changes before the operation runs, the approval is
 * stale.
 */
export function read(
  target: string,
  key: { readonly [column: string]: Plain },
  columns?: readonly string[],
): StateRead {
  return {
    target,
    key: readExactKey(key, `read ${target}`),
    ...(columns !== undefined && { columns: [...columns] }),
  };
}

const FIELDS = ['adapter', 'task', 'planRevision', 'effects', 'requires', 'watch', 'set'];

/**
 * Builds manifest M from the application's draft and checks it. Error messages say which part to
 * change.
 */
export function draftManifest(input: ManifestDraft): Manifest {
  const unknown = Object.keys(readPlain(input, 'the manifest')).find(
    (field) => !FIELDS.includes(field),
  );
  if (unknown !== undefined)
    throw refuse(
      `the manifest has an unknown field "${unknown}"; it may have ${FIELDS.join(', ')}`,
    );
  const { adapter, task, planRevision, effects, requires = [], watch = [], set = {} } = input;
  if (typeof adapter !== 'string' || adapter === '')
    throw refuse('adapter must be the name of a registered adapter');
  if (typeof task !== 'string' || task === '')
    throw refuse('task must be text that names the task');
  if (!Number.isSafeInteger(planRevision) || planRevision < 0)
    throw refuse('planRevision must be a whole number from 0 on');
  for (const [field, list] of Object.entries({ effects, requires, watch })) {
    if (!Array.isArray(list)) throw refuse(`${field} must be an array`);
  }
  const manifest = parseManifest({
    version: 1,
    adapter,
    task,
    planRevision,
    effects,
    requires,
    watch,
    ...(Object.keys(readPlain(set, 'set')).length > 0 && { settings: set }),
  });
  manifest.effects.forEach((effect, index) => {
    checkEffect(effect, `effects[${index}] (${effect.op} ${effect.target})`);
  });
  for (const [field, list] of Object.entries({
    requires: manifest.requires,
    watch: manifest.watch,
  })) {
    list.forEach(({ key, target }, index) => {
      if (Object.keys(key).length === 0)
        throw refuse(`${field}[${index}] (${target}): the key is empty`);
    });
  }
  return manifest;
}

function parseManifest(manifest: unknown): Manifest {
  try {
    return manifestRecord.parse(manifest);
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code === 'ERR_EM_RECORD_TOO_LARGE')
      throw error;
    throw new EffectMatchError('ERR_EM_MANIFEST_INVALID', error.message, { cause: error });
  }
}

function checkEffect(effect: ApprovedEffect, where: string): void {
  const { op, key, before, after } = effect;
  for (const [side, cells] of Object.entries({ key, before, after })) {
    for (const [column, cell] of Object.entries(cells ?? {}))
      checkCell(cell, `${where}, ${side} ${column}`);
  }
  if (key !== undefined && Object.keys(key).length === 0)
    throw refuse(`${where}: the key is empty`);
  if (op === 'insert' && before !== undefined) throw refuse(`${where}: an insert has no before`);
  if (op === 'delete' && after !== undefined) throw refuse(`${where}: a delete has no after`);
  if (op !== 'update') return;
  const columns = Object.keys(after ?? {}).sort();
  if (
    columns.join('\n') !==
    Object.keys(before ?? {})
      .sort()
      .join('\n')
  ) {
    throw refuse(`${where}: before and after must name the same columns`);
  }
}

function readKey(key: DraftRow, where: string): CellRow {
  const cells = readCells(key, `${where}, key`);
  if (Object.keys(cells).length === 0)
    throw refuse(`${where}: the key is empty; name the key columns`);
  return cells;
}

function readExactKey(key: unknown, where: string): Row {
  const values = readValues(key, `${where}, key`);
  if (Object.keys(values).length === 0)
    throw refuse(`${where}: the key is empty; name the key columns`);
  return values;
}

function readCells(input: unknown, where: string): CellRow {
  return Object.fromEntries(
    readEntries(input, where).map(([column, cell]) => [
      column,
      readCell(cell, `${where}, column ${column}`),
    ]),
  );
}

function readValues(input: unknown, where: string): Row {
  return Object.fromEntries(
    readEntries(input, where).map(([column, value]) => {
      if (isMarked(value))
        throw refuse(`${where}, column ${column}: only an exact value can be required`);
      return [column, fromJs(value, `${where}, column ${column}`)];
    }),
  );
}

function readEntries(input: unknown, where: string): [string, unknown][] {
  return Object.entries(readPlain(input, where));
}

function readPlain(input: unknown, where: string): object {
  const isRecord =
    typeof input === 'object' && input !== null && !Array.isArray(input) && !isMarked(input);
  const prototype: unknown = isRecord ? Object.getPrototypeOf(input) : undefined;
  if (!isRecord || (prototype !== Object.prototype && prototype !== null)) {
    throw refuse(`${where}: expected a plain object of names and values`);
  }
  return input;
}

const refuse = errorsOf('ERR_EM_MANIFEST_INVALID');
