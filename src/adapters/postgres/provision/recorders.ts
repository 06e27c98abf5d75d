import { type QualifiedName, quoteLiteral, quoteQualified } from '../../../postgres/identifier.ts';

/** A relation as provisioning needs it. */
export interface Recorded extends QualifiedName {
  readonly bulk: boolean;
  readonly partitioned: boolean;
}

/** The triggers that a recorded relation has, by name, with the function each calls. */
export function recorderTriggers(
  bulk: boolean,
): readonly { readonly name: string; readonly calls: string }[] {
  const recorders = bulk
    ? ['insert', 'update', 'delete'].map((op) => ({
        name: `effectmatch_record_${op}`,
        calls: `record_${op}`,
      }))
    : [{ name: 'effectmatch_record', calls: 'record_row' }];
  return [...recorders, { name: 'effectmatch_truncate', calls: 'refuse_truncate' }];
}

const ALL_TRIGGERS = [...recorderTriggers(false), ...recorderTriggers(true)].map(
  ({ name }) => name,
);

/**
 * Recorders of one relation. They fire for the execution login alone, whoever's rights its code
 * borrows: other writers of the table are neither slowed down nor recorded. Always enabled, so that
 * no replication setting stops them.
 */
export function createRecorders(relation: Recorded, execution: string): readonly string[] {
  const table = quoteQualified(relation);
  const when = `when (session_user = ${quoteLiteral(execution)}::name)`;
  const row = [
    `create trigger effectmatch_record after insert or update or delete on ${table} for each row ${when} execute function effectmatch.record_row()`,
  ];
  const bulk = [
    `create trigger effectmatch_record_insert after insert on ${table} referencing new table as new_rows for each statement ${when} execute function effectmatch.record_insert()`,
    `create trigger effectmatch_record_update after update on ${table} referencing old table as old_rows new table as new_rows for each statement ${when} execute function effectmatch.record_update()`,
    `create trigger effectmatch_record_delete after delete on ${table} referencing old table as old_rows for each statement ${when} execute function effectmatch.record_delete()`,
  ];
  return [
    ...dropRecorders(relation),
    ...(relation.bulk ? bulk : row),
    `create trigger effectmatch_truncate before truncate on ${table} for each statement ${when} execute function effectmatch.refuse_truncate()`,
    ...recorderTriggers(relation.bulk).map(
      ({ name }) => `alter table ${table} enable always trigger ${name}`,
    ),
    ...(relation.partitioned ? [lendToOwner(table)] : []),
  ];
}

/**
 * Whoever adds a partition clones the recorder, which needs the right to use it; the owner of the
 * table does that.
 */
function lendToOwner(table: string): string {
  return `do $$ declare r name; begin
  select pg_catalog.pg_get_userbyid(relowner) into r from pg_catalog.pg_class where oid = ${quoteLiteral(table)}::pg_catalog.regclass;
  execute format('grant usage on schema effectmatch to %I', r);
  execute format('grant execute on function effectmatch.record_row(), effectmatch.refuse_truncate() to %I', r);
end $$`;
}

export function dropRecorders(relation: QualifiedName): readonly string[] {
  return [...new Set(ALL_TRIGGERS)].map(
    (name) => `drop trigger if exists ${name} on ${quoteQualified(relation)}`,
  );
}
