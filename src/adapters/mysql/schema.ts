import { invalid, type ManifestSchema, mustBeStated } from '../../backend/manifest-schema.ts';
import { normaliseManifest, normaliseReads } from '../../backend/normalise.ts';
import type { Cell, StateRead } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import type { MysqlColumn, MysqlRelation } from './catalog.ts';
import { errorNumber, type MysqlConnection, MysqlFailure } from './connection.ts';
import { quoteName } from './sql.ts';
import { type ColumnKind, imageOf, literalOf, readImage } from './value.ts';

/** What is needed to normalise manifests. */
export interface SchemaTools {
  readonly registration: Registration;
  /** Registered relations and relations that may only be read, by target. */
  readonly relations: ReadonlyMap<string, MysqlRelation>;
  readonly controlDatabase: string;
  /** Runs with a trusted session that no other caller uses at the same time. */
  readonly withSession: <T>(use: (session: MysqlConnection) => Promise<T>) => Promise<T>;
}

/** Returns the manifest with every value as its column stores it. */
export async function normalise(tools: SchemaTools, manifest: Manifest): Promise<Manifest> {
  return await castTwice(tools, (schema) => normaliseManifest(schema, manifest));
}

/** Returns the reads with keys as the key columns store them. */
export async function normaliseKeys(
  tools: SchemaTools,
  reads: readonly StateRead[],
): Promise<readonly StateRead[]> {
  return await castTwice(tools, (schema) => normaliseReads(schema, reads));
}

/** Normalises once to collect the values to cast, and again with the values the server stored. */
async function castTwice<T>(tools: SchemaTools, normalise: (schema: MysqlSchema) => T): Promise<T> {
  const casts = new Casts();
  const schema = new MysqlSchema(tools, casts);
  const stated = normalise(schema);
  if (casts.isEmpty) return stated;
  await tools.withSession((session) => casts.run(session, tools.controlDatabase));
  return normalise(schema);
}

/** The schema of the database, for normalising manifests. */
class MysqlSchema implements ManifestSchema<MysqlColumn> {
  readonly registration: Registration;
  readonly labels = {
    assigns: (_relation: unknown, column: MysqlColumn) => column.isAssigned,
    where: 'on an AUTO_INCREMENT column, the only value MariaDB assigns',
  };
  readonly #relations: ReadonlyMap<string, MysqlRelation>;
  readonly #casts: Casts;

  constructor({ registration, relations }: SchemaTools, casts: Casts) {
    this.registration = registration;
    this.#relations = relations;
    this.#casts = casts;
  }

  registered({ target }: { readonly target: string }): MysqlRelation | undefined {
    const isRegistered = this.registration.targets.some(({ name }) => name === target);
    return isRegistered ? this.#relations.get(target) : undefined;
  }

  readable({ target }: { readonly target: string }, where: string): MysqlRelation {
    const relation = this.#relations.get(target);
    if (relation !== undefined) return relation;
    throw invalid(where, `"${target}" cannot be read; name it in relations or reads`);
  }

  store(_relation: unknown, column: MysqlColumn, value: Value, where: string): Value {
    const literal = literalOf(column.kind, value);
    if (literal === undefined)
      throw invalid(where, `a column of type ${column.definition} does not take such a value`);
    return value === null ? null : this.#casts.store(column, literal, value, where);
  }

  fill(relation: MysqlRelation, column: MysqlColumn, where: string): Cell {
    const { name, defaultText } = column;
    if (column.isAssigned) {
      const label = `${name}: generated('new ${relation.target}')`;
      throw invalid(where, `MariaDB assigns it; write ${label} or its value`);
    }
    // The catalogue prints NULL for a nullable column, and nothing for one that has no default.
    if (defaultText === 'NULL') return { is: null };
    if (defaultText === null) throw mustBeStated(where);
    if (!LITERAL.test(defaultText)) throw mustBeStated(where, defaultText);
    return { is: this.#casts.store(column, defaultText, defaultText, where) };
  }
}

/** A default that is the same for every row, as the catalogue prints it. */
const LITERAL = /^(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|'(?:[^'\\]|'')*'|b'[01]*')$/i;

/** Values that the server must cast, and the results. */
class Casts {
  /** Literals by the definition of their column. */
  readonly #wanted = new Map<string, { readonly kind: ColumnKind; readonly texts: Set<string> }>();
  readonly #stored = new Map<string, Value | MysqlFailure>();

  get isEmpty(): boolean {
    return this.#wanted.size === 0;
  }

  /** The stored value after {@link run}; before that, the stated value. */
  store({ definition, kind }: MysqlColumn, literal: string, stated: Value, where: string): Value {
    const stored = this.#stored.get(castOf(definition, literal));
    if (stored instanceof MysqlFailure)
      throw invalid(where, `the column does not take it: ${stored.message}`, stored);
    if (stored !== undefined) return stored;
    const group = this.#wanted.get(definition) ?? { kind, texts: new Set() };
    group.texts.add(literal);
    this.#wanted.set(definition, group);
    return stated;
  }

  /**
   * Stores the values in temporary columns of the same types, so that no trigger, check or other
   * application code runs.
   */
  async run(session: MysqlConnection, database: string): Promise<void> {
    const table = `${quoteName(database)}.cast`;
    for (const [definition, { kind, texts }] of this.#wanted) {
      const literals = [...texts];
      const columns = [{ name: 'value', kind }];
      await session.query(
        `create temporary table ${table} (n int primary key, value ${definition} null) engine = innodb`,
      );
      const failures = await insertAll(session, table, literals);
      const rows = await session.query(`select n, ${imageOf(columns, 'r')} from ${table} r`);
      // No image is null: a literal that the server accepted is longer than its image.
      for (const [n, image] of rows as readonly (readonly [Buffer, Buffer])[]) {
        const { value = null } = readImage(columns, image);
        this.#stored.set(castOf(definition, literals[Number(n)]), value);
      }
      for (const [n, failure] of failures)
        this.#stored.set(castOf(definition, literals[n]), failure);
      await session.query(`drop temporary table ${table}`);
    }
  }
}

/** Identifies a literal that is stored in a column of this definition. */
function castOf(definition: string, literal: string | undefined): string {
  return JSON.stringify([definition, literal]);
}

const BATCH = 500;

/**
 * Inserts many values with one statement. If it fails, inserts them one by one to find the cause.
 */
async function insertAll(
  session: MysqlConnection,
  table: string,
  literals: readonly string[],
): Promise<ReadonlyMap<number, MysqlFailure>> {
  const failures = new Map<number, MysqlFailure>();
  const insert = async (from: number, to: number): Promise<void> => {
    const rows = literals.slice(from, to).map((literal, index) => `(${from + index}, ${literal})`);
    try {
      await session.query(`insert into ${table} values ${rows.join(', ')}`);
    } catch (error) {
      if (errorNumber(error) === undefined) throw error;
      if (to - from === 1) failures.set(from, error as MysqlFailure);
      else for (let at = from; at < to; at += 1) await insert(at, at + 1);
    }
  };
  for (let from = 0; from < literals.length; from += BATCH)
    await insert(from, Math.min(from + BATCH, literals.length));
  return failures;
}
