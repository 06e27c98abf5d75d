import type { DatabaseSync } from 'node:sqlite';
import { invariant } from '../../errors.ts';
import type { Registration } from '../../protocol/registration.ts';
import { openDatabase, pinDurability, setPragma, statement } from '../../sqlite/connection.ts';
import { readCatalog, type SqliteCatalog, type SqliteRelation } from './catalog.ts';
import { PROBE_TABLE } from './control.ts';
import { Fence, type FenceRules } from './fence.ts';
import { readSettings } from './snapshot.ts';
import type { CompiledStatement } from './statements.ts';

/**
 * A connection that holds candidates, one after another. It is made for one schema: whatever was
 * compiled and checked on it stays true while SQLite keeps the schema that the connection has
 * parsed. It is closed where the schema changed, where an action failed, and where a stage ended in
 * any other way than by a commit or a rollback that returned.
 */
export class HoldingConnection {
  readonly db: DatabaseSync;
  readonly fence: Fence;
  /** Statements of earlier actions, compiled behind the fence under the rules of this schema. */
  readonly compiled = new Map<string, CompiledStatement>();
  #rules: FenceRules | undefined;
  #settings: string | undefined;
  #journalMode: string | undefined;
  #catalog: SqliteCatalog | undefined;

  constructor(file: string) {
    this.db = openDatabase(file);
    this.fence = new Fence(this.db);
  }

  /**
   * Takes the write lock. Before the first time everything is settled that must be so outside of a
   * transaction. Without cache spilling the lock stays RESERVED until COMMIT, so that the trusted
   * connection can read meanwhile, also with a rollback journal.
   */
  begin(): void {
    const { db } = this;
    if (this.#settings === undefined) {
      this.#journalMode = pinDurability(db);
      setPragma(db, { name: 'cache_spill', value: 'off', reads: 0 });
      this.#settings = readSettings(db);
    }
    statement(db, 'begin immediate').run();
  }

  /**
   * The settings as they were read back when the connection was set up. They are read again after
   * every action, and a connection on which they have moved is closed; between two actions nothing
   * that sets one can be compiled.
   */
  get settings(): string {
    invariant(this.#settings !== undefined, 'a connection that has begun is set up');
    return this.#settings;
  }

  /**
   * Whether this connection has parsed this very schema, and is pinned for its journal; asked under
   * the write lock, with equal versions. The first time all of it is read by the connection itself:
   * what was read before the connection was opened and is read again after it has parsed is what it
   * has parsed.
   */
  hasParsed(catalog: SqliteCatalog): boolean {
    this.#catalog ??= readCatalog(this.db, catalog);
    return this.#catalog === catalog && catalog.settings.journal_mode === this.#journalMode;
  }

  /** Whether it may serve a stage for this schema, as far as can be told without the lock. */
  isFor(catalog: SqliteCatalog): boolean {
    return this.#catalog === catalog;
  }

  /** What actions may write; undefined if a registered relation is not a table. */
  rulesFor(catalog: SqliteCatalog, registration: Registration): FenceRules | undefined {
    const names = registration.targets.map((target) => target.name);
    this.#rules ??= makeRules(catalog, names, false);
    return this.#rules;
  }

  /**
   * Rolls back what is still open. Returns whether nothing is left, so that another stage may
   * follow.
   */
  release(): boolean {
    const { db } = this;
    if (!db.isOpen) return false;
    try {
      this.#rollBack();
    } catch {
      return false;
    }
    return !db.isTransaction;
  }

  /** Rolls back and closes; a session on it ends too. */
  close(): void {
    if (!this.db.isOpen) return;
    try {
      this.#rollBack();
    } catch {
      // A rollback that fails is repeated by closing, and by the next connection that finds the
      // journal.
    } finally {
      this.db.close();
    }
  }

  #rollBack(): void {
    this.fence.lower();
    if (this.db.isTransaction) this.db.exec('rollback');
  }
}

/** What the admission probe may write. */
export function probeRules(catalog: SqliteCatalog): FenceRules | undefined {
  return makeRules(catalog, [PROBE_TABLE], true);
}

function makeRules(
  { relations, objects }: SqliteCatalog,
  names: readonly string[],
  isProbe: boolean,
): FenceRules | undefined {
  const writable = new Map<string, SqliteRelation>();
  for (const name of names) {
    const relation = relations.get(name);
    if (relation?.kind !== 'table') return undefined;
    writable.set(name, relation);
  }
  const named = (type: string) =>
    objects.filter((object) => object.type === type).map((object) => object.name);
  return { writable, views: new Set(named('view')), triggers: new Set(named('trigger')), isProbe };
}
