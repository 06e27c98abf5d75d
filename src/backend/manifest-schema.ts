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
  /** Columns that are computed from others and not compared. */
  readonly computed?: readonly string[];
}

/** A column as manifests see it. Schemas may add more about it. */
export interface ColumnShape {
  readonly name: string;
}

/** What normalising needs from a backend. None of it may run application code. */
export interface ManifestSchema<Column extends ColumnShape = ColumnShape> {
  readonly registration: Registration;
  /** The registered relation of an effect; undefined if there is none. */
  registered(effect: ApprovedEffect, where: string): RelationShape<Column> | undefined;
  /** The relation that a row is read from; throws {@link invalid} if it cannot be read. */
  readable(read: Pick<StateRead, 'target' | 'key'>, where: string): RelationShape<Column>;
  /** The value as the column stores it; throws {@link invalid} if the column does not take it. */
  store(relation: RelationShape<Column>, column: Column, value: Value, where: string): Value;
  /**
   * The value of a column that an insert does not state; throws {@link invalid} if it must be
   * stated.
   */
  fill(relation: RelationShape<Column>, column: Column, where: string): Cell;
  /** Rejects constraints that make no sense for a column. */
  checkConstraint?(column: Column, cell: Cell, where: string): void;
  /** Normalises an effect on something without rows, such as a sequence; undefined for others. */
  normaliseOther?(effect: ApprovedEffect, where: string): ApprovedEffect | undefined;
  /** Where `generated` labels have evidence. Without this, labels may be used anywhere. */
  readonly labels?: {
    assigns(relation: RelationShape<Column>, column: Column, op: Op): boolean;
    /** Completes the message "it must also stand …". */
    readonly where: string;
  };
}

/**
 * The schema of a backend that stores values as stated, and null in columns that are not stated.
 */
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
    // These backends have one kind of number: `real` only says that it was not meant as an integer.
    store: (_relation, _column, value) => readReal(value) ?? value,
    fill: (relation, { name }, where) => {
      if (!relation.key.includes(name)) return { is: null };
      throw invalid(where, `"${relation.target}" is addressed by its key; state it`);
    },
  };
}

/** The error for an insert that omits a column without a constant default. */
export function mustBeStated(where: string, computedDefault?: string) {
  return invalid(
    where,
    computedDefault === undefined
      ? 'it is NOT NULL and has no default; state its value'
      : `its default is computed (${computedDefault}); state the value, now() for the current time, or any()`,
  );
}

/** Finds a column by name. If there is none, the error suggests a similar name. */
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

/** Checks that exactly the key columns are named. */
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

/** Formats names for a message. */
export function list(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}

/** The error for an invalid manifest: where it is wrong and what to change. */
export function invalid(
  where: string,
  what: string,
  cause?: unknown,
): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', `${where}: ${what}`, { cause });
}
