import type { ConnectionOptions as TlsOptions } from 'node:tls';
import {
  demandRelations,
  readTimeoutOption,
  readValuesOption,
  refusalsOf,
} from '../../backend/setup.ts';
import { misnamedOption, misnamedRelation, type OptionNames } from '../../contract/options.ts';
import type { Profile } from '../../protocol/effect.ts';

/** How to connect as one account: a URL (`mysql://user:password@host/database`) or its parts. */
export type MysqlConnectionOptions =
  | string
  | {
      readonly host?: string;
      readonly port?: number;
      /** The path of a unix socket, instead of host and port. */
      readonly socketPath?: string;
      readonly user: string;
      readonly password?: string;
      readonly database: string;
      readonly ssl?: TlsOptions;
    };

/** A table that operations may write, with the columns that are not compared. */
export type MysqlRelationOption =
  | string
  | { readonly name: string; readonly volatile?: readonly string[] };

/** How to reach a MariaDB database, and what to protect in it. */
export interface MysqlOptions {
  /** Trusted account for surveys, markers and recovery. It never runs agent SQL. */
  readonly control: MysqlConnectionOptions;
  /** Restricted account that runs agent SQL. */
  readonly execution: MysqlConnectionOptions;
  /** The account that owns recorders and records. Default: `effectmatch_owner`. */
  readonly owner?: string;
  /** The database for records and markers. Default: `effectmatch`. */
  readonly controlDatabase?: string;
  /** The tables that protected operations may write. */
  readonly relations: readonly MysqlRelationOption[];
  /** Additional tables whose rows an approval may depend on. */
  readonly reads?: readonly string[];
  /** The unit of change. Default: `net-state`. */
  readonly profile?: Profile;
  /** `digest` keeps the values of rows out of journal and receipts. Default: `plain`. */
  readonly values?: 'plain' | 'digest';
  readonly isolation?: 'repeatable read' | 'serializable';
  /** How long an operation may hold its transaction. The server enforces it. Default: 30000. */
  readonly stageTimeoutMs?: number;
  /** How long a statement may wait for a row that another session has locked. Default: 2000. */
  readonly lockTimeoutMs?: number;
  /** Triggers and routines that a person has read, by the digest that the survey reports. */
  readonly reviews?: readonly string[];
}

/** Checked options with all defaults filled in. */
export interface MysqlSettings {
  readonly relations: readonly { readonly name: string; readonly volatile: readonly string[] }[];
  readonly reads: readonly string[];
  /** The database that contains the registered tables. */
  readonly business: string;
  readonly controlDatabase: string;
  readonly owner: string;
  readonly control: string;
  readonly execution: string;
  readonly profile: Profile;
  readonly values: 'plain' | 'digest';
  readonly isolation: 'repeatable read' | 'serializable';
  readonly stageTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly reviews: readonly string[];
}

const OPTIONS: OptionNames<MysqlOptions> = {
  control: true,
  execution: true,
  owner: true,
  controlDatabase: true,
  relations: true,
  reads: true,
  profile: true,
  values: true,
  isolation: true,
  stageTimeoutMs: true,
  lockTimeoutMs: true,
  reviews: true,
};
const RELATION = { name: true, volatile: true } as const;

/** The profiles that recorders support. */
export const PROFILES = ['relation-write', 'row-event', 'net-state'] as const;

export const refused = refusalsOf('mysql');

/** Checks the options as far as possible without the database. */
export function readOptions(options: MysqlOptions): MysqlSettings {
  const wrong = misnamedOption(options, OPTIONS) ?? misnamedRelation(options.relations, RELATION);
  if (wrong !== undefined) throw refused(wrong);
  const { profile = 'net-state', isolation = 'repeatable read', reads = [] } = options;
  if (!PROFILES.some((known) => known === profile))
    throw refused(`profile "${profile}" is none of ${PROFILES.join(', ')}`);
  if (isolation !== 'repeatable read' && isolation !== 'serializable')
    throw refused(`isolation "${isolation}" is neither "repeatable read" nor "serializable"`);
  const relations = options.relations.map((relation) => {
    const { name, volatile = [] } = typeof relation === 'string' ? { name: relation } : relation;
    return { name, volatile };
  });
  demandRelations(relations, refused);
  checkRelations([...relations.map(({ name }) => name), ...reads]);
  const { owner = 'effectmatch_owner', controlDatabase = 'effectmatch', reviews = [] } = options;
  const accounts = readAccounts(options, owner);
  if (accounts.business === controlDatabase)
    throw refused(`"${controlDatabase}" is the database of records; name the one with the tables`);
  const { stageTimeoutMs = 30_000, lockTimeoutMs = 2000 } = options;
  return {
    relations,
    reads,
    controlDatabase,
    owner,
    profile,
    isolation,
    reviews,
    ...accounts,
    values: readValuesOption(options.values, refused),
    stageTimeoutMs: readTimeoutOption(stageTimeoutMs, 'stageTimeoutMs', refused),
    lockTimeoutMs: readTimeoutOption(lockTimeoutMs, 'lockTimeoutMs', refused),
  };
}

function checkRelations(names: readonly unknown[]): void {
  const seen = new Set<unknown>();
  for (const name of names) {
    if (typeof name !== 'string' || name === '')
      throw refused(`relation ${JSON.stringify(name)} must be the name of a table`);
    if (name.includes('.'))
      throw refused(`relation "${name}": name tables of the connection's database, without it`);
    if (seen.has(name)) throw refused(`relation "${name}" is registered twice`);
    seen.add(name);
  }
}

function readAccounts(options: MysqlOptions, owner: string) {
  const control = connectionParts(options.control, 'control');
  const execution = connectionParts(options.execution, 'execution');
  const users = [control.user, execution.user, owner];
  if (new Set(users).size < 3)
    throw refused('control, execution and owner must be three different accounts');
  const odd = users.find((user) => !/^[\w$.-]{1,80}$/.test(user));
  if (odd !== undefined)
    throw refused(`account "${odd}": use letters, digits and . _ $ - in the names of accounts`);
  if (control.database !== execution.database)
    throw refused('control and execution must connect to the same database');
  return { control: control.user, execution: execution.user, business: control.database };
}

/** The parts of a connection. A URL may leave some of them out. */
export function connectionParts(options: MysqlConnectionOptions, which: string) {
  if (typeof options !== 'string') return options;
  const url = URL.canParse(options) ? new URL(options) : undefined;
  const name = url?.pathname.slice(1);
  if (url === undefined || !/^(?:mysql|mariadb):$/.test(url.protocol) || !name)
    throw refused(`${which} must be a URL such as mysql://user:password@host:3306/database`);
  return {
    host: url.hostname,
    port: url.port === '' ? 3306 : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(name),
  };
}
