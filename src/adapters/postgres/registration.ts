import { UNUSED } from '../../protocol/drawn.ts';
import { suggest } from '../../protocol/nearest.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import type { RegisteredRelation } from './certify/facts.ts';
import { refused, type Settings } from './options.ts';
import type { ReadableSequence } from './residue.ts';

/**
 * What the frame says about the relations; the first thing that cannot be protected is refused with
 * a remedy.
 */
export function admitRegistration(
  settings: Settings,
  relations: readonly RegisteredRelation[],
  sequences: readonly ReadableSequence[],
): Registration {
  const { profile, values } = settings;
  return {
    profile,
    values,
    targets: [...relations.map(admitRelation), ...sequences.map(admitSequence)],
  };
}

/** A sequence compares by the numbers that were drawn from it and that no row has. */
function admitSequence({ name }: ReadableSequence): Target {
  return { name, columns: [UNUSED], key: [], volatile: [] };
}

function admitRelation({
  target,
  columns,
  key,
  volatile,
  bulk,
  partitioned,
}: RegisteredRelation): Target {
  const names = columns.map((column) => column.name);
  for (const column of volatile) {
    if (key.includes(column)) {
      throw refused(
        `relation "${target}": the key column "${column}" cannot be volatile, it says which row is meant`,
      );
    }
    if (!names.includes(column)) {
      throw refused(
        `relation "${target}" has no column "${column}"${suggest(column, names)} to be volatile`,
      );
    }
  }
  if (key.length === 0 && volatile.length > 0) {
    throw refused(
      `relation "${target}" has no primary key, so its rows compare whole; it cannot have volatile columns`,
    );
  }
  if (bulk && partitioned) {
    throw refused(
      `relation "${target}" is partitioned, where statement recorders miss rows that move; leave bulk out`,
    );
  }
  return { name: target, columns: names, key: [...key], volatile: [...volatile] };
}
