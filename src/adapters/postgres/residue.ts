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
  /** An answer, by sequence; '' before the first value was drawn. */
  read(positions: string): ReadonlyMap<number, string>;
}

export function askSequences(sequences: readonly { readonly oid: number }[]): AskedSequences {
  const oids = [...new Set(sequences.map(({ oid }) => oid))];
  return {
    oids: `{${oids.join(',')}}`,
    read(positions) {
      const answered = positions.split(' ');
      return new Map(oids.map((oid, index) => [oid, answered[index] ?? '']));
    },
  };
}

/** What moved between two answers about the positions of these sequences. A rollback does not take it back. */
export function findMoved(
  sequences: readonly ReadableSequence[],
  before: ReadonlyMap<number, string>,
  after: ReadonlyMap<number, string>,
): readonly Residue[] {
  return sequences.flatMap(({ oid, name }) => {
    const [stood, stands] = [before.get(oid) ?? '', after.get(oid) ?? ''];
    if (stands === '' || stood === stands) return [];
    return [{ kind: 'sequence' as const, name, from: stood === '' ? null : stood, to: stands }];
  });
}
