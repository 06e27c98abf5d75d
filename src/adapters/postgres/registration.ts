import { checkVolatile } from '../../backend/setup.ts';
import { UNUSED } from '../../protocol/drawn.ts';
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

function admitRelation(relation: RegisteredRelation): Target {
  const { target, key, volatile } = relation;
  const columns = relation.columns.map(({ name }) => name);
  const admitted = { name: target, columns, key: [...key], volatile: [...volatile] };
  checkVolatile(admitted, refused);
  if (key.length === 0 && volatile.length > 0)
    throw refused(
      `relation "${target}" has no primary key, so its rows compare whole; it cannot have volatile columns`,
    );
  if (relation.bulk && relation.partitioned)
    throw refused(
      `relation "${target}" is partitioned, where statement recorders miss rows that move; leave bulk out`,
    );
  return admitted;
}
