import { quoteName } from '../../../postgres/identifier.ts';
import { namesIn } from './body.ts';
import type {
  Catalog,
  ConstraintRow,
  FunctionRow,
  RelationRow,
  TriggerRow,
  Use,
} from './catalog.ts';
import type { BoundaryFacts } from './facts.ts';

/** How an execution arrives somewhere, and the statements that would cut this way off. */
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

/** Objects of a database by what they are attached to. */
export interface Index {
  readonly relation: ReadonlyMap<number, RelationRow>;
  readonly function: ReadonlyMap<number, FunctionRow>;
  readonly registered: ReadonlySet<number>;
  /** Registered views. */
  readonly views: ReadonlySet<number>;
  readonly executable: ReadonlySet<number>;
}

/** Whether a trigger can fire in an ordinary session. */
export function isLive(trigger: TriggerRow): boolean {
  return trigger.enabled === 'O' || trigger.enabled === 'A';
}

/**
 * Follows what one write or call can lead to: triggers, foreign-key actions (which run with the
 * rights of the table's owner), expressions, and every function or relation that a reachable body
 * could name. Text is read generously, so a name in a string or comment counts; SQL built at run
 * time is not followed but refused by the judgement of the body.
 */
export function computeReach(catalog: Catalog, facts: BoundaryFacts, index: Index): Reach {
  const functions = new Map<FunctionRow, Route>();
  const relations = new Map<RelationRow, Route>();
  const principals = new Map<string, Route>();
  const byFunctionName = Map.groupBy(catalog.functions, (row) => row.name);
  const byRelationName = Map.groupBy(catalog.relations, (row) => row.name);
  const byTypeName = Map.groupBy(catalog.types, (row) => row.short);
  const triggers = Map.groupBy(catalog.triggers, (row) => row.relation);
  const uses = Map.groupBy(catalog.uses, (use) => use.relation);
  const typeUses = Map.groupBy(catalog.uses, (use) => use.type);
  const columns = Map.groupBy(catalog.columns, (row) => row.relation);
  const children = new Map<number, RelationRow[]>();
  for (const row of catalog.relations) {
    for (const parent of row.parents) children.set(parent, [...(children.get(parent) ?? []), row]);
  }
  const expressions = expressionsOf(catalog);
  const keys = catalog.constraints.filter(({ kind }) => kind === 'f');
  const checks = Map.groupBy(keys, (row) => row.relation);
  const actions = Map.groupBy(keys, (row) => row.referenced);

  const types = new Map(catalog.types.map((row) => [row.oid, row]));
  /** Whether reading or storing a value of the type runs code of the application. */
  const typeCalls = (oid: number, seen: Set<number> = new Set()): boolean => {
    const type = types.get(oid);
    if (type === undefined || seen.has(oid)) return false;
    seen.add(oid);
    return (
      typeUses.has(oid) ||
      [type.base, type.element, ...type.types].some((part) => typeCalls(part, seen))
    );
  };
  const storesThroughCode = ({ oid }: RelationRow) =>
    uses.has(oid) || (columns.get(oid) ?? []).some((column) => typeCalls(column.typeOid));

  const addPrincipal = (role: string, route: Route) => {
    if (role !== facts.executor && role !== facts.owner && !principals.has(role))
      principals.set(role, route);
  };
  const addUses = (list: readonly Use[] | undefined, relation: RelationRow | undefined) => {
    for (const use of list ?? []) {
      const row = index.function.get(use.function);
      if (row) addFunction(row, { by: use.description, close: closeUse(catalog, use, relation) });
    }
  };
  const addNames = (text: string, route: Route, self?: FunctionRow) => {
    for (const name of namesIn(text)) {
      for (const row of byFunctionName.get(name) ?? []) {
        if (row !== self)
          addFunction(row, { by: `${row.object} as named in ${route.by}`, close: route.close });
      }
      for (const row of byRelationName.get(name) ?? []) addRelation(row, route);
      for (const { oid } of byTypeName.get(name) ?? []) addType(oid);
    }
  };
  const addFunction = (row: FunctionRow, route: Route) => {
    if (functions.has(row) || row.schema === 'effectmatch') return;
    functions.set(row, route);
    if (row.definer)
      addPrincipal(row.owner, {
        by: `SECURITY DEFINER function ${row.object}, reached through ${route.by}`,
        close: [`ALTER ROUTINE ${row.object} SECURITY INVOKER`],
      });
    for (const type of row.types) addType(type);
    if (row.language === 'sql' || row.language === 'plpgsql')
      addNames(row.sqlBody ?? row.source, route, row);
    addUses(
      catalog.uses.filter((use) => use.class === 'pg_proc' && use.object === row.oid),
      undefined,
    );
  };
  const addRelation = (row: RelationRow, route: Route) => {
    if (relations.has(row) || row.schema === 'effectmatch') return;
    relations.set(row, route);
    for (const trigger of triggers.get(row.oid) ?? []) {
      const called = index.function.get(trigger.function);
      if (!isLive(trigger) || called === undefined) continue;
      const close = [`ALTER TABLE ${row.object} DISABLE TRIGGER ${trigger.object}`];
      addFunction(called, {
        by: `trigger ${trigger.object} on ${row.object}`,
        close: row.kind === 'v' ? [`DROP TRIGGER ${trigger.object} ON ${row.object}`] : close,
      });
    }
    addUses(uses.get(row.oid), row);
    for (const text of expressions.get(row.oid) ?? []) addNames(text, route);
    for (const column of columns.get(row.oid) ?? []) addType(column.typeOid);
    for (const child of children.get(row.oid) ?? []) addRelation(child, route);
    for (const check of checks.get(row.oid) ?? [])
      addLookup(check, row, index.relation.get(check.referenced));
    for (const action of actions.get(row.oid) ?? []) {
      const referencing = index.relation.get(action.relation);
      addLookup(action, referencing, referencing);
      if (referencing === undefined || !/[cnd]/.test(action.onDelete + action.onUpdate)) continue;
      const by = `foreign key ${action.object} of ${referencing.object}, whose actions run as the table's owner`;
      const reached = {
        by,
        close: [`ALTER TABLE ${referencing.object} DROP CONSTRAINT ${action.object}`],
      };
      addRelation(referencing, reached);
      const attached = (triggers.get(referencing.oid) ?? []).some(
        (trigger) =>
          isLive(trigger) &&
          trigger.functionSchema !== 'effectmatch' &&
          index.function.has(trigger.function),
      );
      if (attached || storesThroughCode(referencing)) addPrincipal(referencing.owner, reached);
    }
    for (const rule of catalog.rules.filter((rule) => rule.relation === row.oid))
      addNames(rule.definition, route);
  };
  // A key is looked up with the rights of the owner of the table that is searched. Planning that
  // query already computes what is constant in the expressions of the table's indexes and checks.
  const addLookup = (
    key: ConstraintRow,
    keyed: RelationRow | undefined,
    searched: RelationRow | undefined,
  ) => {
    if (keyed === undefined || searched === undefined || !uses.has(searched.oid)) return;
    const by = `foreign key ${key.object} of ${keyed.object}, whose check runs as the owner of ${searched.object}`;
    const reached = { by, close: [`ALTER TABLE ${keyed.object} DROP CONSTRAINT ${key.object}`] };
    addUses(uses.get(searched.oid), searched);
    addPrincipal(searched.owner, reached);
  };
  const seenTypes = new Set<number>();
  const addType = (oid: number) => {
    const type = types.get(oid);
    if (type === undefined || seenTypes.has(oid)) return;
    seenTypes.add(oid);
    addUses(typeUses.get(oid), undefined);
    for (const part of [type.base, type.element, ...type.types]) addType(part);
  };

  for (const oid of index.registered) {
    const row = index.relation.get(oid);
    if (row) addRelation(row, { by: `registered relation ${row.object}`, close: [] });
  }
  for (const oid of index.views) {
    const row = index.relation.get(oid);
    if (row) addRelation(row, { by: `registered view ${row.object}`, close: [] });
  }
  for (const oid of index.executable) {
    const row = index.function.get(oid);
    if (row)
      addFunction(row, {
        by: `EXECUTE of ${quoteName(facts.executor)}`,
        close: closeExecute(row, facts.executor),
      });
  }
  for (const list of [catalog.casts, catalog.operators]) {
    for (const { function: oid, description } of list) {
      const row = index.function.get(oid);
      if (row) addFunction(row, { by: description, close: closeExecute(row, facts.executor) });
    }
  }
  // A value may be read as any domain without a text that names it: as a default, or with the name
  // put together.
  for (const { oid, kind } of catalog.types) if (kind === 'd') addType(oid);
  addUses(
    catalog.uses.filter(({ class: kind }) => kind === 'pg_amproc' || kind === 'pg_conversion'),
    undefined,
  );
  for (const { function: oid, object, enabled } of catalog.eventTriggers) {
    const row = enabled === 'D' ? undefined : index.function.get(oid);
    if (row)
      addFunction(row, {
        by: `event trigger ${object}`,
        close: [`ALTER EVENT TRIGGER ${object} DISABLE`],
      });
  }
  return { functions, relations, principals };
}

/**
 * Texts of what is evaluated when a relation is written: they name types as well, whose checks run
 * too.
 */
function expressionsOf(catalog: Catalog): ReadonlyMap<number, readonly string[]> {
  const texts = [
    ...catalog.columns.map((row) => [row.relation, row.defaultText ?? ''] as const),
    ...catalog.constraints
      .filter(({ kind }) => kind !== 'f')
      .map((row) => [row.relation, row.definition] as const),
    ...catalog.indexes.map((row) => [row.relation, row.definition] as const),
    ...catalog.policies.map(
      (row) => [row.relation, `${row.using ?? ''} ${row.checking ?? ''}`] as const,
    ),
    ...catalog.triggers.filter(isLive).map((row) => [row.relation, row.definition] as const),
  ];
  const found = new Map<number, string[]>();
  for (const [relation, text] of texts) {
    if (text.trim() !== '') found.set(relation, [...(found.get(relation) ?? []), text]);
  }
  return found;
}

/** Takes a function away from the execution login, however it was given. */
export function closeExecute(row: FunctionRow, executor: string): readonly string[] {
  return [`REVOKE EXECUTE ON ROUTINE ${row.object} FROM PUBLIC, ${quoteName(executor)}`];
}

/**
 * Removes the expression that calls the function; its writes to registered relations would
 * otherwise be a mystery.
 */
export function closeUse(
  catalog: Catalog,
  use: Use,
  relation: RelationRow | undefined,
): readonly string[] {
  const table = relation?.object ?? '';
  const constraint = catalog.constraints.find(({ oid }) => oid === use.object);
  switch (use.class) {
    case 'pg_attrdef':
      return [`ALTER TABLE ${table} ALTER COLUMN ${quoteName(use.column ?? '')} DROP DEFAULT`];
    case 'pg_constraint':
      if (constraint === undefined) return [];
      if (constraint.domain !== null)
        return [`ALTER DOMAIN ${constraint.domain} DROP CONSTRAINT ${constraint.object}`];
      return [`ALTER TABLE ${table} DROP CONSTRAINT ${constraint.object}`];
    case 'pg_policy':
      return [
        `DROP POLICY ${catalog.policies.find(({ oid }) => oid === use.object)?.object ?? ''} ON ${table}`,
      ];
    case 'pg_class':
      return catalog.indexes
        .filter(({ oid }) => oid === use.object)
        .map(({ object }) => `DROP INDEX ${object}`);
    case 'pg_opclass':
      return catalog.indexes
        .filter(({ oid }) => oid === use.object)
        .map(({ object }) => `DROP INDEX ${object}`);
    case 'pg_statistic_ext':
      return [
        `DROP STATISTICS ${catalog.statistics.find(({ oid }) => oid === use.object)?.object ?? ''}`,
      ];
    case 'pg_type':
      return [
        `DROP TYPE ${catalog.types.find(({ oid }) => oid === use.object)?.name ?? ''} CASCADE`,
      ];
    case 'pg_amproc': {
      const family = /of operator family (.+) for access method (\w+)/s.exec(use.description);
      return family === null
        ? []
        : [`DROP OPERATOR FAMILY ${family[1]} USING ${family[2]} CASCADE`];
    }
    case 'pg_conversion':
      return [`DROP ${use.description.replace('conversion', 'CONVERSION')}`];
    default:
      return [];
  }
}
