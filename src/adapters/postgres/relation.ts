import type { ForeignKeyColumn } from '../../backend/foreign-keys.ts';
import type { QualifiedName } from '../../postgres/identifier.ts';
import type { TypeReading } from './types.ts';

/** A column, as the catalogue has it. */
export interface PostgresColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly notNull: boolean;
  /** Text of the DEFAULT expression; undefined if there is none. */
  readonly defaultText: string | undefined;
  /** Whether that expression can be evaluated without running application code. */
  readonly defaultBuiltIn: boolean;
  /** Computed from other columns and stored: reported and compared, never stated by an INSERT. */
  readonly generated: boolean;
  /** GENERATED ALWAYS or BY DEFAULT AS IDENTITY. */
  readonly identity: boolean;
  /** The sequence that assigns the column (identity or `nextval` default). */
  readonly sequence: ColumnSequence | undefined;
  /**
   * Every sequence of the column: that of its identity, those in its default, and those it owns.
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
  /** How to read an approved value as a value of this type. */
  readonly reading: TypeReading;
  /** Whether it is a domain, whose checks may run application code and may refuse NULL. */
  readonly domain: boolean;
  /**
   * Name of the type beneath all domains, for example `int4`, `numeric` or `_text`. It determines
   * how values are read.
   */
  readonly base: string;
  /** Schema of that type. `base` determines the format of values only if this is `pg_catalog`. */
  readonly baseSchema: string;
  /**
   * pg_type.typtype of the type beneath all domains: b base, c composite, e enum, r range, m
   * multirange.
   */
  readonly kind: string;
}

/** What is needed of a table to observe and read it. */
export interface PostgresRelation extends QualifiedName {
  readonly oid: number;
  /** The name in manifests, records and renderings. */
  readonly target: string;
  /** Live columns in the order of the table's row type. */
  readonly columns: readonly PostgresColumn[];
  /** Key columns in key order: the primary key, else empty (rows compare as a multiset). */
  readonly key: readonly string[];
  /**
   * The tables that hold the rows: the table itself, or the leaves of a partitioned table, each
   * with its own column order.
   */
  readonly leaves: readonly Leaf[];
  readonly partitioned: boolean;
  readonly foreignKeys: readonly PostgresForeignKey[];
  /** Why trusted logins cannot read its rows, and what to do about it. */
  readonly unreadable?: string;
}

/** One column of a foreign key, and the column of another table that it refers to. */
export interface PostgresForeignKey {
  readonly column: string;
  readonly referredTable: number;
  readonly referredColumn: string;
}

/** A physical table of a relation. Rows in its records have its columns, in its order. */
export interface Leaf extends QualifiedName {
  readonly oid: number;
  readonly columns: readonly string[];
}

/**
 * What assigns the column's value if an INSERT leaves it out, so that there is evidence for a
 * `generated` label.
 */
export function assignedBy(column: PostgresColumn): 'sequence' | 'uuid' | undefined {
  if (column.sequence !== undefined) return 'sequence';
  const isUuid = column.type.base === 'uuid' && column.type.baseSchema === 'pg_catalog';
  return isUuid && /^[^']*\(\)$/.test(column.defaultText ?? '') ? 'uuid' : undefined;
}

/** The foreign keys of these relations, with targets as manifests and records name them. */
export function listForeignKeys(
  relations: readonly PostgresRelation[],
): readonly ForeignKeyColumn[] {
  const targets = new Map<number, string>();
  for (const { oid, leaves, target } of relations)
    for (const table of [oid, ...leaves.map((leaf) => leaf.oid)]) targets.set(table, target);
  return relations.flatMap(({ target, foreignKeys }) =>
    foreignKeys.map(({ column, referredTable, referredColumn }) => {
      const referred = targets.get(referredTable);
      const refersTo =
        referred === undefined ? undefined : { target: referred, column: referredColumn };
      return { target, column, refersTo };
    }),
  );
}
