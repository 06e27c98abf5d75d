import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { dangerOf } from './builtins.ts';
import { type Catalog, readRows, type TextReader } from './catalog.ts';
import { readByTrusted } from './constant-calls.ts';
import { type BoundaryFacts, isVouchedFor, type Outlets } from './facts.ts';
import type { Index } from './reach.ts';

/**
 * Code of the application that runs where values are compared or read: operator classes of indexes,
 * and of the types beneath ranges. Trusted logins look rows up by their keys, so they would run it
 * with their own rights.
 */
export function surveyComparisons(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  outlets: Outlets,
): void {
  const keys = new Map(facts.relations.map(({ oid, key }) => [oid, new Set(key)]));
  const types = new Map(catalog.types.map((row) => [row.oid, row]));
  for (const table of readByTrusted(catalog, facts)) {
    const open = (what: string, called: string, fix: string) =>
      outlets.open({
        outlet: `comparison in ${what} of ${table.object}`,
        object: table.object,
        why: `It calls ${called} wherever rows are looked up, also with the rights of trusted logins`,
        fix: [fix],
        needs: `${quoteName(table.owner)} or a superuser`,
      });
    const called = (oid: number) => {
      const row = index.function.get(oid);
      return row === undefined || isVouchedFor(row, facts) ? undefined : row.object;
    };
    for (const use of catalog.uses) {
      const by =
        use.class === 'pg_opclass' && use.relation === table.oid ? called(use.function) : undefined;
      const found = catalog.indexes.find(({ oid }) => oid === use.object);
      if (by !== undefined && found) open(found.object, by, `DROP INDEX ${found.object}`);
    }
    for (const column of catalog.columns.filter(({ relation }) => relation === table.oid)) {
      if (keys.get(table.oid)?.has(column.name) === false) continue;
      for (const oid of typesBeneath(types, column.typeOid)) {
        const use = catalog.uses.find(
          (row) => row.class === 'pg_type' && row.type === oid && called(row.function),
        );
        const name = types.get(oid)?.name;
        if (use && name)
          open(
            `column ${quoteName(column.name)}`,
            called(use.function) ?? '',
            `DROP TYPE ${name} CASCADE`,
          );
      }
    }
  }
}

/** A type and what it is made of. */
function typesBeneath(
  types: ReadonlyMap<number, Catalog['types'][number]>,
  oid: number,
): ReadonlySet<number> {
  const found = new Set([oid]);
  for (const at of found) {
    const type = types.get(at);
    for (const part of type ? [type.base, type.element, ...type.types] : [])
      if (part !== 0) found.add(part);
  }
  return found;
}

/** Operator classes that call a volatile function of the server, for which nobody needs a right. */
export async function surveySupport(control: TextReader, outlets: Outlets): Promise<void> {
  const rows = await readRows<{
    description: string;
    name: string;
    family: string;
    method: string;
  }>(control, SQL.rights.get('builtin_support'));
  for (const { description, name, family, method } of rows) {
    const danger = name === 'setval' || name === 'nextval' ? 'moves a sequence' : dangerOf(name);
    if (danger === undefined) continue;
    outlets.open({
      outlet: description,
      object: family,
      why: `Indexes and partitions that use it call ${name} without asking for a right, which ${danger}`,
      fix: [`DROP OPERATOR FAMILY ${family} USING ${quoteName(method)} CASCADE`],
      needs: 'superuser',
    });
  }
}
