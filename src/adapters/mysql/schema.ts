import { invalid, type ManifestSchema, mustBeStated } from '../../backend/manifest-schema.ts';
import { normaliseManifest, normaliseReads } from '../../backend/normalise.ts';
import { canonical } from '../../protocol/canon.ts';
import type { Cell, StateRead } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import type { MysqlColumn, MysqlRelation } from './catalog.ts';
import { type MysqlConnection, MysqlFailure } from './connection.ts';
import { quoteName } from './sql.ts';
import { imageOf, literalOf, readImage } from './value.ts';

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
    const { name, defaultText, isNullable } = column;
    if (column.isAssigned) {
      const label = `${name}: generated('new ${relation.target}')`;
      throw invalid(where, `MariaDB assigns it; write ${label} or its value`);
    }
    if (defaultText === null || defaultText === 'NULL') {
      if (isNullable) return { is: null };
      throw mustBeStated(where);
    }
    if (!LITERAL.test(defaultText)) throw mustBeStated(where, defaultText);
    return { is: this.#casts.store(column, defaultText, defaultText, where) };
  }
}

/** A default that is the same for every row, as the catalogue prints it. */
const LITERAL = /^(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|'(?:[^'\\]|'')*'|b'[01]*')$/i;

/** Values that the server must cast, and the results. */
class Casts {
  readonly #wanted = new Map<string, { readonly column: MysqlColumn; readonly literal: string }>();
  readonly #stored = new Map<string, Value | MysqlFailure>();

  get isEmpty(): boolean {
    return this.#wanted.size === 0;
  }

  /** The stored value after {@link run}; before that, the stated value. */
  store(column: MysqlColumn, literal: string, stated: Value, where: string): Value {
    const id = canonical([column.definition, column.kind, literal]);
    const stored = this.#stored.get(id);
    if (stored instanceof MysqlFailure)
      throw invalid(where, `the column does not take it: ${stored.message}`, stored);
    if (stored !== undefined) return stored;
    this.#wanted.set(id, { column, literal });
    return stated;
  }

  /**
   * Stores the values in temporary columns of the same types, so that no trigger, check or other
   * application code runs.
   */
  async run(session: MysqlConnection, database: string): Promise<void> {
    const table = `${quoteName(database)}.cast`;
    const groups = Map.groupBy(this.#wanted, ([, { column }]) => column.definition);
    for (const [definition, group] of groups) {
      const column = { name: 'value', kind: group[0]?.[1].column.kind ?? 'text' } as const;
      await session.query(
        `create temporary table ${table} (n int primary key, value ${definition} null) engine = innodb`,
      );
      const literals = group.map(([, { literal }]) => literal);
      const failures = await insertAll(session, table, literals);
      const rows = await session.query(`select n, ${imageOf([column], 'r')} from ${table} r`);
      for (const [n, image] of rows) {
        const id = group[Number(n)]?.[0];
        if (id !== undefined && image)
          this.#stored.set(id, readImage([column], image).value ?? null);
      }
      for (const [n, failure] of failures) this.#stored.set(group[n]?.[0] ?? '', failure);
      await session.query(`drop temporary table ${table}`);
    }
  }
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
      if (!(error instanceof MysqlFailure) || error.number === undefined) throw error;
      if (to - from === 1) failures.set(from, error);
      else for (let at = from; at < to; at += 1) await insert(at, at + 1);
    }
  };
  for (let from = 0; from < literals.length; from += BATCH)
    await insert(from, Math.min(from + BATCH, literals.length));
  return failures;
}
