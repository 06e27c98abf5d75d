import type { Connection } from '../../postgres/connection.ts';
import { nameTarget } from '../../postgres/identifier.ts';
import type { PostgresRelation } from './relation.ts';
import { SQL } from './sql.ts';

/**
 * Everything in the database that has rows, catalogues included: what the second witness looks at.
 */
export interface Watched {
  /** As an array literal, made once. */
  readonly oids: string;
  readonly names: ReadonlyMap<string, string>;
  readonly recordOid: string;
}

/**
 * Lists what can hold rows. Toast tables are left out, because they are written only with their
 * table; so is the stage table, which only our own functions write.
 */
export async function listWatched(control: Connection): Promise<Watched> {
  const { rows } = await control.query(SQL.registered.get('watched'));
  const names = new Map(
    rows.map(([oid, schema, name]) => [
      String(oid),
      nameTarget({ schema: String(schema), name: String(name) }),
    ]),
  );
  const oidOf = (target: string) => [...names].find(([, name]) => name === target)?.[0] ?? '';
  return {
    oids: `{${[...names.keys()].join(',')}}`,
    names,
    recordOid: oidOf('effectmatch.record'),
  };
}

/** The target of every physical table that belongs to a registered relation. */
export function mapLeaves(
  relations: readonly PostgresRelation[],
): ReadonlyMap<string, PostgresRelation> {
  return new Map(
    relations.flatMap((relation) =>
      relation.leaves.map((leaf) => [String(leaf.oid), relation] as const),
    ),
  );
}
