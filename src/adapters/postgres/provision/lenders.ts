import type { Connection } from '../../../postgres/connection.ts';
import { readCatalog } from '../certify/catalog.ts';
import { indexCatalog } from '../certify/catalog-index.ts';
import type { BoundaryFacts } from '../certify/facts.ts';
import { computeReach } from '../certify/reach.ts';

/**
 * Roles whose rights are used by code that operations reach: owners of SECURITY DEFINER functions
 * and of tables that foreign keys write to. What the server boundary takes from the execution login
 * must be taken from these roles as well. The survey finds the same roles.
 */
export async function listLenders(
  connection: Connection,
  facts: Pick<BoundaryFacts, 'executor' | 'owner' | 'control' | 'relations' | 'entryPoints'> & {
    readonly views: readonly { readonly oid: number }[];
  },
): Promise<readonly string[]> {
  const catalog = await readCatalog(connection, facts.executor);
  const granted = catalog.grants.filter(
    ({ kind, grantee }) => kind === 'FUNCTION' && (grantee === '' || grantee === facts.executor),
  );
  const objects = new Set(granted.map(({ object }) => object));
  const callable = catalog.functions.filter(({ object }) => objects.has(object));
  const executable = new Set([
    ...callable.map(({ oid }) => oid),
    ...facts.entryPoints.map(({ oid }) => oid),
  ]);
  const known = { ...facts, backend: '', restrictions: [] };
  const reach = computeReach(catalog, known, indexCatalog(catalog, known, executable));
  return [...reach.principals.keys()].sort();
}
