import type { ParameterValue } from '../../../postgres/connection.ts';
import { SQL } from '../sql.ts';

interface Role {
  readonly name: string;
  readonly super: boolean;
  readonly inherit: boolean;
  readonly createrole: boolean;
  readonly createdb: boolean;
  readonly login: boolean;
  readonly replication: boolean;
  readonly bypassrls: boolean;
}

interface Membership {
  readonly member: string;
  readonly role: string;
  readonly admin: boolean;
  readonly grantor: string;
}

/** One privilege in an access list. An empty grantee means PUBLIC. */
export interface Grant {
  readonly kind: string;
  readonly object: string;
  readonly owner: string;
  readonly grantee: string;
  readonly privilege: string;
  readonly grantable: boolean;
  readonly grantor: string;
}

export interface RelationRow {
  readonly oid: number;
  readonly object: string;
  readonly schema: string;
  readonly name: string;
  readonly kind: string;
  readonly persistence: string;
  readonly owner: string;
  readonly partition: boolean;
  readonly extension: string | null;
  readonly parents: readonly number[];
  readonly partitionKey: string | null;
  /** For a view: bits of the writes that it supports, automatically or through triggers. */
  readonly writes: number;
}

export interface ColumnRow {
  readonly relation: number;
  readonly name: string;
  readonly type: string;
  readonly typeOid: number;
  readonly defaultText: string | null;
}

export interface ConstraintRow {
  readonly oid: number;
  readonly relation: number;
  readonly type: number;
  readonly object: string;
  readonly kind: string;
  readonly deferrable: boolean;
  readonly referenced: number;
  readonly onDelete: string;
  readonly onUpdate: string;
  readonly definition: string;
  readonly domain: string | null;
}

export interface IndexRow {
  readonly relation: number;
  readonly oid: number;
  readonly object: string;
  readonly definition: string;
}

/** A foreign server or a foreign-data wrapper. */
interface ForeignRow {
  readonly oid: number;
  readonly object: string;
  readonly owner: string;
}

export interface TriggerRow {
  readonly oid: number;
  readonly relation: number;
  readonly object: string;
  readonly name: string;
  readonly enabled: string;
  readonly function: number;
  readonly functionName: string;
  readonly functionSchema: string;
  readonly type: number;
  readonly deferrable: boolean;
  readonly internal: boolean;
  readonly definition: string;
  readonly attributes: number;
}

export interface RuleRow {
  readonly relation: number;
  readonly oid: number;
  readonly object: string;
  readonly event: string;
  readonly enabled: string;
  readonly definition: string;
}

interface PolicyRow {
  readonly relation: number;
  readonly oid: number;
  readonly object: string;
  readonly using: string | null;
  readonly checking: string | null;
}

export interface FunctionRow {
  readonly oid: number;
  readonly object: string;
  readonly name: string;
  readonly schema: string;
  readonly language: string;
  readonly trusted: boolean;
  readonly owner: string;
  readonly definer: boolean;
  /** Whether it is a trigger function, which nothing else can call, whatever the rights. */
  readonly trigger: boolean;
  readonly kind: string;
  readonly volatility: string;
  readonly config: readonly string[] | null;
  readonly source: string;
  readonly library: string | null;
  readonly sqlBody: string | null;
  /** Its arguments, if some have defaults. A call that omits them evaluates the defaults. */
  readonly defaults: string | null;
  readonly definition: string;
  readonly extension: string | null;
  /** Application types among its arguments and results. */
  readonly types: readonly number[];
  /** Volatile built-ins, and functions that change the session, that an aggregate is made of. */
  readonly parts: readonly string[];
}

/** An expression of the schema that calls a function. */
export interface Use {
  readonly class: string;
  readonly object: number;
  readonly function: number;
  readonly relation: number;
  readonly type: number;
  readonly column: string | null;
  readonly description: string;
}

export interface SettingRow {
  readonly database: string;
  readonly role: string;
  readonly name: string;
  readonly value: string;
}

export interface CastRow {
  readonly description: string;
  readonly source: string;
  readonly target: string;
  readonly sourceOid: number;
  readonly targetOid: number;
  readonly function: number;
  /** The volatile built-in that it calls. */
  readonly builtin: string | null;
  readonly extension: string | null;
}

export interface TypeRow {
  readonly oid: number;
  readonly name: string;
  readonly kind: string;
  readonly base: number;
  readonly element: number;
  readonly relation: number;
  readonly short: string;
  /** The default of a domain. */
  readonly defaultText: string | null;
  /** Application types among the fields of a composite type or beneath a range. */
  readonly types: readonly number[];
}

/** Everything a survey judges, from one snapshot. */
export interface SystemCatalog {
  readonly server: readonly {
    readonly major: number;
    readonly database: string;
    readonly owner: string;
  }[];
  readonly roles: readonly Role[];
  readonly memberships: readonly Membership[];
  readonly grants: readonly Grant[];
  readonly schemas: readonly {
    readonly object: string;
    readonly name: string;
    readonly owner: string;
  }[];
  readonly relations: readonly RelationRow[];
  readonly columns: readonly ColumnRow[];
  readonly constraints: readonly ConstraintRow[];
  readonly indexes: readonly IndexRow[];
  /** Statistics objects with expressions. */
  readonly statistics: readonly IndexRow[];
  readonly triggers: readonly TriggerRow[];
  readonly rules: readonly RuleRow[];
  readonly policies: readonly PolicyRow[];
  readonly functions: readonly FunctionRow[];
  readonly uses: readonly Use[];
  readonly settings: readonly SettingRow[];
  readonly server_settings: readonly { readonly name: string; readonly value: string }[];
  readonly eventTriggers: readonly {
    readonly object: string;
    readonly event: string;
    readonly enabled: string;
    readonly function: number;
  }[];
  readonly extensions: readonly { readonly name: string; readonly version: string }[];
  readonly languages: readonly { readonly name: string; readonly trusted: boolean }[];
  readonly servers: readonly (ForeignRow & { readonly wrapper: string })[];
  readonly wrappers: readonly ForeignRow[];
  readonly mappings: readonly { readonly server: string; readonly user: string | null }[];
  readonly publications: readonly {
    readonly object: string;
    readonly all: boolean;
    readonly tables: readonly string[];
  }[];
  readonly subscriptions: readonly { readonly object: string; readonly enabled: boolean }[];
  readonly largeObjects: readonly {
    readonly count: number;
    readonly owned: number;
    readonly writable: number;
  }[];
  readonly casts: readonly CastRow[];
  readonly operators: readonly {
    readonly description: string;
    readonly schema: string;
    readonly name: string;
    readonly function: number;
    /** The volatile built-in, or function that changes the session, that it calls. */
    readonly builtin: string | null;
    readonly extension: string | null;
  }[];
  readonly types: readonly TypeRow[];
  readonly defaultAcls: readonly unknown[];
  readonly owned: readonly { readonly description: string }[];
}

const OF_EXECUTOR: ReadonlySet<string> = new Set(['largeObjects', 'owned']);

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
      const values = OF_EXECUTOR.has(part) ? [executor] : [];
      return [part, await readRows<unknown>(control, SQL.catalog.get(part), values)];
    }),
  );
  return Object.fromEntries(parts) as SystemCatalog;
}
