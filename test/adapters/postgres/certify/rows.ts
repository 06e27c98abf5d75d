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
      largeObjects: [],
    },
    ...{ casts: [], operators: [], types: [], defaultAcls: [], owned: [] },
  };
  return { ...empty, ...parts };
}
