import type { Connection } from '../../postgres/connection.ts';
import {
  nameTarget,
  parseTarget,
  type QualifiedName,
  quoteQualified,
  sqlName,
} from '../../postgres/identifier.ts';
import { suggest } from '../../protocol/nearest.ts';
import { queryPinned } from './formats.ts';
import { refused, refuseTwice, type Settings, type StatedName } from './options.ts';
import { ambiguousName } from './reading.ts';
import type {
  ColumnSequence,
  Leaf,
  PostgresColumn,
  PostgresForeignKey,
  PostgresRelation,
} from './relation.ts';
import { SQL } from './sql.ts';
import { readTypes, type TypeGraph, vouchedExtensions } from './types.ts';

/** The table with a name, if its rows can be observed and read exactly, or the reason why not. */
export type RelationInspection =
  | { readonly kind: 'usable'; readonly relation: PostgresRelation; readonly rowSecurity: boolean }
  | { readonly kind: 'unusable'; readonly target: string; readonly why: string };

/**
 * Reads the current shapes of tables, in the order asked, in one round trip (plus one if a name is
 * unknown, and one if a type is not built in). A table that a recorder could not report faithfully
 * is `unusable`, with a remedy. `trustedCode` lists extensions that the deployment vouches for.
 */
export async function readRelations(
  connection: Connection,
  names: readonly QualifiedName[],
  trustedCode: readonly string[] = [],
): Promise<readonly RelationInspection[]> {
  const vouched = vouchedExtensions(trustedCode);
  const { rows } = await queryPinned(connection, SQL.registered.get('relations'), [
    names.map(({ schema }) => schema),
    names.map(({ name }) => name),
    vouched,
  ]);
  const all = rows.map(([text]) => (text == null ? null : (JSON.parse(text) as Found)));
  const columns = all.flatMap((found) => found?.columns ?? []);
  const used = columns.flatMap(({ type, defaultTypes }) => [type.oid, ...defaultTypes]);
  const types = await readTypes(connection, used, vouched);
  const known = all.includes(null) ? await readTableNames(connection) : [];
  return names.map((name, index) => {
    const target = targetAmong(names, name);
    const found = all[index] ?? null;
    if (found === null) {
      return { kind: 'unusable', target, why: `there is no such table${suggest(target, known)}` };
    }
    const { fault, rowSecurity } = found;
    if (fault !== null) return { kind: 'unusable', target, why: fault };
    const relation = describeRelation({ ...name, target }, found, types);
    return { kind: 'usable', relation, rowSecurity };
  });
}

/**
 * Resolves the names in the settings to existing tables and views: an unquoted `Track` is accepted
 * if there is no `track`.
 */
export async function resolveNames(connection: Connection, settings: Settings): Promise<Settings> {
  const { relations, views, reads } = settings;
  const open = [...relations, ...views, ...reads].filter(({ exact }) => exact !== undefined);
  if (open.length === 0) return settings;
  const asked = open.flatMap((name) => [name, name.exact ?? name]);
  const { rows } = await queryPinned(connection, SQL.registered.get('existing'), [
    asked.map(({ schema }) => schema),
    asked.map(({ name }) => name),
  ]);
  const exists = new Map(asked.map((name, index) => [name, rows[index]?.[0] === 't']));
  const resolve = <Name extends StatedName>(name: Name): Name => {
    const { exact } = name;
    if (exact === undefined || !exists.get(exact)) return name;
    if (!exists.get(name)) return { ...name, ...exact };
    throw refused(`relation "${nameTarget(exact)}": ${ambiguousName(exact, name)}`);
  };
  const resolved = relations.map(resolve);
  refuseTwice(resolved);
  return {
    ...settings,
    relations: resolved,
    views: views.map(resolve),
    reads: reads.map(resolve),
  };
}

interface Found {
  readonly oid: number;
  readonly kind: string;
  readonly rowSecurity: boolean;
  /** Why changes or reads of its rows would not be exact. */
  readonly fault: string | null;
  readonly columns: readonly FoundColumn[];
  readonly key: readonly string[];
  readonly leaves: readonly Leaf[];
  readonly foreignKeys: readonly PostgresForeignKey[];
}

/** The target, quoted if SQL would read the unquoted name as another of these relations. */
function targetAmong(names: readonly QualifiedName[], own: QualifiedName): string {
  const target = nameTarget(own);
  const folded = parseTarget(target);
  const isTwin = ({ schema, name }: QualifiedName) =>
    schema === folded?.schema && name === folded.name;
  const isOwn = folded?.schema === own.schema && folded.name === own.name;
  return !isOwn && names.some(isTwin) ? sqlName(own) : target;
}

function describeRelation(
  { schema, name, target }: QualifiedName & { readonly target: string },
  found: Found,
  types: TypeGraph,
): PostgresRelation {
  const columns = found.columns.map((column) => describeColumn(column, types));
  const own = { schema, name, oid: found.oid, columns: columns.map((column) => column.name) };
  const partitioned = found.kind === 'p';
  return {
    schema,
    name,
    oid: found.oid,
    target,
    columns,
    key: found.key,
    leaves: partitioned ? found.leaves : [own],
    partitioned,
    foreignKeys: found.foreignKeys,
  };
}

/** A column as the catalogue query returns it. */
export interface FoundColumn {
  readonly name: string;
  readonly notNull: boolean;
  /** pg_attribute.attgenerated: empty, s for stored, v for virtual. */
  readonly generated: string;
  readonly identity: boolean;
  readonly defaultText: string | null;
  /** Whether the default calls only built-in functions, and which application types it names. */
  readonly defaultBuiltIn: boolean;
  readonly defaultTypes: readonly number[];
  readonly type: {
    readonly oid: number;
    readonly schema: string;
    readonly name: string;
    /** With its modifiers, if it has any: keywords of the grammar, or a qualified name. */
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
 * A default that is the next value itself. The result of arithmetic on it would not be a value that
 * the sequence gave out.
 */
const PLAIN_NEXTVAL = /^\(?nextval\('(?:[^']|'')*'::regclass\)\)?(?:::[a-z ]+)?$/;

/** Describes a column. `sequence` is set only if the sequence itself assigns the value. */
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

/** The names of all tables, for suggestions only. */
async function readTableNames(connection: Connection): Promise<readonly string[]> {
  const { rows } = await queryPinned(connection, SQL.registered.get('tables'));
  return rows.map(([schema, name]) => nameTarget({ schema: schema ?? '', name: name ?? '' }));
}
