import type { Connection } from '../../postgres/connection.ts';
import { nameTarget, type QualifiedName } from '../../postgres/identifier.ts';
import { TRUSTED_EXTENSIONS } from './certify/builtins.ts';
import { queryPinned } from './formats.ts';

/** Object ids below are the server's own. */
const USER = 16384;

/** A type that the server did not come with, as the catalogue has it. */
interface FoundType extends QualifiedName {
  readonly oid: number;
  /** pg_type.typtype: b base, c composite, d domain, e enum, r range, m multirange. */
  readonly kind: string;
  /** Of a domain: the type beneath it, with its modifiers as SQL writes them. */
  readonly base: { readonly oid: number; readonly text: string } | null;
  /** Of an array type: the type of its elements, as SQL writes it. */
  readonly element: { readonly oid: number; readonly text: string } | null;
  /** Types of the application that reading a value goes through. */
  readonly parts: readonly number[];
  /** Which code of its own the type runs when a value is read. */
  readonly code: string | null;
}

/** How a text can be read as a value of a type without running code of the application. */
export type Reading =
  /** With the input function of this type, which may be the one beneath a domain. */
  | { readonly kind: 'built-in'; readonly text: string }
  | { readonly kind: 'code'; readonly why: string };

/** The types of some columns, and what reading a value of them would run. */
export class TypeGraph {
  readonly #types: ReadonlyMap<number, FoundType>;

  constructor(types: readonly FoundType[]) {
    this.#types = new Map(types.map((type) => [type.oid, type]));
  }

  /**
   * Domains are read as the type beneath them where their checks are not built in: the server
   * enforces a check when the row is written, in a stage that was certified. The same inside
   * arrays. Other types have no such form.
   */
  readingOf(oid: number, text: string): Reading {
    const why = this.codeBehind(oid);
    if (why === undefined) return { kind: 'built-in', text };
    const { base, element } = this.#types.get(oid) ?? {};
    if (base) return this.readingOf(base.oid, base.text);
    if (!element) return { kind: 'code', why };
    const inner = this.readingOf(element.oid, element.text);
    return inner.kind === 'code' ? inner : { kind: 'built-in', text: `${inner.text}[]` };
  }

  /**
   * The code of the application that reading a value of this type runs; undefined where there is
   * none.
   */
  codeBehind(oid: number, seen: Set<number> = new Set()): string | undefined {
    const type = this.#types.get(oid);
    if (oid < USER || seen.has(oid)) return undefined;
    seen.add(oid);
    if (type === undefined) return `type ${oid} was not found`;
    if (type.code !== null) return `${KINDS[type.kind] ?? 'type'} ${nameTarget(type)} ${type.code}`;
    for (const part of type.parts) {
      const why = this.codeBehind(part, seen);
      if (why !== undefined) return why;
    }
    return undefined;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  d: 'domain',
  c: 'composite type',
  r: 'range',
  m: 'multirange',
};

/** Extensions whose code computes values only, or that the deployment vouches for. */
export function vouchedExtensions(trustedCode: readonly string[]): readonly string[] {
  return [...TRUSTED_EXTENSIONS, ...trustedCode];
}

/** Reads everything that values of these types are made of. Types of the server need no reading. */
export async function readTypes(
  connection: Connection,
  oids: readonly number[],
  vouched: readonly string[],
): Promise<TypeGraph> {
  const unknown = [...new Set(oids)].filter((oid) => oid >= USER);
  if (unknown.length === 0) return new TypeGraph([]);
  const { rows } = await queryPinned(connection, 'formats and names', {
    text: TYPES_QUERY,
    values: [unknown.map(String), vouched],
  });
  return new TypeGraph(JSON.parse(rows[0]?.[0] ?? '[]') as FoundType[]);
}

/**
 * Whether a function is neither of the server nor native code of an extension that is vouched for;
 * `list` is the parameter with their names. The owner of an extension may add types and other
 * functions to it, but no native ones.
 */
const IS_FOREIGN = (oid: string, list: string) => `
  (${oid}::pg_catalog.oid >= ${USER} and not exists (
    select from pg_catalog.pg_depend d join pg_catalog.pg_extension e on e.oid = d.refobjid
      join pg_catalog.pg_proc c on c.oid = d.objid join pg_catalog.pg_language l on l.oid = c.prolang
    where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = ${oid}::pg_catalog.oid and d.deptype = 'e'
      and d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass and e.extname = any (${list}::pg_catalog.name[])
      and l.lanname in ('c', 'internal')))`;

/**
 * Nodes of stored expressions that call nothing but the functions and types they name, as
 * PostgreSQL 15 and later servers call them. Strings are stored as numbers, so that none can pose
 * as a node.
 */
const NODES =
  '^(?:CONST|COERCETODOMAINVALUE|COERCETODOMAIN|COERCEVIAIO|RELABELTYPE|COLLATEEXPR|FUNCEXPR|OPEXPR|DISTINCTEXPR' +
  '|NULLIFEXPR|SCALARARRAYOPEXPR|BOOLEXPR|NULLTEST|BOOLEANTEST|ARRAY|ARRAYEXPR|ARRAYCOERCEEXPR|CASE|CASEEXPR|WHEN' +
  '|CASEWHEN|CASETESTEXPR|COALESCE|COALESCEEXPR|SUBSCRIPTINGREF)$';

/**
 * Whether a stored expression calls immutable functions of the server or of vouched extensions
 * only, types aside.
 */
export const IS_BUILT_IN = (tree: string, list: string) => `
  (not exists (select from pg_catalog.regexp_matches(${tree}, '\\{([A-Z]+)', 'g') as m (found) where found[1] !~ '${NODES}')
   and not exists (select from pg_catalog.regexp_matches(${tree}, ':(?:funcid|opfuncid) ([0-9]+)', 'g') as m (found)
     left join pg_catalog.pg_proc p on p.oid = found[1]::pg_catalog.oid
     where p.oid is null or p.provolatile <> 'i' or ${IS_FOREIGN('p.oid', list)}))`;

/** The types of the application that a stored expression names. */
export const TYPES_IN = (tree: string) => `
  (select distinct found[1]::pg_catalog.int8
   from pg_catalog.regexp_matches(${tree}, ':[a-z_]*type(?:id|Id)? ([0-9]+)', 'g') as m (found)
   where found[1]::pg_catalog.int8 >= ${USER})`;

const CHECK = 'k.conbin::pg_catalog.text';

/**
 * What a type runs by itself. Arrays and composite types are read by the server, and their parts
 * are listed apart.
 */
const CODE_OF = `
  case
    when ${['t.typinput', 't.typoutput', 't.typmodin'].map((oid) => IS_FOREIGN(oid, '$2')).join(' or ')}
      then 'has input and output functions that are not built in'
    when exists (select from pg_catalog.pg_range r where r.rngtypid = t.oid and (${IS_FOREIGN('r.rngcanonical', '$2')}
        or exists (select from pg_catalog.pg_opclass c join pg_catalog.pg_amproc f on f.amprocfamily = c.opcfamily
          where c.oid = r.rngsubopc and ${IS_FOREIGN('f.amproc', '$2')})))
      then 'has functions of the application for its bounds'
    when exists (select from pg_catalog.pg_amproc f where f.amproclefttype = t.oid and ${IS_FOREIGN('f.amproc', '$2')})
      then 'is compared by a function of the application'
    else (
      select 'has the check ' || pg_catalog.quote_ident(k.conname) || ', which calls more than immutable built-in functions'
      from pg_catalog.pg_constraint k
      where k.contypid = t.oid and k.conbin is not null and not ${IS_BUILT_IN(CHECK, '$2')} order by k.conname limit 1)
  end`;

/** Everything beneath a type, and the types in the checks of a domain. */
const PARTS_OF = `
  (select t.typbasetype::pg_catalog.int8 where t.typtype = 'd'
   union all select t.typelem::pg_catalog.int8 where t.typelem <> 0
   union all select a.atttypid::pg_catalog.int8 from pg_catalog.pg_attribute a
     where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
   union all select r.rngsubtype::pg_catalog.int8 from pg_catalog.pg_range r where r.rngtypid = t.oid
   union all select r.rngtypid::pg_catalog.int8 from pg_catalog.pg_range r where r.rngmultitypid = t.oid
   union all select x.oid from pg_catalog.pg_constraint k cross join lateral ${TYPES_IN(CHECK)} as x (oid)
     where k.contypid = t.oid and k.conbin is not null)`;

const TYPES_QUERY = `
with recursive beneath (oid) as (
  select pg_catalog.unnest($1::pg_catalog.int8[])
  union
  select p.oid from beneath b join pg_catalog.pg_type t on t.oid = b.oid::pg_catalog.oid
    cross join lateral ${PARTS_OF} as p (oid) where p.oid >= ${USER}
)
select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
  'oid', t.oid::pg_catalog.int8, 'schema', n.nspname, 'name', t.typname, 'kind', t.typtype,
  'base', case when t.typtype = 'd' then pg_catalog.json_build_object('oid', t.typbasetype::pg_catalog.int8,
    'text', pg_catalog.format_type(t.typbasetype, t.typtypmod)) end,
  'element', case when t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc then pg_catalog.json_build_object(
    'oid', t.typelem::pg_catalog.int8, 'text', pg_catalog.format_type(t.typelem, -1)) end,
  'parts', (select coalesce(pg_catalog.json_agg(p.oid), '[]') from ${PARTS_OF} as p (oid) where p.oid >= ${USER}),
  'code', ${CODE_OF})), '[]')
from beneath b join pg_catalog.pg_type t on t.oid = b.oid::pg_catalog.oid
  join pg_catalog.pg_namespace n on n.oid = t.typnamespace`;
