import { hash } from 'node:crypto';
import type { MysqlRelation } from './catalog.ts';
import { quoteName, quotePlain } from './sql.ts';
import { imageOf } from './value.ts';

/** A trigger that records writes by the execution account. */
export interface Recorder {
  readonly name: string;
  readonly timing: 'BEFORE' | 'AFTER';
  readonly event: 'INSERT' | 'UPDATE' | 'DELETE';
  /** The trigger's statement as the catalogue shows it. */
  readonly body: string;
}

/** Where records are written, and whose writes are recorded. */
export interface RecordingPlace {
  readonly controlDatabase: string;
  readonly execution: string;
}

/** A table of the control database, with the columns that the probe needs. */
export const PROBE_RELATION = {
  target: 'probe',
  key: ['token'],
  columns: [{ name: 'token', kind: 'text' }],
} as const;

type Recorded = Pick<MysqlRelation, 'target'> & {
  readonly columns: readonly (Pick<MysqlRelation['columns'][number], 'name' | 'kind'> & {
    readonly isAssigned?: boolean;
  })[];
};

/**
 * The recorders of one relation. Each runs for every row. AFTER recorders run before other AFTER
 * triggers, because one of those may fail and be caught. BEFORE recorders run after other BEFORE
 * triggers, which may still choose an AUTO_INCREMENT value. Without an open stage the insert fails,
 * and the write with it.
 */
export function recordersOf(place: RecordingPlace, relation: Recorded): readonly Recorder[] {
  const { target, columns } = relation;
  const [before, after] = [imageOf(columns, 'old'), imageOf(columns, 'new')];
  const recorders: Recorder[] = [
    { ...named(target, 'insert'), body: record(place, target, ['insert', 'null', after]) },
    { ...named(target, 'update'), body: record(place, target, ['update', before, after]) },
    { ...named(target, 'delete'), body: record(place, target, ['delete', before, 'null']) },
  ];
  const assigned = columns.find(({ isAssigned }) => isAssigned);
  if (assigned === undefined) return recorders;
  const value = `new.${quoteName(assigned.name)}`;
  const chosen = record(place, target, ['chosen', 'null', `cast(${value} as char)`]);
  // The value is 0 until MariaDB has assigned one.
  const body = chosen.replace(' then ', () => ` and ${value} <> 0 then `);
  const name = nameOf(target, 'chosen');
  return [...recorders, { name, timing: 'BEFORE', event: 'INSERT', body }];
}

type Written = readonly [op: string, before: string, after: string];

function record(place: RecordingPlace, target: string, [op, before, after]: Written): string {
  const database = quoteName(place.controlDatabase);
  const token = `(select token from ${database}.stage where connection = connection_id())`;
  return (
    `if substring_index(user(), '@', 1) = ${quotePlain(place.execution)} then ` +
    `insert into ${database}.record (stage, relation, op, before_image, after_image) ` +
    `values (${token}, ${quotePlain(target)}, '${op}', ${before}, ${after}); end if`
  );
}

function named(target: string, op: 'insert' | 'update' | 'delete') {
  const event = op.toUpperCase() as Recorder['event'];
  return { name: nameOf(target, op), timing: 'AFTER', event } as const;
}

/** The names of all recorders that a relation may have had, in this or an earlier shape. */
export function recorderNames(target: string): readonly string[] {
  return ['insert', 'update', 'delete', 'chosen'].map((op) => nameOf(target, op));
}

/** MariaDB limits the names of tables and triggers to 64 characters. */
function nameOf(target: string, op: string): string {
  return `effectmatch_${op}_${hash('sha256', target, 'hex').slice(0, 12)}`;
}
