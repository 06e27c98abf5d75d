import { unreachable } from '../errors.ts';
import { sameValue } from '../protocol/bag.ts';
import { compactObject } from '../protocol/compact.ts';
import { checkCell } from '../protocol/constraint.ts';
import type { ApprovedEffect, Cell, CellRow, Requirement, StateRead } from '../protocol/effect.ts';
import type { Manifest } from '../protocol/manifest.ts';
import { suggest } from '../protocol/nearest.ts';
import type { Row, Value } from '../protocol/value.ts';
import {
  type ColumnShape,
  checkKeyColumns,
  findColumn,
  invalid,
  list,
  type ManifestSchema,
  type RelationShape,
} from './manifest-schema.ts';

/**
 * Normalises a manifest: every value as its column stores it, and every effect with exactly the
 * columns that the profile reports. Omitted columns of an insert get what the backend stores;
 * unstated old values become "any". Idempotent, so a signed manifest can be normalised again
 * without change.
 */
export function normaliseManifest<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  manifest: Manifest,
): Manifest {
  const effects = normaliseEffects(schema, manifest.effects, 0);
  checkLabels(schema, effects);
  return normaliseState(schema, { ...manifest, effects });
}

/**
 * Normalises effects; `first` is the position of the first in the manifest. Does not check what
 * concerns all effects together.
 */
export function normaliseEffects<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  effects: readonly ApprovedEffect[],
  first: number,
): ApprovedEffect[] {
  return effects.map((effect, index) =>
    normaliseEffect(schema, effect, `effects[${first + index}] (${effect.op} ${effect.target})`),
  );
}

/** Normalises the requirements and watched rows of a manifest. */
export function normaliseState<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  manifest: Manifest,
): Manifest {
  return {
    ...manifest,
    requires: manifest.requires.map((requirement, index) =>
      normaliseRequirement(schema, requirement, `requires[${index}] (${requirement.target})`),
    ),
    watch: manifest.watch.map((read, index) =>
      normaliseRead(schema, read, `watch[${index}] (${read.target})`),
    ),
  };
}

/** Normalises the keys of reads, in the order given. */
export function normaliseReads<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  reads: readonly StateRead[],
): readonly StateRead[] {
  return reads.map((read, index) =>
    normaliseRead(schema, read, `read ${index + 1} of "${read.target}"`),
  );
}

/** Normalises the key of one read. */
export function normaliseRead<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  read: StateRead,
  where: string,
): StateRead {
  const relation = schema.readable(read, where);
  for (const name of read.columns ?? []) findColumn(relation, name, where);
  return { ...read, target: relation.target, key: storeKey(schema, relation, read.key, where) };
}

function normaliseRequirement<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  requirement: Requirement,
  where: string,
): Requirement {
  const relation = schema.readable(requirement, where);
  const key = storeKey(schema, relation, requirement.key, where);
  const row = requirement.row && storeRow(schema, relation, requirement.row, where);
  return { target: relation.target, key, row };
}

function storeKey<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  relation: RelationShape<Column>,
  key: Row,
  where: string,
): Row {
  checkKeyColumns(relation, Object.keys(key), where);
  return storeRow(schema, relation, key, where);
}

function storeRow<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  relation: RelationShape<Column>,
  row: Row,
  where: string,
): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      const column = findColumn(relation, name, where);
      return [name, schema.store(relation, column, value, `${where}, column "${name}"`)];
    }),
  );
}

function normaliseEffect<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  effect: ApprovedEffect,
  where: string,
): ApprovedEffect {
  const other = schema.normaliseOther?.(effect, where);
  if (other !== undefined) return other;
  const { profile, targets } = schema.registration;
  const relation = schema.registered(effect, where);
  if (relation === undefined) {
    const names = targets.map(({ name }) => name);
    throw invalid(where, `"${effect.target}" is not registered${suggest(effect.target, names)}`);
  }
  const { op, count, key, before, after } = effect;
  const base = { count, op, target: relation.target };
  const statesRows = key !== undefined || before !== undefined || after !== undefined;
  if (profile === 'relation-write') {
    if (!statesRows) return base;
    throw invalid(
      where,
      `the profile relation-write counts writes and sees no rows; use writes('${op}', …)`,
    );
  }
  if (!statesRows) {
    throw invalid(
      where,
      `counts of writes need the profile relation-write; ${profile} compares rows`,
    );
  }
  const rows = new EffectRows(schema, relation, where);
  switch (op) {
    case 'insert':
      return compact({ ...base, ...rows.inserted({ ...key, ...after }) });
    case 'update': {
      const named = { ...base, ...rows.key(key) };
      return compact({ ...named, ...rows.updated(key ?? {}, before ?? {}, after ?? {}) });
    }
    case 'delete':
      return compact({ ...base, ...rows.key(key), before: rows.removed(before ?? {}) });
    default:
      return unreachable(op);
  }
}

/** Normalises the rows of one effect. */
class EffectRows<Column extends ColumnShape> {
  readonly #schema: ManifestSchema<Column>;
  readonly #relation: RelationShape<Column>;
  readonly #volatile: readonly string[];
  readonly #where: string;

  constructor(schema: ManifestSchema<Column>, relation: RelationShape<Column>, where: string) {
    const { targets } = schema.registration;
    this.#volatile = targets.find(({ name }) => name === relation.target)?.volatile ?? [];
    this.#schema = schema;
    this.#relation = relation;
    this.#where = where;
  }

  /** The key cells of an update or delete; empty if the relation has no key. */
  key(key: CellRow | undefined): { readonly key?: CellRow } {
    const relation = this.#relation;
    if (relation.key.length > 0) {
      checkKeyColumns(relation, Object.keys(key ?? {}), this.#where);
      return { key: this.#cells(relation.key, key ?? {}) };
    }
    if (key === undefined) return {};
    throw invalid(
      this.#where,
      `"${relation.target}" has no primary key; state its columns in the row, as in remove('…', null, {…})`,
    );
  }

  /** A whole new row: the stated cells, and what the backend stores in the other columns. */
  inserted(row: CellRow): { readonly key?: CellRow; readonly after: CellRow } {
    const { key } = this.#relation;
    for (const name of Object.keys(row)) this.#column(name);
    const fill = (names: readonly string[]): CellRow =>
      cellsFrom(names, (name) => this.#insertedCell(name, ownCell(row, name)));
    const after = fill(this.#compared());
    return key.length === 0 ? { after } : { key: fill(key), after };
  }

  /** The changed columns, the same ones before and after. */
  updated(
    key: CellRow,
    before: CellRow,
    after: CellRow,
  ): { readonly before: CellRow; readonly after: CellRow } {
    const where = this.#where;
    const isNet = this.#schema.registration.profile === 'net-state';
    if (isNet && this.#relation.key.length === 0) {
      throw invalid(where, `"${this.#relation.target}" has no key; state a delete and an insert`);
    }
    for (const name of [...Object.keys(after), ...Object.keys(before)]) {
      this.#column(name);
      if (isNet && this.#relation.key.includes(name)) {
        throw invalid(
          where,
          `"${name}" is part of the key; state a delete and an insert to change it`,
        );
      }
    }
    const oneSided = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
    if (oneSided.length > 0) {
      throw invalid(where, `${list(oneSided)} has a value before and none after; state both`);
    }
    const names = Object.keys(after).filter((name) => !this.#volatile.includes(name));
    if (isNet && names.length === 0) {
      throw invalid(where, Object.keys(after).length === 0 ? NO_CHANGE : ONLY_VOLATILE);
    }
    const images = {
      before: this.#cells(names, { ...key, ...before }),
      after: this.#cells(names, after),
    };
    const unchanged = names.find((name) => isUnchanged(images.before[name], images.after[name]));
    if (unchanged === undefined) return images;
    throw invalid(
      where,
      `"${unchanged}" is the same before and after as it is stored; leave it out`,
    );
  }

  /** The row that a delete removes. Columns that are not stated may have any value. */
  removed(before: CellRow): CellRow {
    for (const name of Object.keys(before)) {
      this.#column(name);
      if (this.#relation.key.includes(name)) {
        throw invalid(this.#where, `"${name}" is part of the key; state it there`);
      }
    }
    return this.#cells(this.#compared(), before);
  }

  #insertedCell(name: string, cell: Cell | undefined): Cell {
    if (cell !== undefined) return this.#cell(name, cell);
    return this.#schema.fill(
      this.#relation,
      this.#column(name),
      `${this.#where}, column "${name}"`,
    );
  }

  /** The named columns; those that the row does not state become `any`. */
  #cells(names: readonly string[], row: CellRow): CellRow {
    return cellsFrom(names, (name) => this.#cell(name, ownCell(row, name) ?? { any: true }));
  }

  #cell(name: string, cell: Cell): Cell {
    const column = this.#column(name);
    const at = `${this.#where}, column "${name}"`;
    const store = (value: Value) => this.#schema.store(this.#relation, column, value, at);
    this.#schema.checkConstraint?.(column, cell, at);
    if ('is' in cell) {
      const stored = store(cell.is);
      return stored === cell.is ? cell : { is: stored };
    }
    if ('oneOf' in cell) return { oneOf: cell.oneOf.map(store) };
    if (!('between' in cell)) return cell;
    const between = { between: [store(cell.between[0]), store(cell.between[1])] as const };
    checkCell(between, at);
    return between;
  }

  #column(name: string): Column {
    return findColumn(this.#relation, name, this.#where);
  }

  #compared(): readonly string[] {
    const { columns, key } = this.#relation;
    const names = columns.map(({ name }) => name);
    return names.filter((name) => !key.includes(name) && !this.#volatile.includes(name));
  }
}

/** There may be a million effects, so each takes no more memory than it needs. */
function compact(effect: ApprovedEffect): ApprovedEffect {
  const fields = compactObject(Object.keys(effect));
  return Object.assign(fields, effect) as object as ApprovedEffect;
}

function cellsFrom(names: readonly string[], cellOf: (name: string) => Cell): CellRow {
  const cells = compactObject(names);
  for (const name of names) cells[name] = cellOf(name);
  return cells as CellRow;
}

/**
 * Checks that each label is used in at least one cell whose value the backend assigns. Without one,
 * there is no evidence for the label.
 */
export function checkLabels<Column extends ColumnShape>(
  schema: ManifestSchema<Column>,
  effects: readonly ApprovedEffect[],
): void {
  const { labels } = schema;
  if (labels === undefined) return;
  const assigned = new Set<string>();
  const used = new Map<string, string>();
  for (const [index, effect] of effects.entries()) {
    const where = `effects[${index}] (${effect.op} ${effect.target})`;
    for (const [name, cell] of cellsOf(effect)) {
      if (!('generated' in cell)) continue;
      used.set(cell.generated, `${where}, column "${name}"`);
      const relation = schema.registered(effect, where);
      const column = relation?.columns.find((candidate) => candidate.name === name);
      if (relation === undefined || column === undefined) continue;
      if (labels.assigns(relation, column, effect.op)) assigned.add(cell.generated);
    }
  }
  for (const [label, where] of used) {
    if (assigned.has(label)) continue;
    throw invalid(where, `generated('${label}') must also stand ${labels.where}`);
  }
}

function cellsOf({ key, before, after }: ApprovedEffect): readonly (readonly [string, Cell])[] {
  return [key, before, after].flatMap((row) => Object.entries(row ?? {}));
}

const NO_CHANGE = 'it changes no column, which has no effect here; leave it out';
const ONLY_VOLATILE = 'all columns it names are volatile, which are not compared; leave it out';

/** Only changed columns are reported, so an unchanged column could never match. */
function isUnchanged(from: Cell | undefined, to: Cell | undefined): boolean {
  if (from === undefined || to === undefined || !('is' in from) || !('is' in to)) return false;
  return sameValue(from.is, to.is);
}

/** A column may be called `constructor`, which objects inherit. */
function ownCell(row: CellRow, name: string): Cell | undefined {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}
