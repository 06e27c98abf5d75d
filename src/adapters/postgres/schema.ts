import { invalid, type ManifestSchema, type RelationShape } from '../../backend/manifest-schema.ts';
import { nameTarget, type QualifiedName, readTarget } from '../../postgres/identifier.ts';
import { canonical } from '../../protocol/canon.ts';
import { UNUSED } from '../../protocol/drawn.ts';
import type { ApprovedEffect, Cell, Op, StateRead } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import type { CastBatch } from './cast.ts';
import { findRelation, keyedRelation, type Relations } from './reading.ts';
import {
  assignedBy,
  type ColumnType,
  type PostgresColumn,
  type PostgresRelation,
} from './relation.ts';

/** PostgreSQL's tables for normalising manifests. The database casts values in a batch. */
export class PostgresSchema implements ManifestSchema<PostgresColumn> {
  readonly registration: Registration;
  readonly labels = {
    assigns: (_: RelationShape, column: PostgresColumn, op: Op) =>
      op === 'insert' && assignedBy(column) !== undefined,
    where: 'in an insert, on a column with an identity, sequence or uuid default',
  };
  readonly #relations: Relations;
  readonly #views: readonly QualifiedName[];
  readonly #casts: CastBatch;

  constructor(
    tools: {
      readonly registration: Registration;
      readonly relations: Relations;
      readonly views?: readonly QualifiedName[];
    },
    casts: CastBatch,
  ) {
    this.registration = tools.registration;
    this.#relations = tools.relations;
    this.#views = tools.views ?? [];
    this.#casts = casts;
  }

  registered({ target }: ApprovedEffect, where: string): PostgresRelation | undefined {
    const relation = findRelation(this.#relations, target);
    if (this.registration.targets.some(({ name }) => name === relation?.target)) return relation;
    const { exact, folded } = readTarget(target) ?? {};
    const isView = this.#views.some(({ schema, name }) =>
      [exact, folded].some((stated) => schema === stated?.schema && name === stated.name),
    );
    if (isView)
      throw invalid(where, `"${target}" is a view; state what happens to the tables beneath it`);
    return undefined;
  }

  readable({ target }: Pick<StateRead, 'target'>, where: string): PostgresRelation {
    return keyedRelation(this.#relations, target, where);
  }

  store(_: RelationShape, column: PostgresColumn, value: Value, where: string): Value {
    return this.#casts.value(column, value, where);
  }

  fill(relation: PostgresRelation, column: PostgresColumn, where: string): Cell {
    const { name, generated, defaultText, notNull, type } = column;
    // It follows from the row's other columns, which are all compared.
    if (generated) return { any: true };
    if (assignedBy(column) !== undefined) {
      throw invalid(
        where,
        `the database assigns it; write ${name}: generated('new ${relation.name}') or its value`,
      );
    }
    if (defaultText === undefined || isNull(defaultText)) {
      if (notNull) throw invalid(where, 'it is NOT NULL and has no default; state its value');
      return { is: this.#casts.value(column, null, where) };
    }
    if (isLiteral(defaultText, type))
      return { is: this.#casts.constant(column, defaultText, where) };
    throw invalid(
      where,
      `its default is computed (${defaultText}); state the value, now() for the current time, or any()`,
    );
  }

  checkConstraint(column: PostgresColumn, cell: Cell, where: string): void {
    if (!('between' in cell) || isOrdered(column)) return;
    throw invalid(
      where,
      `between would compare ${column.type.text} by its text, which has another order; use oneOf()`,
    );
  }

  /**
   * A sequence is registered with the column that draws from it. Its only effect is numbers that no
   * row has.
   */
  normaliseOther(effect: ApprovedEffect, where: string): ApprovedEffect | undefined {
    if (findRelation(this.#relations, effect.target) !== undefined) return undefined;
    const sequence = findSequence(this.registration, effect.target);
    return sequence === undefined ? undefined : normaliseUnused(sequence, effect, where);
  }
}

/** Types whose values sort like what they represent. Text sorts by code points. */
const ORDERED =
  /^(?:int[248]|oid|numeric|float[48]|text|varchar|bpchar|name|date|time|timestamp|timestamptz|uuid)$/;

function isOrdered({ type }: PostgresColumn): boolean {
  return type.baseSchema === 'pg_catalog' && ORDERED.test(type.base);
}

/**
 * The registered sequence with this name. Every registered target that is not a relation is one.
 */
function findSequence({ targets }: Registration, stated: string): string | undefined {
  const { exact, folded } = readTarget(stated) ?? {};
  const names = [exact, folded].map((name) => name && nameTarget(name));
  return targets.find(({ name }) => names.includes(name))?.name;
}

/** What `unused(...)` states, apart from the sequence and the numbers. */
const UNUSED_SHAPE = canonical({ op: 'update', before: { [UNUSED]: { is: 0 } }, count: 1 });

/**
 * Accepts only `unused(...)`, numbers that no row has: nothing else can be stated about a sequence.
 */
function normaliseUnused(target: string, effect: ApprovedEffect, where: string): ApprovedEffect {
  const { target: _, after = {}, ...shape } = effect;
  const [stated, ...more] = Object.entries(after);
  const isUnused = more.length === 0 && canonical(shape) === UNUSED_SHAPE;
  if (isUnused && stated?.[0] === UNUSED && isPositive(stated[1])) return { ...effect, target };
  throw invalid(
    where,
    `"${target}" is a sequence; write unused('${target}', 3) for numbers that no row has`,
  );
}

function isPositive(cell: Cell): boolean {
  if ('generated' in cell) return false;
  const values = 'is' in cell ? [cell.is] : 'oneOf' in cell ? cell.oneOf : [1];
  return values.every((value) => Number.isSafeInteger(value) && Number(value) > 0);
}

const LITERAL = "(?:B?'(?:[^']|'')*'|[-+]?\\d+(?:\\.\\d+)?|true|false|ARRAY\\[\\])";
/** A type as the catalogue prints it: names or key words, modifiers, brackets. */
const TYPE =
  '(?:::(?:"(?:[^"]|"")+"|[a-z_][\\w$]*(?![\\w$])|\\.| |\\(\\d+(?:,-?\\d+)?\\)|\\[\\])+)';
const PLAIN = new RegExp(`^(?:${LITERAL}${TYPE}*|\\(${LITERAL}${TYPE}*\\)${TYPE}*)$`);

const TIMES = /^(?:date|time|timetz|timestamp|timestamptz)$/;

/**
 * Whether a DEFAULT is the same for every row: a literal, with or without casts. Old ways of
 * writing the current time, such as `('now'::text)::date`, look like a literal but are not.
 */
function isLiteral(text: string, type: ColumnType): boolean {
  if (!PLAIN.test(text)) return false;
  return !(TIMES.test(type.base) && /now|today|tomorrow|yesterday/i.test(text));
}

const EMPTY = new RegExp(`^\\(?NULL${TYPE}*\\)?${TYPE}*$`, 'i');

/** Whether a DEFAULT is NULL, with or without casts. */
function isNull(text: string): boolean {
  return EMPTY.test(text);
}
