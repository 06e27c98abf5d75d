import type { Connection } from '../../postgres/connection.ts';
import { nameTarget, type QualifiedName } from '../../postgres/identifier.ts';
import { suggest } from '../../protocol/nearest.ts';
import { queryPinned } from './formats.ts';
import { refused } from './options.ts';
import { SQL } from './sql.ts';

/**
 * A view that operations may write through. Only what happens to the tables beneath it is compared.
 */
export interface RegisteredView extends QualifiedName {
  readonly oid: number;
  readonly target: string;
  /** The writes that it supports, as GRANT names them. */
  readonly events: readonly string[];
}

interface Found {
  readonly oid: number;
  readonly kind: string;
  readonly rules: readonly string[];
  readonly writes: number;
}

/**
 * Looks up views as they are now, in the order asked. Refuses the first that supports no writes.
 */
export async function demandViews(
  connection: Connection,
  names: readonly QualifiedName[],
): Promise<readonly RegisteredView[]> {
  if (names.length === 0) return [];
  const { rows } = await queryPinned(connection, SQL.registered.get('views'), [
    names.map(({ schema }) => schema),
    names.map(({ name }) => name),
  ]);
  return names.map((name, index) => {
    const [text, near] = rows[index] ?? [];
    const found = text == null ? undefined : (JSON.parse(text) as Found);
    const target = nameTarget(name);
    const why =
      found === undefined
        ? `there is no such view${suggest(name.name, JSON.parse(near ?? '[]') as string[])}`
        : findFault(found);
    if (found === undefined || why !== undefined)
      throw refused(`view "${target}" cannot be registered: ${why}`);
    return { ...name, oid: found.oid, target, events: eventsOf(found) };
  });
}

const KINDS: Readonly<Record<string, string>> = {
  r: 'a table; name it in relations',
  p: 'a table; name it in relations',
  m: 'a materialized view, which only a refresh changes',
  f: 'a foreign table, whose rows are on another server',
};

function findFault({ kind, rules, ...found }: Found): string | undefined {
  if (kind !== 'v') return `it is ${KINDS[kind] ?? 'not a view'}`;
  if (rules.length > 0)
    return `rule "${rules[0]}" rewrites statements on it; use an INSTEAD OF trigger`;
  if (eventsOf(found).length > 0) return undefined;
  return 'nothing can be written through it; give it INSTEAD OF triggers, or leave it out: reading needs SELECT alone';
}

/** Bits of the writes that the server supports, automatically or through INSTEAD OF triggers. */
const EVENTS = { insert: 8, update: 4, delete: 16 } as const;

function eventsOf({ writes }: Pick<Found, 'writes'>): readonly string[] {
  return Object.entries(EVENTS).flatMap(([event, bit]) => (writes & bit ? event : []));
}
