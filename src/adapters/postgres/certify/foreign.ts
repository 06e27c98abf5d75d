import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { readRows, type TextReader } from './catalog.ts';
import type { BoundaryFacts, Outlets } from './facts.ts';
import type { Index, Reach } from './reach.ts';

/**
 * Tables of other servers behind views and parents. Reading one can make the other server write or
 * run a program, and what it wrote becomes durable with our commit or before it.
 */
export async function surveyForeignBeneath(
  control: TextReader,
  {
    facts,
    index,
    reach,
    outlets,
  }: { facts: BoundaryFacts; index: Index; reach: Reach; outlets: Outlets },
): Promise<void> {
  const roles = [facts.executor, ...reach.principals.keys()];
  const rows = await readRows<{ role: string; root: number; oid: number }>(
    control,
    SQL.rights.get('foreign_beneath'),
    [roles],
  );
  for (const { role, root, oid } of rows) {
    const [above, foreign] = [index.relation.get(root), index.relation.get(oid)];
    // Partitions of registered tables are judged with those, and what a role owns is judged by
    // itself.
    if (
      above === undefined ||
      foreign === undefined ||
      index.registered.has(root) ||
      foreign.owner === role
    )
      continue;
    const route = reach.principals.get(role);
    outlets.open({
      outlet: `foreign table ${foreign.object} beneath ${above.object}`,
      object: above.object,
      why: `${quoteName(role)}${route ? `, whose rights are lent by ${route.by},` : ''} reads it through ${above.object}: what that makes the other server do does not roll back with ours`,
      fix:
        above.owner === role
          ? [`DROP FOREIGN TABLE ${foreign.object} CASCADE`]
          : [`REVOKE ALL ON TABLE ${above.object} FROM PUBLIC, ${quoteName(role)}`],
      needs: `${quoteName(above.owner)} or a superuser`,
    });
  }
}
