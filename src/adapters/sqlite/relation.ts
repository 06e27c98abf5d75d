import { suggest } from '../../protocol/nearest.ts';
import { quoteName } from '../../sqlite/connection.ts';
import { DatabaseSync } from '../../sqlite/engine.ts';
import { indexCollations, keyIndex, type SqliteCatalog, type SqliteRelation } from './catalog.ts';
import { isControlName } from './control.ts';

/** A relation that a changeset can describe, or why it cannot and how to fix that. */
export type TableInspection =
  | {
      readonly kind: 'usable';
      readonly relation: SqliteRelation;
      /**
       * Whether to read changed rows from the table instead of trusting the session, which only
       * says which keys were touched. See {@link isMisstated} and {@link hasAliases}.
       */
      readonly isRestated: boolean;
    }
  | { readonly kind: 'unusable'; readonly why: string };

const inspections = new WeakMap<SqliteCatalog, Map<string, TableInspection>>();

/** Decides whether a session identifies every row of a relation and records every change. */
export function inspectRelation(catalog: SqliteCatalog, name: string): TableInspection {
  const known = inspections.get(catalog) ?? new Map<string, TableInspection>();
  inspections.set(catalog, known);
  const inspection = known.get(name) ?? inspect(catalog, name);
  known.set(name, inspection);
  return inspection;
}

function inspect(catalog: SqliteCatalog, name: string): TableInspection {
  if (/^sqlite_/i.test(name)) return unusable('it is SQLite’s own; leave it out');
  if (isControlName(name)) return unusable('it belongs to EffectMatch; leave it out');
  const relation = catalog.relations.get(name);
  if (relation === undefined) {
    return unusable(
      `there is no such table${suggest(name, [...catalog.relations.keys()])}; names are case-sensitive here`,
    );
  }
  switch (relation.kind) {
    case 'table':
      return inspectTable(catalog, relation);
    case 'view':
      return unusable('it is a view; register the tables that its triggers write');
    case 'virtual':
      return unusable(
        'it is a virtual table, whose writes a session does not record; keep it out of protected writes',
      );
    default:
      return unusable(
        `it is a ${relation.kind} table of a virtual table; keep it out of protected writes`,
      );
  }
}

function inspectTable(catalog: SqliteCatalog, relation: SqliteRelation): TableInspection {
  if (
    [...relation.columns.map((column) => column.name), ...relation.computed].includes('__proto__')
  ) {
    return unusable('it has a column named __proto__; rename the column');
  }
  if (relation.key.length === 0) {
    return unusable('it has no PRIMARY KEY, so a session records nothing of it; declare one');
  }
  const nullable = relation.columns.find(
    (column) =>
      relation.key.includes(column.name) && !column.notNull && column.name !== relation.rowidAlias,
  );
  if (nullable !== undefined) {
    return unusable(
      `its key column "${nullable.name}" may be NULL, and a session leaves such rows out; declare it NOT NULL`,
    );
  }
  const isRestated = isMisstated(relation);
  if (relation.rowidAlias !== undefined) return { kind: 'usable', relation, isRestated };
  return inspectCollations(catalog, relation, isRestated);
}

/**
 * Whether a session may report rows of this relation differently from how they are stored. It
 * treats a whole REAL as an INTEGER in two cases: in the key of a new row, so that one row gets two
 * entries, and in a column that was added with a whole number as its default, so that every old row
 * seems to change.
 */
function isMisstated({ columns, key, rowidAlias }: SqliteRelation): boolean {
  return columns.some(({ name, affinity }) => {
    const inKey = rowidAlias === undefined && key.includes(name);
    return affinity === 'REAL' || (inKey && (affinity === 'INTEGER' || affinity === 'NUMERIC'));
  });
}

/**
 * Whether SQL can treat two different keys as equal: 'A' and 'a' under NOCASE, 1 and 1.0 without
 * affinity. The session may then confuse their rows. It still names every spelling that was
 * touched, and each is looked up exactly.
 */
function hasAliases({ columns, key }: SqliteRelation, collations: readonly string[]): boolean {
  const isLoose = columns.some(
    ({ name, keepsSignedZero }) => key.includes(name) && keepsSignedZero,
  );
  return isLoose || collations.some((collation) => collation !== 'BINARY');
}

/**
 * A session looks up the current row of a key with the column's collation. If the key's index is
 * finer (a NOCASE column under `PRIMARY KEY (name COLLATE BINARY)`), two rows match one key, and
 * the session may report the wrong one. The comparison uses an empty copy of the table definition,
 * which also fails for an unknown collation.
 */
function inspectCollations(
  catalog: SqliteCatalog,
  relation: SqliteRelation,
  isMisstated: boolean,
): TableInspection {
  const definition = catalog.objects.find(
    (object) => object.type === 'table' && object.name === relation.name,
  )?.sql;
  if (typeof definition !== 'string') return unusable('its definition cannot be read');
  using copy = new DatabaseSync(':memory:', {
    allowExtension: false,
    enableDoubleQuotedStringLiterals: true,
  });
  try {
    copy.exec(definition);
    const columns = relation.key.map(quoteName).join(', ');
    copy.exec(`create index effectmatch_columns on ${quoteName(relation.name)} (${columns})`);
  } catch (error) {
    return unusable(
      `SQLite does not understand its definition here (${String(error)}); avoid application-defined functions and collations`,
    );
  }
  const ofIndex = indexCollations(copy, keyIndex(copy, relation.name) ?? '');
  const ofColumns = indexCollations(copy, 'effectmatch_columns');
  if (JSON.stringify(ofIndex) !== JSON.stringify(ofColumns)) {
    return unusable(
      'its PRIMARY KEY uses another collation than its key columns; give both the same',
    );
  }
  return { kind: 'usable', relation, isRestated: isMisstated || hasAliases(relation, ofColumns) };
}

function unusable(why: string): TableInspection {
  return { kind: 'unusable', why };
}
