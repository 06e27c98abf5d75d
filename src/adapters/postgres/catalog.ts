import type { Connection } from '../../postgres/connection.ts';
import { nameTarget, type QualifiedName } from '../../postgres/identifier.ts';
import { suggest } from '../../protocol/nearest.ts';
import { describeColumn, type FoundColumn } from './catalog-column.ts';
import { queryPinned } from './formats.ts';
import type { Leaf, Relation } from './relation.ts';
import { IS_BUILT_IN, readTypes, TYPES_IN, type TypeGraph, vouchedExtensions } from './types.ts';

/**
 * What became of a name: a table whose rows can be observed and read exactly, or why there is none.
 */
export type Inspection =
  | { readonly kind: 'usable'; readonly relation: Relation; readonly rowSecurity: boolean }
  | { readonly kind: 'unusable'; readonly target: string; readonly why: string };

/**
 * Reads the shapes of tables as they are now, in the order asked, in one round trip (one more where
 * a name is unknown, and one where types are not the server's). Everything a recorder could not
 * report faithfully is `unusable`, with a remedy. `trustedCode` are extensions that the deployment
 * vouches for.
 */
export async function readRelations(
  connection: Connection,
  names: readonly QualifiedName[],
  trustedCode: readonly string[] = [],
): Promise<readonly Inspection[]> {
  const vouched = vouchedExtensions(trustedCode);
  const { rows } = await queryPinned(connection, 'formats and names', {
    text: CATALOG_QUERY,
    values: [names.map(({ schema }) => schema), names.map(({ name }) => name), vouched],
  });
  const all = rows.map(([text]) => (text == null ? null : (JSON.parse(text) as Found)));
  const columns = all.flatMap((found) => found?.columns ?? []);
  const used = columns.flatMap(({ type, defaultTypes }) => [type.oid, ...defaultTypes]);
  const types = await readTypes(connection, used, vouched);
  const known = all.includes(null) ? await readTableNames(connection) : [];
  return names.map((name, index) => {
    const target = nameTarget(name);
    const found = all[index] ?? null;
    if (found === null) {
      return { kind: 'unusable', target, why: `there is no such table${suggest(target, known)}` };
    }
    const why = findFault(found);
    if (why !== undefined) return { kind: 'unusable', target, why };
    return {
      kind: 'usable',
      relation: describeRelation(name, found, types),
      rowSecurity: found.rowSecurity,
    };
  });
}

interface Found {
  readonly oid: number;
  readonly kind: string;
  readonly persistence: string;
  readonly rowSecurity: boolean;
  readonly parents: readonly string[];
  readonly children: readonly string[];
  readonly rules: readonly string[];
  readonly columns: readonly FoundColumn[];
  readonly key: readonly string[];
  readonly leaves: readonly (Leaf & { readonly kind: string; readonly persistence: string })[];
}

function describeRelation(name: QualifiedName, found: Found, types: TypeGraph): Relation {
  const columns = found.columns.map((column) => describeColumn(column, types));
  const own = { ...name, oid: found.oid, columns: columns.map((column) => column.name) };
  const partitioned = found.kind === 'p';
  return {
    ...name,
    oid: found.oid,
    target: nameTarget(name),
    columns,
    key: found.key,
    leaves: partitioned
      ? found.leaves.map((leaf) => ({
          schema: leaf.schema,
          name: leaf.name,
          oid: leaf.oid,
          columns: leaf.columns,
        }))
      : [own],
    partitioned,
  };
}

const KINDS: Readonly<Record<string, string>> = {
  v: 'a view; name the tables beneath it here, and the view itself in `views` if operations write through it',
  m: 'a materialized view, which only a refresh changes',
  f: 'a foreign table, whose rows are on another server',
  S: 'a sequence',
  i: 'an index',
  I: 'an index',
  c: 'a composite type',
  t: 'a TOAST table',
};

/** The first reason why rows of this relation could be changed or read without that being exact. */
function findFault(found: Found): string | undefined {
  if (!['r', 'p'].includes(found.kind))
    return `it is ${KINDS[found.kind] ?? `of kind "${found.kind}"`}`;
  if (found.columns.length === 0) return 'it has no columns';
  if (found.columns.some(({ name }) => name === '__proto__'))
    return 'a column is named __proto__; rename it';
  const virtual = found.columns.find(({ generated }) => generated === 'v');
  if (virtual !== undefined)
    return `column "${virtual.name}" is computed when read and never recorded; make it STORED`;
  if (found.parents.length > 0)
    return `it inherits from ${found.parents.join(', ')}; use partitions instead`;
  if (found.children.length > 0) {
    return `${found.children.join(', ')} inherits from it, with rows that have columns of their own; use partitions`;
  }
  if (found.rules.length > 0)
    return `rule "${found.rules[0]}" rewrites statements on it; use a trigger instead`;
  const own = { ...found, name: 'it', schema: undefined };
  return [own, ...found.leaves].map(findLeafFault).find((fault) => fault !== undefined);
}

function findLeafFault(leaf: {
  readonly schema: string | undefined;
  readonly name: string;
  readonly kind: string;
  readonly persistence: string;
}): string | undefined {
  const named =
    leaf.schema === undefined
      ? 'it'
      : `its partition ${nameTarget({ schema: leaf.schema, name: leaf.name })}`;
  if (leaf.kind === 'f') return `${named} is a foreign table, whose rows are on another server`;
  if (leaf.persistence === 'u')
    return `${named} is unlogged and would be empty after a crash; use SET LOGGED`;
  if (leaf.persistence === 't') return `${named} is temporary, so no other session has it`;
  return undefined;
}

/** Every table that could have been meant, for suggestions only. */
async function readTableNames(connection: Connection): Promise<readonly string[]> {
  const { rows } = await queryPinned(connection, 'formats and names', { text: TABLES_QUERY });
  return rows.map(([schema, name]) => nameTarget({ schema: schema ?? '', name: name ?? '' }));
}

const TABLES_QUERY = `
select n.nspname as schema, c.relname as name
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition
  and n.nspname not in ('pg_catalog', 'information_schema', 'effectmatch') and n.nspname !~ '^pg_(toast|temp)'
order by 1, 2 limit 10000`;

const NAME_OF = (oid: string) => `
  (select pg_catalog.quote_ident(n2.nspname) || '.' || pg_catalog.quote_ident(c2.relname)
   from pg_catalog.pg_class c2 join pg_catalog.pg_namespace n2 on n2.oid = c2.relnamespace where c2.oid = ${oid})`;

/** The type of a column, and the type beneath all its domains. */
const TYPE_OF = `
  (with recursive beneath as (
     select ty.oid, ty.typbasetype, ty.typtype from pg_catalog.pg_type ty where ty.oid = a.atttypid
     union all
     select ty.oid, ty.typbasetype, ty.typtype
     from beneath b join pg_catalog.pg_type ty on ty.oid = b.typbasetype where b.typtype = 'd'
   )
   select pg_catalog.json_build_object(
     'oid', a.atttypid::pg_catalog.int8, 'schema', outer_space.nspname, 'name', outer_type.typname,
     'formatted', case when a.atttypmod >= 0 then pg_catalog.format_type(a.atttypid, a.atttypmod) end,
     'domain', outer_type.typtype = 'd', 'base', ty.typname, 'baseSchema', n3.nspname, 'kind', ty.typtype)
   from beneath b join pg_catalog.pg_type ty on ty.oid = b.oid
     join pg_catalog.pg_namespace n3 on n3.oid = ty.typnamespace
     join pg_catalog.pg_type outer_type on outer_type.oid = a.atttypid
     join pg_catalog.pg_namespace outer_space on outer_space.oid = outer_type.typnamespace
   where b.typtype <> 'd')`;

const SEQUENCE = `pg_catalog.json_build_object('oid', s.seqrelid::pg_catalog.int8, 'schema', n4.nspname,
     'name', c4.relname, 'increment', s.seqincrement::pg_catalog.text, 'start', s.seqstart::pg_catalog.text,
     'cache', s.seqcache::pg_catalog.text)`;

/**
 * The sequence of an identity column hangs on the column, that of a default on the default's
 * expression.
 */
const SEQUENCE_OF = `
  (select ${SEQUENCE}
   from pg_catalog.pg_depend d
     join pg_catalog.pg_sequence s
       on s.seqrelid = case when a.attidentity = '' then d.refobjid else d.objid end
     join pg_catalog.pg_class c4 on c4.oid = s.seqrelid
     join pg_catalog.pg_namespace n4 on n4.oid = c4.relnamespace
   where case when a.attidentity = ''
     then d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass and d.objid = ad.oid
       and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
     else d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refobjid = a.attrelid
       and d.refobjsubid = a.attnum and d.deptype = 'i' and d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass end
   limit 1)`;

/** Sequences in the default's expression, of the identity, and owned by the column. */
const DRAWS_OF = `
  (select coalesce(pg_catalog.json_agg(${SEQUENCE}), '[]')
   from (select d.refobjid from pg_catalog.pg_depend d
         where d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass and d.objid = ad.oid
           and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
         union select d.objid from pg_catalog.pg_depend d
         where d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refobjid = a.attrelid
           and d.refobjsubid = a.attnum and d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
           and d.deptype in ('a', 'i')) as u (oid)
     join pg_catalog.pg_sequence s on s.seqrelid = u.oid
     join pg_catalog.pg_class c4 on c4.oid = s.seqrelid
     join pg_catalog.pg_namespace n4 on n4.oid = c4.relnamespace)`;

const COLUMNS_OF = `
  (select pg_catalog.json_agg(pg_catalog.json_build_object(
     'name', a.attname, 'notNull', a.attnotnull, 'generated', a.attgenerated, 'identity', a.attidentity <> '',
     'defaultText', coalesce(pg_catalog.pg_get_expr(ad.adbin, ad.adrelid), pg_catalog.pg_get_expr(own.typdefaultbin, 0)),
     'defaultBuiltIn', ${IS_BUILT_IN('tree.text', '$3')},
     'defaultTypes', (select coalesce(pg_catalog.json_agg(x.oid), '[]') from ${TYPES_IN('tree.text')} as x (oid)),
     'type', ${TYPE_OF}, 'sequence', ${SEQUENCE_OF}, 'draws', ${DRAWS_OF})
     order by a.attnum)
   from pg_catalog.pg_attribute a
     left join pg_catalog.pg_attrdef ad on ad.adrelid = a.attrelid and ad.adnum = a.attnum
     left join pg_catalog.pg_type own on own.oid = a.atttypid
     cross join lateral (select coalesce(ad.adbin, own.typdefaultbin)::pg_catalog.text as text) as tree
   where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)`;

const LEAVES_OF = `
  (select pg_catalog.json_agg(pg_catalog.json_build_object('oid', l.oid::pg_catalog.int8, 'schema', n5.nspname,
     'name', l.relname, 'kind', l.relkind, 'persistence', l.relpersistence, 'columns',
     (select pg_catalog.json_agg(a.attname order by a.attnum) from pg_catalog.pg_attribute a
      where a.attrelid = l.oid and a.attnum > 0 and not a.attisdropped)) order by l.oid)
   from pg_catalog.pg_partition_tree(c.oid) p join pg_catalog.pg_class l on l.oid = p.relid
     join pg_catalog.pg_namespace n5 on n5.oid = l.relnamespace
   where p.isleaf and c.relkind = 'p' and l.relkind <> 'p')`;

const CATALOG_QUERY = `
select case when c.oid is not null then pg_catalog.json_build_object(
  'oid', c.oid::pg_catalog.int8, 'kind', c.relkind, 'persistence', c.relpersistence, 'rowSecurity', c.relrowsecurity,
  'parents', (select coalesce(pg_catalog.json_agg(${NAME_OF('i.inhparent')}), '[]') from pg_catalog.pg_inherits i
    where i.inhrelid = c.oid and not c.relispartition),
  'children', (select coalesce(pg_catalog.json_agg(${NAME_OF('i.inhrelid')}), '[]') from pg_catalog.pg_inherits i
    where i.inhparent = c.oid and c.relkind <> 'p'),
  'rules', (select coalesce(pg_catalog.json_agg(r.rulename), '[]') from pg_catalog.pg_rewrite r
    where r.ev_class = c.oid and c.relkind in ('r', 'p')),
  'columns', coalesce(${COLUMNS_OF}, '[]'),
  'key', (select coalesce(pg_catalog.json_agg(a.attname order by k.at), '[]') from pg_catalog.pg_index i
    cross join lateral pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality as k (number, at)
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
    where i.indrelid = c.oid and i.indisprimary and k.at <= i.indnkeyatts),
  'leaves', coalesce(${LEAVES_OF}, '[]')) end as found
from rows from (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) with ordinality as w (schema, name, at)
  left join pg_catalog.pg_namespace n on n.nspname = w.schema
  left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = w.name
order by w.at`;
