import assert from 'node:assert/strict';
import type {
  ConstraintRow,
  FunctionRow,
  IndexRow,
  RelationRow,
  SystemCatalog,
  TriggerRow,
  TypeRow,
  Use,
} from '../../../../src/adapters/postgres/certify/catalog.ts';
import { indexCatalog } from '../../../../src/adapters/postgres/certify/catalog-index.ts';
import {
  type BoundaryFacts,
  Outlets,
  type SurveyContext,
} from '../../../../src/adapters/postgres/certify/facts.ts';
import type { Reach, Route } from '../../../../src/adapters/postgres/certify/reach.ts';

let oids = 1000;
const nextOid = () => {
  oids += 1;
  return oids;
};

/** A function of the application that only computes, unless its source says otherwise. */
export function fn(
  name: string,
  source = 'select 1',
  more: Partial<FunctionRow> = {},
): FunctionRow {
  return {
    ...{
      oid: nextOid(),
      object: `app.${name}()`,
      name,
      schema: 'app',
      language: 'sql',
      trusted: true,
      owner: 'app',
    },
    ...{
      definer: false,
      trigger: false,
      kind: 'f',
      volatility: 'v',
      config: null,
      source,
      library: null,
    },
    ...{
      sqlBody: null,
      defaults: null,
      definition: '',
      extension: null,
      types: [],
      parts: [],
      ...more,
    },
  };
}

/** A relation of the given kind, as `pg_class` has it. */
export function relation(name: string, kind: string, more: Partial<RelationRow> = {}): RelationRow {
  return {
    ...{
      oid: nextOid(),
      object: `app.${name}`,
      schema: 'app',
      name,
      kind,
      persistence: 'p',
      owner: 'app',
    },
    ...{
      rls: false,
      forceRls: false,
      partition: false,
      extension: null,
      parents: [],
      partitionKey: null,
    },
    ...{ writes: 0, ...more },
  };
}

/** A type of the application. */
export function type(short: string, more: Partial<TypeRow> = {}): TypeRow {
  const none = { base: 0, element: 0, relation: 0, defaultText: null, types: [] };
  return { oid: nextOid(), name: `app.${short}`, kind: 'd', short, ...none, ...more };
}

/** A place in the schema that calls a function. */
export const use = (called: FunctionRow, more: Partial<Use>): Use => ({
  ...{
    class: 'pg_constraint',
    object: 0,
    function: called.oid,
    relation: 0,
    type: 0,
    column: null,
    description: 'it',
  },
  ...more,
});
/** A rule, by default the query of a view. */
export const rule = ({ oid }: RelationRow, definition: string, event = '1') => ({
  ...{ relation: oid, oid: nextOid(), object: '"_RETURN"', event, enabled: 'O', definition },
});
/** A check of a domain. */
export const check = ({ oid }: TypeRow, definition: string) =>
  ({ type: oid, definition }) as ConstraintRow;
/** A column of a relation. */
export const column = ({ oid }: RelationRow, { oid: typeOid }: TypeRow) =>
  ({ relation: oid, name: 'c', typeOid }) as SystemCatalog['columns'][number];
/** An operator of the application. */
export const operator = (name: string, called: number, builtin: string | null = null) => ({
  ...{
    description: `operator ${name}`,
    schema: 'app',
    name,
    function: called,
    builtin,
    extension: null,
  },
});

/** An index, or statistics with an expression. */
export const index = (
  name: string,
  { oid: relation }: RelationRow,
  definition: string,
): IndexRow => ({
  ...{ relation, oid: nextOid(), object: `app.${name}`, definition },
});

/** A trigger; `type` has the bits of `pg_trigger`. */
export const trigger = ({ oid: relation }: RelationRow, type: number, enabled = 'O') =>
  ({ relation, oid: nextOid(), type, enabled }) as TriggerRow;

/** A catalogue with these parts and nothing else. */
export function catalogOf(parts: Partial<SystemCatalog>): SystemCatalog {
  const empty = {
    ...{
      server: [],
      roles: [],
      memberships: [],
      grants: [],
      schemas: [],
      relations: [],
      columns: [],
    },
    ...{
      constraints: [],
      indexes: [],
      statistics: [],
      triggers: [],
      rules: [],
      policies: [],
      functions: [],
    },
    ...{
      uses: [],
      settings: [],
      server_settings: [],
      eventTriggers: [],
      extensions: [],
      languages: [],
    },
    ...{
      servers: [],
      wrappers: [],
      mappings: [],
      publications: [],
      subscriptions: [],
    },
    ...{ casts: [], operators: [], types: [], defaultAcls: [], owned: [] },
  };
  return { ...empty, ...parts };
}

/** The registered table of every {@link place}, and one that is not registered. */
export const TABLE = relation('t', 'r', { owner: 'Owner' });
export const OTHER = relation('other', 'r');
const ROUTE: Route = { by: 'a trigger', close: ['DROP TRIGGER x'] };
export const FACTS = {
  ...{
    executor: 'exec',
    owner: 'em',
    control: 'ctl',
    relations: [],
    entryPoints: [],
    restrictions: [],
  },
} as unknown as BoundaryFacts;

export interface Given {
  readonly parts?: Partial<SystemCatalog>;
  readonly facts?: Partial<BoundaryFacts>;
  readonly executable?: readonly FunctionRow[];
  readonly views?: readonly number[];
}

/**
 * A catalogue with one registered table, the index of it, and what a write reaches: the table and
 * these functions.
 */
export function place({
  parts = {},
  facts = {},
  executable = [],
  views = [],
}: Given): SurveyContext {
  const catalog = catalogOf({ ...parts, relations: [TABLE, OTHER, ...(parts.relations ?? [])] });
  const registered = {
    ...FACTS,
    relations: [{ oid: TABLE.oid, leaves: [] }],
    views: views.map((oid) => ({ oid })),
  } as unknown as BoundaryFacts;
  const index = indexCatalog(catalog, registered, new Set(executable.map(({ oid }) => oid)));
  const reach: Reach = {
    relations: new Map([[TABLE, ROUTE]]),
    functions: new Map(catalog.functions.map((row) => [row, ROUTE])),
    principals: new Map([['lender', ROUTE]]),
  };
  const control = { query: () => assert.fail('the catalogue has all that is asked') };
  const said = { index, reach, outlets: new Outlets(), unclosed: new Map<string, string>() };
  return { control, given: '', catalog, facts: { ...FACTS, ...facts }, ...said };
}
