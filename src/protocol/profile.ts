import { unreachable } from '../errors.ts';
import type { ChangeRecord, ChangeRecords, Effect } from './effect.ts';
import { NetState } from './net-state.ts';
import type { Registration } from './registration.ts';
import { type Changes, findChanges, type ReadChange, RelationReader } from './relation.ts';
import type { Row } from './value.ts';

/**
 * Canon_p for an adapter's records: the profile determines the unit of change and the compared
 * columns. Records of an unregistered target become effects unchanged; whether they are allowed is
 * not decided here. Records that contradict each other or the registration are the adapter's fault
 * and throw.
 */
export function canonObserved(
  registration: Registration,
  records: ChangeRecords,
): readonly Effect[] {
  switch (registration.profile) {
    case 'relation-write':
      return Array.from(records, ({ op, target }) => ({ op, target }));
    case 'row-event':
      return listEvents(relationsOf(registration), records);
    case 'net-state':
      return foldEvents(relationsOf(registration), records);
    case 'registered-fields':
      return listFields(relationsOf(registration), records);
    default:
      return unreachable(registration.profile);
  }
}

/** Finds a registered relation by name. */
type Relations = (name: string) => RelationReader | undefined;

const kept = new WeakMap<Registration, Map<string, RelationReader>>();

/**
 * Prepares each relation when a record first names it: the cost grows with what was written, not
 * with what is registered. For a frozen registration, such as an admitted one, this happens once
 * for all observations.
 */
function relationsOf(registration: Registration): Relations {
  const known = kept.get(registration) ?? new Map<string, RelationReader>();
  if (known.size === 0 && Object.isFrozen(registration)) kept.set(registration, known);
  return (name) => known.get(name) ?? prepareRelation(registration, name, known);
}

function prepareRelation(
  { targets }: Registration,
  name: string,
  known: Map<string, RelationReader>,
): RelationReader | undefined {
  const target = targets.find((candidate) => candidate.name === name);
  if (target === undefined) return undefined;
  const relation = new RelationReader(target);
  known.set(name, relation);
  return relation;
}

/**
 * The net effect of each record on its own; none is kept. Yields undefined for a record that means
 * nothing on its own, such as a write that changed nothing. Together the effects are E if no two
 * are on the same row, which the caller must check.
 */
export function* singleWrites(
  registration: Registration,
  records: ChangeRecords,
): Generator<Effect | undefined> {
  const relations = relationsOf(registration);
  const isNet = registration.profile === 'net-state';
  for (const record of records) {
    const relation = isNet ? relations(record.target) : undefined;
    yield relation && singleWrite(relation.read(record));
  }
}

function singleWrite(change: ReadChange): Effect | undefined {
  if (change.key === undefined) return undefined;
  if (change.op !== 'update') return eventOf(change);
  const { op, target, key, newKey } = change;
  const changes = newKey === undefined ? findChanges(change.before, change.after) : undefined;
  return changes && { op, target, key, before: changes.before, after: changes.after };
}

function listEvents(relations: Relations, records: ChangeRecords): readonly Effect[] {
  return Array.from(records, (record) => {
    const relation = relations(record.target);
    return relation === undefined ? asReported(record) : eventOf(relation.read(record));
  });
}

/** Fields exactly as read back, whatever they were before: who changed them is unknown. */
function listFields(relations: Relations, records: ChangeRecords): readonly Effect[] {
  return Array.from(records, (record) => {
    const relation = relations(record.target);
    if (relation === undefined) return asReported(record);
    if (record.op === 'delete') return eventOf(relation.read(record));
    // Read as an insert: every column must be present, and nothing is said about the row before.
    const seen = eventOf(relation.read({ ...record, op: 'insert', before: null }));
    return { ...seen, op: record.op };
  });
}

function foldEvents(relations: Relations, records: ChangeRecords): readonly Effect[] {
  const unregistered: Effect[] = [];
  const states = new Map<string, NetState>();
  for (const record of records) {
    const { target } = record;
    const relation = relations(target);
    if (relation === undefined) {
      unregistered.push(asReported(record));
      continue;
    }
    let state = states.get(target);
    if (state === undefined) {
      state = new NetState(target, relation);
      states.set(target, state);
    }
    state.add(record);
  }
  const effects = [...states.values()].map((state) => state.effects(records));
  return unregistered.concat(...effects);
}

function asReported({ op, target, key, before, after }: ChangeRecord): Effect {
  return { op, target, ...(key && { key }), ...(before && { before }), ...(after && { after }) };
}

/** One effect per write, even for an update that changes nothing: it did happen. */
function eventOf(change: ReadChange): Effect {
  const { op, target, key } = change;
  const named = key === undefined ? { op, target } : { op, target, key };
  switch (change.op) {
    case 'insert':
      return { ...named, after: change.after };
    case 'delete':
      return { ...named, before: change.before };
    case 'update': {
      const { before, after, newKey } = change;
      if (newKey === undefined) return { ...named, ...changesOf(before, after) };
      return { ...named, ...changesOf({ ...before, ...key }, { ...after, ...newKey }) };
    }
    default:
      return unreachable(change);
  }
}

function changesOf(before: Row, after: Row): Changes {
  return findChanges(before, after) ?? { before: {}, after: {} };
}
