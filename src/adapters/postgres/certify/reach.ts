import { quoteName } from '../../../postgres/identifier.ts';
import { judgeBody, namesIn } from './body.ts';
import { dangerOf } from './builtins.ts';
import type {
  ConstraintRow,
  FunctionRow,
  RelationRow,
  SystemCatalog,
  TriggerRow,
  Use,
} from './catalog.ts';
import { type CatalogIndex, typesBeneath } from './catalog-index.ts';
import { closeUse, isLive, type StoredExpression } from './expressions.ts';
import { type BoundaryFacts, behind, isVouchedFor } from './facts.ts';

/** How an execution reaches something, and the statements that would close that route. */
export interface Route {
  readonly by: string;
  readonly close: readonly string[];
}

/** What agent SQL can set in motion, by its own rights or through application code. */
export interface Reach {
  readonly functions: ReadonlyMap<FunctionRow, Route>;
  readonly relations: ReadonlyMap<RelationRow, Route>;
  /** Roles whose rights application code runs with, besides the execution login. */
  readonly principals: ReadonlyMap<string, Route>;
}

/**
 * Follows what one write or call can lead to: triggers, foreign-key actions (which run with the
 * rights of the table's owner), expressions, and every function or relation that a reachable body
 * could name. Text is read generously, so a name in a string counts. SQL built at run time is not
 * followed; the judgement of the body refuses it.
 */
export function computeReach(
  catalog: SystemCatalog,
  facts: BoundaryFacts,
  index: CatalogIndex,
): Reach {
  const search = new ReachSearch(catalog, facts, index);
  for (const oid of index.registered) search.addRegistered(oid, 'relation');
  for (const oid of index.views) search.addRegistered(oid, 'view');
  for (const oid of callableBy(facts, index))
    search.addCallable(oid, `EXECUTE of ${quoteName(facts.executor)}`);
  addUnnamed(search, catalog, facts, index);
  return search;
}

/** Adds what any statement can set in motion without naming it. */
function addUnnamed(
  search: ReachSearch,
  catalog: SystemCatalog,
  facts: BoundaryFacts,
  index: CatalogIndex,
): void {
  for (const { function: oid, description } of [...catalog.casts, ...catalog.operators])
    search.addCallable(oid, description);
  // A value may be read as a domain that no text names: in a default, or through a name built at
  // run time.
  const isManaged = facts.tier === 'managed';
  for (const { oid, kind } of catalog.types) if (kind === 'd' || isManaged) search.addType(oid);
  search.addUses(
    catalog.uses.filter(({ class: kind }) => kind === 'pg_amproc' || kind === 'pg_conversion'),
  );
  for (const { function: oid, object, enabled } of catalog.eventTriggers) {
    const row = enabled === 'D' ? undefined : index.function.get(oid);
    const close = [`ALTER EVENT TRIGGER ${object} DISABLE`];
    if (row) search.addFunction(row, { by: `event trigger ${object}`, close });
  }
}

/** What one operation touches: its texts, and relations by object id. */
export interface Touched {
  readonly texts: readonly string[];
  readonly relations: readonly number[];
}

/**
 * Everything that one operation can reach, as {@link behind} writes it: what its texts name, and
 * what that leads to. Undefined if this is not known, because a name is written with escapes or
 * code on the way hides what it does.
 */
export function reachOf(
  catalog: SystemCatalog,
  facts: BoundaryFacts,
  index: CatalogIndex,
  { texts, relations }: Touched,
): ReadonlySet<string> | undefined {
  if (texts.some((text) => /u&["']/i.test(text))) return undefined;
  const search = new ReachSearch(catalog, facts, index);
  addUnnamed(search, catalog, facts, index);
  const unnamed = new Set(search.functions.keys());
  for (const text of texts) search.addNamed(text);
  for (const oid of relations) search.addRegistered(oid, 'relation');
  // Rows of a partition are also rows of its parent.
  for (const { parents } of search.relations.keys())
    for (const parent of parents) search.addRegistered(parent, 'relation');
  const reviewed = new Set(facts.reviews?.map((review) => review.function));
  for (const row of search.functions.keys()) {
    const isNative = isVouchedFor(row, facts);
    const isHidden = isNative ? isDeclared(row, facts) && !unnamed.has(row) : hidesNames(row);
    if (isHidden || reviewed.has(row.object)) return undefined;
  }
  return new Set([
    ...Array.from(search.functions.keys(), behind.function),
    ...Array.from(search.relations.keys(), (row) => behind.relation(row) ?? ''),
    ...Array.from(search.principals.keys(), behind.role),
  ]);
}

function isDeclared({ extension }: FunctionRow, { trustedCode = [] }: BoundaryFacts): boolean {
  return extension !== null && trustedCode.includes(extension);
}

/**
 * Whether a function's text does not show everything it does, so that a person had to review it.
 */
function hidesNames({ kind, language, sqlBody, source }: FunctionRow): boolean {
  if (kind === 'a') return false;
  const isText = language === 'sql' || language === 'plpgsql';
  return !isText || judgeBody(sqlBody ?? source).length > 0;
}

/**
 * The functions that statements may call: all that the execution login may execute, or with the
 * managed boundary those that the statement gate admits.
 */
function callableBy(facts: BoundaryFacts, index: CatalogIndex): Iterable<number> {
  if (facts.tier !== 'managed') return index.executable;
  const entries = new Set(facts.entryPoints.map(({ oid }) => oid));
  return [...index.executable].filter((oid) => {
    const extension = index.function.get(oid)?.extension ?? null;
    return entries.has(oid) || isVouchedFor({ extension }, facts);
  });
}

/** What has been reached so far. Adding something also adds everything that it leads to. */
class ReachSearch implements Reach {
  readonly functions = new Map<FunctionRow, Route>();
  readonly relations = new Map<RelationRow, Route>();
  readonly principals = new Map<string, Route>();
  readonly #types = new Set<number>();
  readonly #facts: BoundaryFacts;
  readonly #index: CatalogIndex;
  readonly #foreignKeys: readonly ConstraintRow[];
  /** Texts that are evaluated when a relation is written, by relation. */
  readonly #texts: ReadonlyMap<number, readonly StoredExpression[]>;
  /**
   * Whether a domain, an operator or a cast calls a built-in that acts outside the transaction: then
   * writing to any relation may call it.
   */
  readonly #isActingAnywhere: boolean;

  constructor(catalog: SystemCatalog, facts: BoundaryFacts, index: CatalogIndex) {
    this.#facts = facts;
    this.#index = index;
    this.#foreignKeys = catalog.constraints.filter(({ kind }) => kind === 'f');
    const evaluated = index.expressions.filter(({ kind }) => EVALUATED.includes(kind));
    this.#texts = Map.groupBy(evaluated, ({ relation }) => relation);
    const signs = [...catalog.operators, ...catalog.casts].flatMap(({ builtin }) => builtin ?? []);
    this.#isActingAnywhere =
      index.acting.has(0) || signs.some((builtin) => dangerOf(builtin) !== undefined);
  }

  addRegistered(oid: number, kind: string): void {
    const row = this.#index.relation.get(oid);
    if (row) this.addRelation(row, { by: `registered ${kind} ${row.object}`, close: [] });
  }

  addNamed(text: string): void {
    this.#addNames(text, { by: 'the statement', close: [] });
  }

  addCallable(oid: number, by: string): void {
    const row = this.#index.function.get(oid);
    if (row) this.addFunction(row, { by, close: closeExecute(row, this.#facts.executor) });
  }

  addFunction(row: FunctionRow, route: Route): void {
    if (this.functions.has(row) || row.schema === 'effectmatch') return;
    this.functions.set(row, route);
    if (row.definer)
      this.#addPrincipal(row.owner, {
        by: `SECURITY DEFINER function ${row.object}, reached through ${route.by}`,
        close: [`ALTER ROUTINE ${row.object} SECURITY INVOKER`],
      });
    for (const type of row.types) this.addType(type);
    if (row.language === 'sql' || row.language === 'plpgsql')
      this.#addNames(row.sqlBody ?? row.source, route, row);
    this.addUses(this.#index.callsBy(row.oid));
  }

  addRelation(row: RelationRow, route: Route): void {
    if (this.relations.has(row) || row.schema === 'effectmatch') return;
    this.relations.set(row, route);
    const { oid } = row;
    const triggers = this.#index.triggersOf(oid).filter(isLive);
    for (const trigger of triggers) this.#addTrigger(row, trigger);
    this.addUses(this.#index.usesOf(oid), row.object);
    // After the uses, because their statements remove more than those of a name.
    for (const { text } of this.#texts.get(oid) ?? []) this.#addNames(text, route);
    for (const { definition } of triggers) this.#addNames(definition, route);
    for (const column of this.#index.columnsOf(oid)) this.addType(column.typeOid);
    for (const child of this.#index.childrenOf(oid)) this.addRelation(child, route);
    for (const key of this.#foreignKeys) {
      if (key.relation === oid) this.#addLookup(key, row, this.#index.relation.get(key.referenced));
      if (key.referenced === oid) this.#addActions(key, this.#index.relation.get(key.relation));
    }
    for (const rule of this.#index.rulesOf(oid)) this.#addNames(rule.definition, route);
  }

  /** A type and its component types, because domain checks run when a value is stored or read. */
  addType(oid: number): void {
    const type = this.#index.type.get(oid);
    if (type === undefined || this.#types.has(oid)) return;
    this.#types.add(oid);
    this.addUses(this.#index.usesOfType(oid));
    for (const part of [type.base, type.element, ...type.types]) this.addType(part);
  }

  addUses(uses: readonly Use[], table = ''): void {
    for (const use of uses) {
      const row = this.#index.function.get(use.function);
      if (row === undefined || this.functions.has(row)) continue;
      const close = closeUse(this.#index, use, table);
      this.addFunction(row, { by: use.description, close });
    }
  }

  #addPrincipal(role: string, route: Route): void {
    const isOurs = role === this.#facts.executor || role === this.#facts.owner;
    if (!isOurs && !this.principals.has(role)) this.principals.set(role, route);
  }

  #addNames(text: string, route: Route, self?: FunctionRow): void {
    for (const name of namesIn(text)) {
      for (const row of this.#index.functionsNamed(name)) {
        const by = `${row.object} as named in ${route.by}`;
        if (row !== self) this.addFunction(row, { by, close: route.close });
      }
      for (const row of this.#index.relationsNamed(name)) this.addRelation(row, route);
      for (const { oid } of this.#index.typesNamed(name)) this.addType(oid);
    }
  }

  #addTrigger(row: RelationRow, trigger: TriggerRow): void {
    const called = this.#index.function.get(trigger.function);
    const close =
      row.kind === 'v'
        ? `DROP TRIGGER ${trigger.object} ON ${row.object}`
        : `ALTER TABLE ${row.object} DISABLE TRIGGER ${trigger.object}`;
    const by = `trigger ${trigger.object} on ${row.object}`;
    if (called) this.addFunction(called, { by, close: [close] });
  }

  /**
   * The lookup of a key runs with the rights of the searched table's owner. Just planning that
   * query evaluates constant calls in the expressions of the table's indexes and checks.
   */
  #addLookup(key: ConstraintRow, keyed: RelationRow, searched: RelationRow | undefined): void {
    const uses = searched === undefined ? [] : this.#index.usesOf(searched.oid);
    if (searched === undefined || uses.length === 0) return;
    const by = `foreign key ${key.object} of ${keyed.object}, whose check runs as the owner of ${searched.object}`;
    const close = [`ALTER TABLE ${keyed.object} DROP CONSTRAINT ${key.object}`];
    this.addUses(uses, searched.object);
    for (const owner of this.#ownersOf(searched)) this.#addPrincipal(owner, { by, close });
  }

  /** Foreign key actions write to the referencing table, with the rights of its owner. */
  #addActions(key: ConstraintRow, referencing: RelationRow | undefined): void {
    if (referencing === undefined) return;
    this.#addLookup(key, referencing, referencing);
    if (!/[cnd]/.test(key.onDelete + key.onUpdate)) return;
    const by = `foreign key ${key.object} of ${referencing.object}, whose actions run as the table's owner`;
    const close = [`ALTER TABLE ${referencing.object} DROP CONSTRAINT ${key.object}`];
    this.addRelation(referencing, { by, close });
    if (!this.#runsCode(referencing)) return;
    for (const owner of this.#ownersOf(referencing)) this.#addPrincipal(owner, { by, close });
  }

  /**
   * Whose rights a key's query may run with: it names the table that the key was declared on, and
   * the server lists the key for every partition of that table as well.
   */
  #ownersOf({ owner, partition, parents }: RelationRow): readonly string[] {
    if (!partition) return [owner];
    const above = parents.flatMap((oid) => this.#index.relation.get(oid) ?? []);
    return [owner, ...above.flatMap((row) => this.#ownersOf(row))];
  }

  /**
   * Whether writing to the relation runs code of the application, or a built-in that the owner may
   * call and the execution login may not.
   */
  #runsCode({ oid }: RelationRow): boolean {
    if (this.#isActingAnywhere || this.#index.acting.has(oid)) return true;
    const triggers = this.#index.triggersOf(oid).filter(isLive);
    const types = this.#index.columnsOf(oid).map((column) => column.typeOid);
    return (
      triggers.some(
        (trigger) =>
          trigger.functionSchema !== 'effectmatch' && this.#index.function.has(trigger.function),
      ) ||
      this.#index.usesOf(oid).length > 0 ||
      [...typesBeneath(this.#index, types)].some((type) => this.#index.usesOfType(type).length > 0)
    );
  }
}

const EVALUATED = ['default', 'check', 'constraint', 'index', 'policy'];

/** Revokes a function from the execution login, whether it was granted to it or to PUBLIC. */
export function closeExecute(row: FunctionRow, executor: string): readonly string[] {
  return [`REVOKE EXECUTE ON ROUTINE ${row.object} FROM PUBLIC, ${quoteName(executor)}`];
}
