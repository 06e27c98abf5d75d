import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { dangerOf } from './builtins.ts';
import { type RelationRow, readRows, type TypeRow } from './catalog.ts';
import type { CatalogIndex } from './catalog-index.ts';
import { isVouchedFor, type SurveyContext } from './facts.ts';
import { readByTrusted } from './tables.ts';

/**
 * Code of the application that runs where values are compared or read: operator classes of indexes,
 * and of the types beneath ranges. Trusted logins look rows up by their keys, so they would run it
 * with their own rights.
 */
export function surveyComparisons(context: SurveyContext): void {
  const { catalog, facts, index, outlets } = context;
  const called = (oid: number) => {
    const row = index.function.get(oid);
    return row === undefined || isVouchedFor(row, facts) ? undefined : row.object;
  };
  const open = (table: RelationRow, what: string, by: string, fix: string) =>
    outlets.openOn(table, {
      outlet: `comparison in ${what} of ${table.object}`,
      why: `It calls ${by} whenever rows are looked up, also with the rights of trusted logins`,
      fix: [fix],
    });
  const keys = new Map(facts.relations.map(({ oid, key }) => [oid, key]));
  for (const table of readByTrusted(context)) {
    for (const use of index.usesOf(table.oid).filter((use) => use.class === 'pg_opclass')) {
      const by = called(use.function);
      const found = catalog.indexes.find(({ oid }) => oid === use.object);
      if (by && found) open(table, found.object, by, `DROP INDEX ${found.object}`);
    }
    for (const column of index.columnsOf(table.oid)) {
      if (keys.get(table.oid)?.includes(column.name) === false) continue;
      for (const oid of typesBeneath(index, [column.typeOid])) {
        const uses = index.usesOfType(oid).filter((use) => use.class === 'pg_type');
        const by = uses.map((use) => called(use.function)).find((name) => name !== undefined);
        const name = index.type.get(oid)?.name;
        const what = `column ${quoteName(column.name)}`;
        if (by && name) open(table, what, by, `DROP TYPE ${name} CASCADE`);
      }
    }
  }
}

/** Types and what they are made of. */
export function typesBeneath(
  index: CatalogIndex,
  oids: readonly number[],
  partsOf = ({ base, element, types }: TypeRow) => [base, element, ...types],
): ReadonlySet<number> {
  const found = new Set(oids);
  for (const oid of found) {
    const type = index.type.get(oid);
    for (const part of type ? partsOf(type) : []) if (part !== 0) found.add(part);
  }
  return found;
}

/** Operator classes that call a volatile function of the server, for which no right is needed. */
export async function surveySupport({ control, outlets }: SurveyContext): Promise<void> {
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
