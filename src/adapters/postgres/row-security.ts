import type { Connection } from '../../postgres/connection.ts';
import { quoteName } from '../../postgres/identifier.ts';
import { queryPinned } from './formats.ts';
import type { PostgresRelation } from './relation.ts';
import { SQL } from './sql.ts';

/**
 * Marks the relations whose rows the control login or the owner of the records could read only
 * through policies. Both read with row security off, because a policy is code of the application:
 * the server then refuses such a read.
 */
export async function markUnreadable(
  connection: Connection,
  { control, owner }: { readonly control: string; readonly owner: string },
  relations: readonly PostgresRelation[],
): Promise<readonly PostgresRelation[]> {
  const { rows } = await queryPinned(connection, SQL.registered.get('unreadable'), [
    relations.map(({ oid }) => String(oid)),
    [control, owner],
  ]);
  const readers = Map.groupBy(rows, ([oid]) => Number(oid));
  return relations.map((relation) => {
    const hidden = readers.get(relation.oid);
    if (hidden === undefined) return relation;
    const rights = hidden
      .map(([, role]) => `ALTER ROLE ${quoteName(role ?? '')} BYPASSRLS`)
      .join('; ');
    return {
      ...relation,
      unreadable: `${WHY}: have a superuser run ${rights}; \`effectmatch provision\` does it too`,
    };
  });
}

const WHY =
  'has row security, and trusted logins run no policies, which are code of the application';
