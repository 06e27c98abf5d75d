import type { QualifiedName } from '../../postgres/identifier.ts';
import type { TypeReading } from './types.ts';

/** One column as the catalogue has it. */
export interface PostgresColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly notNull: boolean;
  /** Text of the DEFAULT expression, undefined where there is none. */
  readonly defaultText: string | undefined;
  /** Whether that expression can be evaluated without running code of the application. */
  readonly defaultBuiltIn: boolean;
  /** Computed from other columns and stored: reported and compared, never stated by an INSERT. */
  readonly generated: boolean;
  /** GENERATED ALWAYS or BY DEFAULT AS IDENTITY. */
  readonly identity: boolean;
  /** The sequence that assigns the column (identity or `nextval` default). */
  readonly sequence: ColumnSequence | undefined;
  /**
   * Every sequence that is there for the column: of its identity, in its default, or owned by it.
   */
  readonly draws: readonly ColumnSequence[];
}

/** A sequence as the catalogue has it. */
export interface ColumnSequence extends QualifiedName {
  readonly oid: number;
  readonly increment: string;
  readonly start: string;
  /** How many numbers a session takes at a time. */
  readonly cache: string;
}

/** The type of a column. */
export interface ColumnType {
  readonly oid: number;
  /**
   * Type with schema and modifiers, as a cast would name it: `character varying(3)`,
   * `"public"."mood"`.
   */
  readonly text: string;
  /** How an approved value is read as a value of this type. */
  readonly reading: TypeReading;
  /** Whether it is a domain, whose checks may run code of the application and may refuse NULL. */
  readonly domain: boolean;
  /**
   * Name of the type beneath all domains, for example `int4`, `numeric`, `_text`; how values are
   * read depends on it.
   */
  readonly base: string;
  /** Schema of that type: only `pg_catalog` names say how a value is written. */
  readonly baseSchema: string;
  /**
   * pg_type.typtype of the type beneath all domains: b base, c composite, e enum, r range, m
   * multirange.
   */
  readonly kind: string;
}

/** A table, as far as observing and reading it needs. */
export interface PostgresRelation extends QualifiedName {
  readonly oid: number;
  /** The name in manifests, records and renderings. */
  readonly target: string;
  /** Live columns in the order of the table's row type. */
  readonly columns: readonly PostgresColumn[];
  /** Key columns in key order: the primary key, else empty (rows compare as a multiset). */
  readonly key: readonly string[];
  /**
   * Where rows really are: the table itself, or the leaves of a partitioned table, each with its
   * own column order.
   */
  readonly leaves: readonly Leaf[];
  readonly partitioned: boolean;
  /** Why trusted logins cannot read its rows, and what to do about it. */
  readonly unreadable?: string;
}

/** A physical table of a relation. Rows in records of it have its columns in its order. */
export interface Leaf extends QualifiedName {
  readonly oid: number;
  readonly columns: readonly string[];
}

/**
 * Who assigns the column's value when an INSERT leaves it out, so that a `generated` label has
 * evidence there.
 */
export function assignedBy(column: PostgresColumn): 'sequence' | 'uuid' | undefined {
  if (column.sequence !== undefined) return 'sequence';
  const isUuid = column.type.base === 'uuid' && column.type.baseSchema === 'pg_catalog';
  return isUuid && /^[^']*\(\)$/.test(column.defaultText ?? '') ? 'uuid' : undefined;
}
