import type { ParameterValue } from '../../../postgres/connection.ts';
import { SQL } from '../sql.ts';

/** What is used of each part of the catalogue, which `../sql/catalog.sql` reads. */
interface Parts {
  server: { major: number; owner: string };
  roles: {
    name: string;
    super: boolean;
    inherit: boolean;
    createrole: boolean;
    createdb: boolean;
    login: boolean;
    replication: boolean;
    bypassrls: boolean;
  };
  memberships: { member: string; role: string; admin: boolean; grantor: string };
  /** Single privileges in access lists. An empty grantee means PUBLIC. */
  grants: {
    kind: string;
    object: string;
    owner: string;
    grantee: string;
    privilege: string;
    grantable: boolean;
    grantor: string;
  };
  schemas: { object: string; name: string; owner: string };
  relations: {
    oid: number;
    object: string;
    schema: string;
    name: string;
    kind: string;
    persistence: string;
    owner: string;
    partition: boolean;
    extension: string | null;
    parents: readonly number[];
    partitionKey: string | null;
    /** For a view: bits of the writes that it supports, automatically or through triggers. */
    writes: number;
  };
  columns: {
    relation: number;
    name: string;
    type: string;
    typeOid: number;
    defaultText: string | null;
  };
  constraints: {
    oid: number;
    relation: number;
    type: number;
    object: string;
    kind: string;
    deferrable: boolean;
    referenced: number;
    onDelete: string;
    onUpdate: string;
    definition: string;
    domain: string | null;
  };
  indexes: { relation: number; oid: number; object: string; definition: string };
  /** Statistics objects with expressions. */
  statistics: Parts['indexes'];
  triggers: {
    oid: number;
    relation: number;
    object: string;
    name: string;
    enabled: string;
    function: number;
    functionName: string;
    functionSchema: string;
    type: number;
    deferrable: boolean;
    internal: boolean;
    definition: string;
    attributes: number;
  };
  rules: {
    relation: number;
    oid: number;
    object: string;
    event: string;
    enabled: string;
    definition: string;
  };
  policies: {
    relation: number;
    oid: number;
    object: string;
    using: string | null;
    checking: string | null;
  };
  functions: {
    oid: number;
    object: string;
    name: string;
    schema: string;
    language: string;
    trusted: boolean;
    owner: string;
    definer: boolean;
    /** Whether it is a trigger function, which nothing else can call, whatever the rights. */
    trigger: boolean;
    kind: string;
    volatility: string;
    config: readonly string[] | null;
    source: string;
    library: string | null;
    sqlBody: string | null;
    /** Its arguments, if some have defaults. A call that omits them evaluates the defaults. */
    defaults: string | null;
    definition: string;
    extension: string | null;
    /** Application types among its arguments and results. */
    types: readonly number[];
    /** Volatile built-ins, and functions that change the session, that an aggregate is made of. */
    parts: readonly string[];
  };
  /** Expressions of the schema that call functions. */
  uses: {
    class: string;
    object: number;
    function: number;
    relation: number;
    type: number;
    column: string | null;
    description: string;
  };
  settings: { database: string; role: string; name: string; value: string };
  server_settings: { name: string; value: string };
  eventTriggers: { object: string; enabled: string; function: number };
  extensions: { name: string; version: string };
  languages: object;
  servers: object;
  wrappers: object;
  mappings: object;
  publications: object;
  subscriptions: object;
  casts: {
    description: string;
    source: string;
    target: string;
    sourceOid: number;
    targetOid: number;
    function: number;
    /** The volatile built-in that it calls. */
    builtin: string | null;
    extension: string | null;
  };
  operators: {
    description: string;
    name: string;
    function: number;
    /** The volatile built-in, or function that changes the session, that it calls. */
    builtin: string | null;
    extension: string | null;
  };
  types: {
    oid: number;
    name: string;
    kind: string;
    base: number;
    element: number;
    relation: number;
    short: string;
    /** The default of a domain. */
    defaultText: string | null;
    /** Application types among the fields of a composite type or beneath a range. */
    types: readonly number[];
  };
  defaultAcls: object;
  owned: { description: string };
}

/** A row of one part. */
type RowOf<Part extends keyof Parts> = Readonly<Parts[Part]>;

/** Everything a survey judges, from one snapshot. */
export type SystemCatalog = { readonly [Part in keyof Parts]: readonly RowOf<Part>[] };

export type Grant = RowOf<'grants'>;
export type RelationRow = RowOf<'relations'>;
export type ConstraintRow = RowOf<'constraints'>;
export type IndexRow = RowOf<'indexes'>;
export type TriggerRow = RowOf<'triggers'>;
export type FunctionRow = RowOf<'functions'>;
export type Use = RowOf<'uses'>;
export type CastRow = RowOf<'casts'>;
export type TypeRow = RowOf<'types'>;

/**
 * What a survey needs from the trusted connection. Values are returned as the text that the server
 * sent.
 */
export interface TextReader {
  query(
    text: string,
    values?: readonly ParameterValue[],
  ): Promise<{ readonly rows: readonly (readonly (string | null)[])[] }>;
}

/**
 * The rows of a query as objects. The server writes the JSON, so no driver setting can change a
 * value.
 */
export async function readRows<Row>(
  control: TextReader,
  query: string,
  values: readonly ParameterValue[] = [],
): Promise<readonly Row[]> {
  const { rows } = await control.query(
    `select coalesce(pg_catalog.json_agg(part), '[]') from (${query}) as part`,
    values,
  );
  return JSON.parse(rows[0]?.[0] ?? '[]') as Row[];
}

/**
 * Reads the configuration in the transaction the caller opened. No application code runs: only
 * catalogues are read, and expressions come back as text.
 */
export async function readCatalog(control: TextReader, executor: string): Promise<SystemCatalog> {
  const parts = await Promise.all(
    SQL.catalog.names.map(async (part) => {
      const values = part === 'owned' ? [executor] : [];
      return [part, await readRows<unknown>(control, SQL.catalog.get(part), values)];
    }),
  );
  return Object.fromEntries(parts) as SystemCatalog;
}
