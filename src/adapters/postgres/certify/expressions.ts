import { quoteName } from '../../../postgres/identifier.ts';
import { findUnseenAct } from './body.ts';
import type { IndexRow, SystemCatalog, TriggerRow, Use } from './catalog.ts';
import type { CatalogIndex } from './catalog-index.ts';
import { at, type SurveyContext } from './facts.ts';
import { findUnclosed } from './managed.ts';

type Kind =
  | ('default' | 'check' | 'foreign key' | 'constraint' | 'trigger' | 'rule' | 'policy')
  | ('index' | 'statistics' | 'partition key');

const CONSTRAINT_KINDS: Readonly<Record<string, Kind>> = { c: 'check', f: 'foreign key' };

/**
 * The catalogue that an expression's object id belongs to, if its functions are looked up by id.
 */
const CLASS_OF: Readonly<Partial<Record<Kind, string>>> = {
  check: 'pg_constraint',
  'foreign key': 'pg_constraint',
  constraint: 'pg_constraint',
  policy: 'pg_policy',
  index: 'pg_class',
  'partition key': 'pg_class',
  statistics: 'pg_statistic_ext',
};

/** An expression that the schema stores, and the statement that removes it. */
export interface StoredExpression {
  readonly kind: Kind;
  /** 0 for the default of a column. */
  readonly oid: number;
  /** 0 if it belongs to a domain. */
  readonly relation: number;
  readonly object: string;
  readonly what: string;
  readonly text: string;
  readonly close: (table: string) => string;
}

/** Every expression of the schema that the server evaluates. */
export function storedExpressions(catalog: SystemCatalog): readonly StoredExpression[] {
  const found: StoredExpression[] = [];
  const add = (
    kind: Kind,
    { oid, relation, object }: Pick<StoredExpression, 'oid' | 'relation' | 'object'>,
    text: string | null,
    close: (table: string) => string,
    what = `${kind} ${object}`,
  ) => found.push({ kind, oid, relation, object, what, text: text ?? '', close });
  for (const { relation, name, defaultText } of catalog.columns) {
    const object = quoteName(name);
    const close = (table: string) => `ALTER TABLE ${table} ALTER COLUMN ${object} DROP DEFAULT`;
    add('default', { oid: 0, relation, object }, defaultText, close, `default of ${object}`);
  }
  for (const { oid, name, defaultText } of catalog.types) {
    const close = () => `ALTER DOMAIN ${name} DROP DEFAULT`;
    const what = `default of domain ${name}`;
    add('default', { oid, relation: 0, object: name }, defaultText, close, what);
  }
  for (const row of catalog.constraints) {
    const kind = CONSTRAINT_KINDS[row.kind] ?? 'constraint';
    const close = (table: string) => {
      const place = row.domain === null ? `TABLE ${table}` : `DOMAIN ${row.domain}`;
      return `ALTER ${place} DROP CONSTRAINT ${row.object}`;
    };
    add(kind, row, row.definition, close, `constraint ${row.object}`);
  }
  for (const row of catalog.triggers.filter(isLive))
    add(
      'trigger',
      row,
      conditionOf(row) ?? '',
      (table) => `DROP TRIGGER ${row.object} ON ${table}`,
    );
  for (const row of catalog.rules)
    add('rule', row, row.definition, (table) =>
      row.event === '1' ? `DROP VIEW ${table}` : `DROP RULE ${row.object} ON ${table}`,
    );
  for (const row of catalog.policies) {
    const text = `${row.using ?? ''} ${row.checking ?? ''}`;
    add('policy', row, text, (table) => `DROP POLICY ${row.object} ON ${table}`);
  }
  for (const row of catalog.indexes)
    add('index', row, row.definition, (table) => closeIndex(catalog, row, table));
  for (const row of catalog.statistics)
    add('statistics', row, row.definition, () => `DROP STATISTICS ${row.object}`);
  for (const { oid, object, partitionKey } of catalog.relations) {
    if (partitionKey === null) continue;
    const row = { oid, relation: oid, object: 'the partition key' };
    const close = (table: string) =>
      `-- partition ${table} by columns, or by built-in functions of them`;
    add('partition key', row, partitionKey, close, `partition key of ${object}`);
  }
  return found;
}

/** The statement that drops an index, or the constraint that needs it. */
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

/** Whether this expression makes the use. The use of an operator class belongs to its index. */
export function usesIn({ kind, oid }: StoredExpression, use: Use): boolean {
  const owner = use.class === 'pg_opclass' ? 'pg_class' : use.class;
  return oid === use.object && owner === CLASS_OF[kind];
}

/** The statements that drop an expression because it calls a function. */
export function closeUse(index: CatalogIndex, use: Use, table: string): readonly string[] {
  switch (use.class) {
    case 'pg_attrdef':
      return [`ALTER TABLE ${table} ALTER COLUMN ${quoteName(use.column ?? '')} DROP DEFAULT`];
    case 'pg_type':
      return [`DROP TYPE ${index.type.get(use.object)?.name ?? ''} CASCADE`];
    case 'pg_amproc':
      return closeFamily(use);
    case 'pg_conversion':
      return [`DROP ${use.description.replace('conversion', 'CONVERSION')}`];
    default: {
      const found = index.expressions.find(
        (expression) => expression.kind !== 'partition key' && usesIn(expression, use),
      );
      return found ? [found.close(table)] : [];
    }
  }
}

/** The statement that removes the operator family of a support function or operator. */
export function closeFamily({ description }: Use): readonly string[] {
  const family = /of operator family (.+) for access method (\w+)/s.exec(description);
  return family === null ? [] : [`DROP OPERATOR FAMILY ${family[1]} USING ${family[2]} CASCADE`];
}

/** `surveyDelayed` and `surveyConstantCalls` judge these by the functions that they call. */
const JUDGED_ELSEWHERE: readonly Kind[] = ['index', 'statistics', 'partition key'];

/** Expressions with unobserved effects, on reached relations and on every domain. */
export function surveyExpressions(context: SurveyContext): void {
  const { index, reach, outlets } = context;
  for (const { kind, relation, what, text, close } of index.expressions) {
    const row = index.relation.get(relation);
    const isReached = relation === 0 || (row !== undefined && reach.relations.has(row));
    const isJudged = isReached && !JUDGED_ELSEWHERE.includes(kind);
    const act = isJudged ? (findUnseenAct(text) ?? findUnclosed(context, text)[0]) : undefined;
    if (act === undefined) continue;
    const object = row?.object ?? what;
    outlets.open(
      row ? at.relation(row) : { object, needs: 'the owner of the domain or a superuser' },
      row === undefined ? what : `${what} of ${object}`,
      `It ${act}`,
      close(object),
    );
  }
}

/** Whether a trigger can fire in an ordinary session. */
export function isLive(trigger: TriggerRow): boolean {
  return trigger.enabled === 'O' || trigger.enabled === 'A';
}

/** The condition of a trigger, which is evaluated with the rights of the writing role. */
function conditionOf({ definition }: TriggerRow): string | undefined {
  return /\bWHEN \((.*)\) EXECUTE (?:FUNCTION|PROCEDURE)/s.exec(definition)?.[1];
}
