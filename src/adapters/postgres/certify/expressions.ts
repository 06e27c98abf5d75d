import { quoteName } from '../../../postgres/identifier.ts';
import { findUnseenAct } from './body.ts';
import type { IndexRow, RelationRow, SystemCatalog, TriggerRow, Use } from './catalog.ts';
import type { SurveyContext } from './facts.ts';

type Kind =
  | ('default' | 'check' | 'foreign key' | 'constraint' | 'trigger' | 'rule' | 'policy')
  | ('index' | 'statistics' | 'partition key');

const CONSTRAINT_KINDS: Readonly<Record<string, Kind>> = { c: 'check', f: 'foreign key' };

/** An expression that the schema stores, and the statement that removes it. */
export interface StoredExpression {
  readonly kind: Kind;
  /** The catalogue that its object id is of. */
  readonly class: string;
  readonly oid: number;
  /** 0 where it belongs to a domain. */
  readonly relation: number;
  readonly object: string;
  readonly what: string;
  readonly text: string;
  readonly close: (table: string) => string;
}

/** Every expression of the schema that the server evaluates. */
export function storedExpressions(catalog: SystemCatalog): readonly StoredExpression[] {
  return [
    ...catalog.columns.map(({ relation, name, defaultText }) => ({
      ...{ kind: 'default' as const, class: 'pg_attrdef', oid: 0, relation },
      ...{ object: quoteName(name), what: `default of ${quoteName(name)}` },
      text: defaultText ?? '',
      close: (table: string) => `ALTER TABLE ${table} ALTER COLUMN ${quoteName(name)} DROP DEFAULT`,
    })),
    ...catalog.constraints.map(({ oid, relation, object, kind, definition, domain }) => ({
      ...{ kind: CONSTRAINT_KINDS[kind] ?? 'constraint', oid, relation },
      ...{ class: 'pg_constraint', object, what: `constraint ${object}`, text: definition },
      close: (table: string) =>
        `ALTER ${domain === null ? `TABLE ${table}` : `DOMAIN ${domain}`} DROP CONSTRAINT ${object}`,
    })),
    ...catalog.types.map(({ oid, name, defaultText }) => ({
      ...{ kind: 'default' as const, class: 'pg_type', oid, relation: 0 },
      ...{ object: name, what: `default of domain ${name}`, text: defaultText ?? '' },
      close: () => `ALTER DOMAIN ${name} DROP DEFAULT`,
    })),
    ...catalog.triggers.filter(isLive).map((row) => ({
      ...{ kind: 'trigger' as const, class: 'pg_trigger', oid: row.oid, relation: row.relation },
      ...{ object: row.object, what: `trigger ${row.object}`, text: conditionOf(row) ?? '' },
      close: (table: string) => `DROP TRIGGER ${row.object} ON ${table}`,
    })),
    ...catalog.rules.map(({ oid, relation, object, event, definition }) => ({
      ...{ kind: 'rule' as const, class: 'pg_rewrite', oid, relation },
      ...{ object, what: `rule ${object}`, text: definition },
      close: (table: string) =>
        event === '1' ? `DROP VIEW ${table}` : `DROP RULE ${object} ON ${table}`,
    })),
    ...catalog.policies.map(({ oid, relation, object, using, checking }) => ({
      ...{ kind: 'policy' as const, class: 'pg_policy', oid, relation },
      ...{ object, what: `policy ${object}`, text: `${using ?? ''} ${checking ?? ''}` },
      close: (table: string) => `DROP POLICY ${object} ON ${table}`,
    })),
    ...indexExpressions(catalog),
  ];
}

/** Expressions that the server also evaluates when it plans a query or maintains a table. */
function indexExpressions(catalog: SystemCatalog): readonly StoredExpression[] {
  return [
    ...catalog.indexes.map((row) => ({
      ...{ ...row, kind: 'index' as const, class: 'pg_class', what: `index ${row.object}` },
      text: row.definition,
      close: (table: string) => closeIndex(catalog, row, table),
    })),
    ...catalog.statistics.map((row) => ({
      ...{ ...row, kind: 'statistics' as const, class: 'pg_statistic_ext' },
      ...{ what: `statistics ${row.object}`, text: row.definition },
      close: () => `DROP STATISTICS ${row.object}`,
    })),
    ...catalog.relations.filter(isPartitioned).map(({ oid, object, partitionKey }) => ({
      ...{ kind: 'partition key' as const, class: 'pg_class', oid, relation: oid },
      ...{ object: 'the partition key', what: `partition key of ${object}` },
      text: partitionKey,
      close: (table: string) =>
        `-- partition ${table} by columns, or by built-in functions of them`,
    })),
  ];
}

function isPartitioned(row: RelationRow): row is RelationRow & { readonly partitionKey: string } {
  return row.partitionKey !== null;
}

/** An index that a constraint needs goes with the constraint. */
function closeIndex(catalog: SystemCatalog, index: IndexRow, table: string): string {
  const constraint = catalog.constraints.find(
    (row) =>
      /^[xup]$/.test(row.kind) &&
      row.relation === index.relation &&
      index.object.endsWith(`.${row.object}`),
  );
  return constraint
    ? `ALTER TABLE ${table} DROP CONSTRAINT ${constraint.object}`
    : `DROP INDEX ${index.object}`;
}

const CLOSABLE: Readonly<Record<string, string>> = {
  pg_constraint: 'pg_constraint',
  pg_policy: 'pg_policy',
  pg_class: 'pg_class',
  pg_opclass: 'pg_class',
  pg_statistic_ext: 'pg_statistic_ext',
};

/**
 * Removes the expression that calls a function. Writes of such a function to registered relations
 * could not be explained otherwise.
 */
export function closeUse(
  catalog: SystemCatalog,
  expressions: readonly StoredExpression[],
  use: Use,
  table: string,
): readonly string[] {
  switch (use.class) {
    case 'pg_attrdef':
      return [`ALTER TABLE ${table} ALTER COLUMN ${quoteName(use.column ?? '')} DROP DEFAULT`];
    case 'pg_type': {
      const type = catalog.types.find(({ oid }) => oid === use.object);
      return [`DROP TYPE ${type?.name ?? ''} CASCADE`];
    }
    case 'pg_amproc':
      return closeFamily(use);
    case 'pg_conversion':
      return [`DROP ${use.description.replace('conversion', 'CONVERSION')}`];
    default: {
      const found = expressions.find(
        ({ kind, class: owner, oid }) =>
          kind !== 'partition key' && oid === use.object && owner === CLOSABLE[use.class],
      );
      return found ? [found.close(table)] : [];
    }
  }
}

/** Removes the operator family that a support function or operator belongs to. */
export function closeFamily({ description }: Use): readonly string[] {
  const family = /of operator family (.+) for access method (\w+)/s.exec(description);
  return family === null ? [] : [`DROP OPERATOR FAMILY ${family[1]} USING ${family[2]} CASCADE`];
}

/** These are judged by the functions that they call, where maintenance or planning evaluates them. */
const JUDGED_ELSEWHERE: readonly Kind[] = ['index', 'statistics', 'partition key'];

/**
 * Expressions with effects that are not observed: those of reached relations, and of every domain.
 */
export function surveyExpressions({ catalog, index, reach, outlets }: SurveyContext): void {
  for (const { kind, relation, what, text, close } of storedExpressions(catalog)) {
    const row = index.relation.get(relation);
    const isReached = relation === 0 || (row !== undefined && reach.relations.has(row));
    const act = isReached && !JUDGED_ELSEWHERE.includes(kind) ? findUnseenAct(text) : undefined;
    if (act === undefined) continue;
    outlets.open({
      outlet: row === undefined ? what : `${what} of ${row.object}`,
      object: row?.object ?? what,
      why: `It ${act}`,
      fix: [close(row?.object ?? '')],
      needs: `${row === undefined ? 'the owner of the domain' : quoteName(row.owner)} or a superuser`,
    });
  }
}

/** Whether a trigger can fire in an ordinary session. */
export function isLive(trigger: TriggerRow): boolean {
  return trigger.enabled === 'O' || trigger.enabled === 'A';
}

/** The condition of a trigger, which is evaluated with the rights of the writing role. */
export function conditionOf({ definition }: TriggerRow): string | undefined {
  return /\bWHEN \((.*)\) EXECUTE (?:FUNCTION|PROCEDURE)/s.exec(definition)?.[1];
}
