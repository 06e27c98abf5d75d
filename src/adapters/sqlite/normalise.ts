import { invalid, type ManifestSchema, mustBeStated } from '../../backend/manifest-schema.ts';
import type { Cell } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import type { Affinity } from './affinity.ts';
import type { SqliteCatalog, SqliteColumn, SqliteRelation } from './catalog.ts';
import { inspectRelation } from './relation.ts';

/** The schema of a SQLite file, for normalising manifests. */
export class SqliteSchema implements ManifestSchema<SqliteColumn> {
  readonly registration: Registration;
  readonly labels = {
    assigns: (relation: SqliteRelation, { name }: SqliteColumn) => name === relation.rowidAlias,
    where: 'on an INTEGER PRIMARY KEY, the only key SQLite assigns',
  };
  readonly #catalog: SqliteCatalog;
  readonly #affinity: Affinity;

  constructor(catalog: SqliteCatalog, affinity: Affinity, registration: Registration) {
    this.#catalog = catalog;
    this.#affinity = affinity;
    this.registration = registration;
  }

  registered({ target }: { readonly target: string }, where: string): SqliteRelation | undefined {
    const isRegistered = this.registration.targets.some(({ name }) => name === target);
    return isRegistered ? this.readable({ target }, where) : undefined;
  }

  /** Any table with a usable key can be read, registered or not. */
  readable({ target }: { readonly target: string }, where: string): SqliteRelation {
    const inspection = inspectRelation(this.#catalog, target);
    if (inspection.kind === 'usable') return inspection.relation;
    throw invalid(where, `"${target}" cannot be read: ${inspection.why}`);
  }

  store(relation: SqliteRelation, column: SqliteColumn, value: Value, where: string): Value {
    if (isStoredAsIs(column, value)) return value;
    const cast = this.#affinity.cast(relation, column, value);
    if (cast.kind === 'unstorable') throw invalid(where, cast.why);
    return cast.value;
  }

  fill(relation: SqliteRelation, column: SqliteColumn, where: string): Cell {
    const { name, defaultText } = column;
    if (name === relation.rowidAlias) {
      throw invalid(
        where,
        `SQLite assigns this key; write ${name}: generated('new ${relation.name}') or its value`,
      );
    }
    const text = defaultText ?? 'null';
    if (!LITERAL.test(text)) throw mustBeStated(where, text);
    const value = this.store(relation, column, this.#affinity.literal(text), where);
    if (value === null && column.notNull) throw mustBeStated(where);
    return { is: value };
  }
}

/** Integers and texts in columns for them, which most values are, need no cast. */
function isStoredAsIs({ affinity }: SqliteColumn, value: Value): boolean {
  if (affinity === 'INTEGER') return Number.isSafeInteger(value) && !Object.is(value, -0);
  return affinity === 'TEXT' && typeof value === 'string';
}

/** A DEFAULT that is the same for every row: a number, string, blob, NULL, TRUE or FALSE. */
const LITERAL =
  /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?0x[0-9a-f]+|'(?:[^']|'')*'|x'(?:[0-9a-f]{2})*'|null|true|false)$/i;
