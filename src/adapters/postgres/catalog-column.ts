import { quoteQualified } from '../../postgres/identifier.ts';
import type { ColumnSequence, PostgresColumn } from './relation.ts';
import type { TypeGraph } from './types.ts';

/** A column as the catalogue query returns it. */
export interface FoundColumn {
  readonly name: string;
  readonly notNull: boolean;
  /** pg_attribute.attgenerated: empty, s for stored, v for virtual. */
  readonly generated: string;
  readonly identity: boolean;
  readonly defaultText: string | null;
  /**
   * Whether the default calls built-in functions only, and which types of the application it names.
   */
  readonly defaultBuiltIn: boolean;
  readonly defaultTypes: readonly number[];
  readonly type: {
    readonly oid: number;
    readonly schema: string;
    readonly name: string;
    /** With modifiers, where it has any: key words of the grammar, or a name with its schema. */
    readonly formatted: string | null;
    readonly domain: boolean;
    readonly base: string;
    readonly baseSchema: string;
    readonly kind: string;
  };
  readonly sequence: ColumnSequence | null;
  readonly draws: readonly ColumnSequence[];
}

/**
 * A default that takes the next value as it is; arithmetic on it would not be the value that the
 * sequence gave.
 */
const PLAIN_NEXTVAL = /^\(?nextval\('(?:[^']|'')*'::regclass\)\)?(?:::[a-z ]+)?$/;

/** The column with its sequence only where that assigns the value itself. */
export function describeColumn(found: FoundColumn, types: TypeGraph): PostgresColumn {
  const { name, notNull, identity, type } = found;
  const text = type.formatted ?? quoteQualified(type);
  const defaultText = found.generated === '' ? (found.defaultText ?? undefined) : undefined;
  const draws = identity || PLAIN_NEXTVAL.test(defaultText ?? '');
  return {
    name,
    notNull,
    defaultText,
    defaultBuiltIn:
      found.defaultBuiltIn &&
      found.defaultTypes.every((oid) => types.codeBehind(oid) === undefined),
    generated: found.generated !== '',
    identity,
    sequence: draws ? (found.sequence ?? undefined) : undefined,
    draws: found.draws,
    type: {
      oid: type.oid,
      text,
      reading: types.readingOf(type.oid, text),
      domain: type.domain,
      base: type.base,
      baseSchema: type.baseSchema,
      kind: type.kind,
    },
  };
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
