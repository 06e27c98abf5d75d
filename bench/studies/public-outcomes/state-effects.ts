import { isDeepStrictEqual } from 'node:util';
import { absentField } from '../../../src/adapters/snapshot/index.ts';
import { insert, remove, update } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import type { Json } from '../../data/patch.ts';
import type { Snapshot, StateRecord, StateTask } from '../../data/state-bench.ts';

/** The column of a record's id. No field of the data is called so. */
export const KEY = 'record';

/**
 * Namespaces of a domain and the fields of their records, as all initial states of the domain have
 * them.
 */
export type Schema = ReadonlyMap<string, readonly string[]>;

/** What an application registers once for all its tasks, which are those of one domain. */
export function schemaOf(tasks: readonly StateTask[]): Schema {
  const fields = new Map<string, Set<string>>();
  for (const { packet } of tasks) {
    for (const [namespace, records] of Object.entries(packet.initial)) {
      const known = fields.get(namespace) ?? new Set();
      for (const field of Object.values(records).flatMap((record) => Object.keys(record)))
        known.add(field);
      fields.set(namespace, known);
    }
  }
  return new Map([...fields].map(([namespace, known]) => [namespace, [...known].sort()]));
}

/** What must change so that the expected state, as a whole, comes out of the initial one. */
export function approvedEffects(initial: Snapshot, expected: Snapshot): readonly ApprovedEffect[] {
  const effects: ApprovedEffect[] = [];
  for (const namespace of new Set([...Object.keys(initial), ...Object.keys(expected)])) {
    const from = initial[namespace];
    const to = expected[namespace];
    if (from === undefined || to === undefined)
      throw new Error(`${namespace} is not a namespace of both states`);
    for (const id of new Set([...Object.keys(from), ...Object.keys(to)])) {
      effects.push(...effectsOn(namespace, id, from[id], to[id]));
    }
  }
  return effects;
}

function effectsOn(
  namespace: string,
  id: string,
  from: StateRecord | undefined,
  to: StateRecord | undefined,
): readonly ApprovedEffect[] {
  if (from === undefined) return to === undefined ? [] : [insert(namespace, { [KEY]: id, ...to })];
  if (to === undefined) return [remove(namespace, { [KEY]: id }, from)];
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  const changed = names.filter((name) => !isDeepStrictEqual(from[name], to[name]));
  if (changed.length === 0) return [];
  const side = (value: Json | undefined) => (value === undefined ? absentField : value);
  const changes = Object.fromEntries(
    changed.map((name) => [name, [side(from[name]), side(to[name])] as const]),
  );
  return [update(namespace, { [KEY]: id }, changes)];
}
