import { EffectMatchError } from '../errors.ts';
import type { ApprovedEffect, Cell, Op, StateRead } from '../protocol/effect.ts';
import { suggest } from '../protocol/nearest.ts';
import type { Registration } from '../protocol/registration.ts';
import { readReal, type Value } from '../protocol/value.ts';

/** A relation as manifests see it. */
export interface RelationShape<Column extends ColumnShape = ColumnShape> {
  /** Its name in records and renderings. */
  readonly target: string;
  /** Key columns; empty if rows compare as a multiset. */
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  /** Columns that follow from the others and are not compared. */
  readonly computed?: readonly string[];
}

/** A column as manifests see it; schemas add what they know about it. */
export interface ColumnShape {
  readonly name: string;
}

/** What normalising asks of a backend. None of it may run application code. */
export interface ManifestSchema<Column extends ColumnShape = ColumnShape> {
  readonly registration: Registration;
  /** The registered relation that an effect is about; undefined if there is none. */
  registered(effect: ApprovedEffect, where: string): RelationShape<Column> | undefined;
  /** The relation that a row is read from; throws {@link invalid} if it cannot be read. */
  readable(read: Pick<StateRead, 'target' | 'key'>, where: string): RelationShape<Column>;
  /** The value as the column stores it; throws {@link invalid} if the column does not take it. */
  store(relation: RelationShape<Column>, column: Column, value: Value, where: string): Value;
  /** What a new row holds in a column that is not stated; throws {@link invalid} if it must be. */
  fill(relation: RelationShape<Column>, column: Column, where: string): Cell;
  /** Refuses constraints that make no sense for a column. */
  checkConstraint?(column: Column, cell: Cell, where: string): void;
  /** An effect on something that has no rows, such as a sequence; undefined for every other. */
  normaliseOther?(effect: ApprovedEffect, where: string): ApprovedEffect | undefined;
  /** Where a `generated` label has evidence; without this, labels may stand anywhere. */
  readonly labels?: {
    assigns(relation: RelationShape<Column>, column: Column, op: Op): boolean;
    /** Completes "it must also stand …". */
    readonly where: string;
  };
}

/** The schema of a backend that stores values as they are stated and leaves null in what is not. */
export function plainSchema(registration: Registration): ManifestSchema {
  const shapes = registration.targets.map(({ name, key, columns }) => ({
    target: name,
    key,
    columns: columns.map((column) => ({ name: column })),
  }));
  const find = (name: string) => shapes.find(({ target }) => target === name);
  return {
    registration,
    registered: ({ target }) => find(target),
    readable: ({ target }, where) => {
      const shape = find(target);
      if (shape !== undefined) return shape;
      throw invalid(where, `there is no table "${target}"; name one of the registered tables`);
    },
    // Such a backend has one kind of number: `real` only says that it was not meant as an integer.
    store: (_relation, _column, value) => readReal(value) ?? value,
    fill: (relation, { name }, where) => {
      if (!relation.key.includes(name)) return { is: null };
      throw invalid(where, `"${relation.target}" is addressed by its key; state it`);
    },
  };
}

/** The refusal of an insert that leaves out a column without a constant default. */
export function mustBeStated(where: string, computedDefault?: string) {
  return invalid(
    where,
    computedDefault === undefined
      ? 'it is NOT NULL and has no default; state its value'
      : `its default is computed (${computedDefault}); state the value, now() for the current time, or any()`,
  );
}

/** The column of this name; a name that is almost right is suggested. */
export function findColumn<Column extends ColumnShape>(
  { target, columns, computed = [] }: RelationShape<Column>,
  name: string,
  where: string,
): Column {
  const column = columns.find((candidate) => candidate.name === name);
  if (column !== undefined) return column;
  if (computed.includes(name)) {
    throw invalid(where, `"${name}" is computed from other columns of "${target}"; leave it out`);
  }
  const names = columns.map((candidate) => candidate.name);
  throw invalid(where, `"${target}" has no column "${name}"${suggest(name, names)}`);
}

/** Exactly the key columns must be named. */
export function checkKeyColumns(
  { target, key }: Pick<RelationShape, 'target' | 'key'>,
  named: readonly string[],
  where: string,
): void {
  const stray = named.find((name) => !key.includes(name));
  if (stray !== undefined) {
    throw invalid(where, `"${stray}" is not a key column of "${target}"; its key is ${list(key)}`);
  }
  const missing = key.filter((name) => !named.includes(name));
  if (missing.length > 0) throw invalid(where, `the key of "${target}" lacks ${list(missing)}`);
}

/** Names for a sentence. */
export function list(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}

/** A fault in what was stated: where it is and what to change. */
export function invalid(
  where: string,
  what: string,
  cause?: unknown,
): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', `${where}: ${what}`, { cause });
}
