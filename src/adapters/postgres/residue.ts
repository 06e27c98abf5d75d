import type { Connection } from '../../postgres/connection.ts';
import { nameTarget } from '../../postgres/identifier.ts';
import type { Residue } from '../../protocol/residue.ts';

/** A sequence whose position the trusted functions can read. */
export interface ReadableSequence {
  readonly oid: number;
  readonly name: string;
}

/**
 * Every sequence that the owner of our functions may read: those that fill columns of registered relations, which
 * provisioning grants, and whatever an administrator granted besides.
 */
export async function listSequences(control: Connection, owner: string): Promise<readonly ReadableSequence[]> {
  const { rows } = await control.query(
    `select c.oid, n.nspname, c.relname from pg_catalog.pg_class as c
       join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
      where case when c.relkind = 'S' and c.relpersistence <> 't' -- in this order, or other relations would be asked about
                 then pg_catalog.has_sequence_privilege($1::text, c.oid, 'SELECT, USAGE') else false end
      order by c.oid`,
    [owner],
  );
  return rows.map(([oid, schema, name]) => ({
    oid: Number(oid),
    name: nameTarget({ schema: String(schema), name: String(name) }),
  }));
}

/** Sequences whose positions are asked for, each once. */
export interface AskedSequences {
  /** As an array literal, made once. */
  readonly oids: string;
  /** Those that stand elsewhere in the second answer than in the first. */
  compare(before: string, after: string): Moved;
}

/** Where sequences stood and where they stand, by their object ids; '' before the first value was drawn. */
export type Moved = ReadonlyMap<number, { readonly from: string; readonly to: string }>;

export function askSequences(sequences: readonly { readonly oid: number }[]): AskedSequences {
  const oids = [...new Set(sequences.map(({ oid }) => oid))];
  return {
    oids: `{${oids.join(',')}}`,
    compare(before, after) {
      const [stood, stand] = [before.split(' '), after.split(' ')];
      const moved = new Map<number, { from: string; to: string }>();
      for (const [index, oid] of oids.entries()) {
        const [from = '', to = ''] = [stood[index], stand[index]];
        if (from !== to) moved.set(oid, { from, to });
      }
      return moved;
    },
  };
}

/** Movements as they are reported. A rollback does not take them back. */
export function describeMoved(sequences: readonly ReadableSequence[], moved: Moved): readonly Residue[] {
  return sequences.flatMap(({ oid, name }) => {
    const { from = '', to = '' } = moved.get(oid) ?? {};
    return to === '' ? [] : [{ kind: 'sequence' as const, name, from: from === '' ? null : from, to }];
  });
}
