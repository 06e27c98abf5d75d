import type { QualifiedName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';

/** What provisioning needs to know about a relation. */
export interface RecordedRelation extends QualifiedName {
  /** Recorded per statement instead of per row. */
  readonly bulk: boolean;
  readonly partitioned: boolean;
}

/** A trigger as the catalogue describes it: the function it calls, and the bits of its events. */
interface RecorderTrigger {
  readonly name: string;
  readonly calls: string;
  readonly type: number;
}

const ROW: readonly RecorderTrigger[] = [
  { name: 'effectmatch_record', calls: 'record_row', type: 1 + 4 + 8 + 16 },
];
const STATEMENT: readonly RecorderTrigger[] = [
  { name: 'effectmatch_record_insert', calls: 'record_insert', type: 4 },
  { name: 'effectmatch_record_update', calls: 'record_update', type: 16 },
  { name: 'effectmatch_record_delete', calls: 'record_delete', type: 8 },
];
const TRUNCATE_TRIGGER: RecorderTrigger = {
  name: 'effectmatch_truncate',
  calls: 'refuse_truncate',
  type: 2 + 32,
};

/** The triggers that a recorded relation has. */
export function recorderTriggers(bulk: boolean): readonly RecorderTrigger[] {
  return [...(bulk ? STATEMENT : ROW), TRUNCATE_TRIGGER];
}

/** Statements that create a relation's recorders and replace any that it had. */
export function createRecorders(relation: RecordedRelation, execution: string): readonly string[] {
  const names = { schema: relation.schema, table: relation.name, execution };
  const triggers = recorderTriggers(relation.bulk).map(({ name }) => name);
  return [
    ...dropRecorders(relation),
    ...triggers.map((trigger) => SQL.recorders.get(trigger, names)),
    ...triggers.map((trigger) => SQL.recorders.get('enable', { ...names, trigger })),
    ...(relation.partitioned ? [SQL.recorders.get('lend_to_owner', names)] : []),
  ];
}

export function dropRecorders({ schema, name }: QualifiedName): readonly string[] {
  return [...ROW, ...STATEMENT, TRUNCATE_TRIGGER].map((trigger) =>
    SQL.recorders.get('drop', { schema, table: name, trigger: trigger.name }),
  );
}
