import type { DatabaseSync } from 'node:sqlite';
import { RecentMap } from '../../protocol/recent-map.ts';
import type { Registration } from '../../protocol/registration.ts';
import { openDatabase, pinDurability, setPragma, statement } from '../../sqlite/connection.ts';
import { readCatalog, type SqliteCatalog, type SqliteRelation } from './catalog.ts';
import { PROBE_TABLE } from './control.ts';
import { Fence, type FenceRules } from './fence.ts';
import { readSettings } from './snapshot.ts';
import type { CompiledStatement } from './statements.ts';

const STATEMENTS_KEPT = 100;

/**
 * A connection that holds one candidate after another. It belongs to one schema: compiled
 * statements and checks stay valid while SQLite keeps the parsed schema. It is closed if the schema
 * changed, if an action failed, or if a stage did not end with a completed commit or rollback.
 */
export class HoldingConnection {
  readonly db: DatabaseSync;
  readonly fence: Fence;
  /**
   * Statements from earlier actions, compiled with the fence active and with this schema's rules.
   */
  readonly compiled = new RecentMap<string, CompiledStatement>(STATEMENTS_KEPT);
  #rules: FenceRules | undefined;
  #settings: string | undefined;
  #journalMode: string | undefined;
  /** The schema that this connection has parsed. */
  catalog: SqliteCatalog | undefined;

  constructor(file: string) {
    this.db = openDatabase(file);
    this.fence = new Fence(this.db);
  }

  /**
   * Takes the write lock. The first call also sets everything that must be set outside a
   * transaction. Without cache spilling, the lock stays RESERVED until COMMIT, so that the trusted
   * connection can read even with a rollback journal. Returns the settings at setup. They are read
   * again after every action, and the connection is closed if they changed. Between two actions, no
   * statement that sets one can compile.
   */
  begin(): string {
    const { db } = this;
    if (this.#settings === undefined) {
      this.#journalMode = pinDurability(db);
      setPragma(db, { name: 'cache_spill', value: 'off', reads: 0 });
      this.#settings = readSettings(db);
    }
    statement(db, 'begin immediate').run();
    return this.#settings;
  }

  /**
   * Whether this connection has parsed exactly this schema and is pinned for its journal mode. Call
   * it under the write lock, with equal versions. The first call reads the whole schema on this
   * connection. The catalogue was read before the connection was opened; if it is unchanged now, it
   * is the schema that the connection parsed.
   */
  hasParsed(catalog: SqliteCatalog): boolean {
    this.catalog ??= readCatalog(this.db, catalog);
    return this.catalog === catalog && catalog.settings.journal_mode === this.#journalMode;
  }

  /** The rules for actions; undefined if a registered relation is not a table. */
  rulesFor(catalog: SqliteCatalog, registration: Registration): FenceRules | undefined {
    const names = registration.targets.map((target) => target.name);
    this.#rules ??= makeRules(catalog, names, false);
    return this.#rules;
  }

  /** Rolls back an open transaction. Returns whether the connection can serve another stage. */
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

  /** Rolls back and closes the connection, which also ends its session. */
  close(): void {
    if (!this.db.isOpen) return;
    try {
      this.#rollBack();
    } catch {
      // If a rollback fails, closing repeats it, and so does the next connection that finds the
      // journal.
    } finally {
      this.db.close();
    }
  }

  #rollBack(): void {
    this.fence.turn = 'ours';
    if (this.db.isTransaction) this.db.exec('rollback');
  }
}

/** The rules for the admission probe. */
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
