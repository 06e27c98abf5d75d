import type { Connection } from '../../postgres/connection.ts';
import { quoteName } from '../../postgres/identifier.ts';
import { queryPinned } from './formats.ts';
import type { Relation } from './relation.ts';

/**
 * Marks the relations whose rows the control login or the owner of the records could read only
 * through policies. Both read with row security off, because a policy is code of the application:
 * the server then refuses such a read.
 */
export async function markUnreadable(
  connection: Connection,
  { control, owner }: { readonly control: string; readonly owner: string },
  relations: readonly Relation[],
): Promise<readonly Relation[]> {
  const { rows } = await queryPinned(connection, 'formats and names', {
    text: HIDDEN_QUERY,
    values: [relations.map(({ oid }) => String(oid)), [control, owner]],
  });
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

const HIDDEN_QUERY = `
select c.oid, r.rolname from pg_catalog.pg_class as c cross join pg_catalog.pg_roles as r
where c.oid = any($1::pg_catalog.oid[]) and r.rolname = any($2::pg_catalog.name[]) and c.relrowsecurity
  and not (r.rolsuper or r.rolbypassrls
    or pg_catalog.pg_has_role(r.oid, c.relowner, 'usage') and not c.relforcerowsecurity)
order by c.oid, r.rolname`;
