import type { Connection } from '../../postgres/connection.ts';
import { nameTarget, type QualifiedName } from '../../postgres/identifier.ts';
import { suggest } from '../../protocol/nearest.ts';
import { queryPinned } from './formats.ts';

/** A function or procedure that agents may call. */
export interface Entry extends QualifiedName {
  readonly oid: number;
  readonly kind: 'function' | 'procedure';
  /** In the order of a call. What a procedure only returns stands in its calls too, as NULL. */
  readonly arguments: readonly { readonly type: string; readonly input: boolean }[];
  /** Runs with the rights of its owner instead of the execution login's. */
  readonly securityDefiner: boolean;
  readonly language: string;
}

/** What became of a name. */
export type EntryInspection =
  | { readonly kind: 'usable'; readonly entry: Entry }
  | { readonly kind: 'unusable'; readonly target: string; readonly why: string };

interface Found extends Omit<Entry, 'kind' | 'arguments' | 'schema' | 'name'> {
  readonly prokind: string;
  readonly variadic: boolean;
  readonly arguments: readonly { readonly type: string; readonly mode: string }[];
}

/** Looks up entry points as they are now, in the order asked, in one round trip. Overloaded names are refused. */
export async function readEntries(
  connection: Connection,
  names: readonly QualifiedName[],
): Promise<readonly EntryInspection[]> {
  const { rows } = await queryPinned(connection, 'formats and names', {
    text: ENTRY_QUERY,
    values: [names.map(({ schema }) => schema), names.map(({ name }) => name)],
  });
  return names.map((name, index) => {
    const [found, near] = rows[index] ?? [];
    return inspectEntry(name, JSON.parse(found ?? '[]') as readonly Found[], JSON.parse(near ?? '[]') as string[]);
  });
}

function inspectEntry(name: QualifiedName, found: readonly Found[], near: readonly string[]): EntryInspection {
  const target = nameTarget(name);
  const unusable = (why: string): EntryInspection => ({ kind: 'unusable', target, why });
  const [only] = found;
  if (only === undefined) return unusable(`there is no such function or procedure${suggest(name.name, near)}`);
  if (found.length > 1)
    return unusable(`there are ${found.length} of this name; give the one to register its own name`);
  const { prokind, variadic, arguments: list, ...rest } = only;
  if (!['f', 'p'].includes(prokind)) return unusable('it is an aggregate or window function');
  if (variadic) return unusable('it takes any number of arguments; declare an array instead');
  const kind = prokind === 'p' ? 'procedure' : 'function';
  const inputs = list.map(({ type, mode }) => ({ type, input: mode === 'i' || mode === 'b' }));
  const stated = kind === 'procedure' ? inputs : inputs.filter(({ input }) => input);
  return { kind: 'usable', entry: { ...name, ...rest, kind, arguments: stated } };
}

const ENTRY_QUERY = `
select (select pg_catalog.json_agg(pg_catalog.json_build_object('oid', p.oid::pg_catalog.int8, 'prokind', p.prokind,
    'variadic', p.provariadic <> 0, 'securityDefiner', p.prosecdef, 'language', l.lanname,
    'arguments', (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('mode', coalesce(p.proargmodes[a.at], 'i'),
        'type', pg_catalog.quote_ident(tn.nspname) || '.' || pg_catalog.quote_ident(t.typname)) order by a.at), '[]')
      from pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])) with ordinality as a (type, at)
        join pg_catalog.pg_type t on t.oid = a.type join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
      where coalesce(p.proargmodes[a.at], 'i') <> 't')))
    from pg_catalog.pg_proc p join pg_catalog.pg_language l on l.oid = p.prolang
    where p.pronamespace = n.oid and p.proname = w.name),
  (select pg_catalog.json_agg(distinct p.proname) from pg_catalog.pg_proc p where p.pronamespace = n.oid
    and n.nspname <> 'pg_catalog')
from rows from (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  with ordinality as w (schema, name, at)
  left join pg_catalog.pg_namespace n on n.nspname = w.schema
order by w.at`;
