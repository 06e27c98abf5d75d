import { demandRelations, readValuesOption, refusalsOf } from '../../backend/setup.ts';
import { misnamedOption, misnamedRelation, type OptionNames } from '../../contract/options.ts';
import { type QualifiedName, readTarget } from '../../postgres/identifier.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import type { Profile } from '../../protocol/effect.ts';
import type { Review } from './certify/facts.ts';
import { parseRoutine, type RoutineName } from './routine-name.ts';

/** A relation to register: its name as written in SQL, or the name with options. */
export type PostgresRelationOption =
  | string
  | {
      readonly name: string;
      /** Columns that are not compared on rows that an approval names. */
      readonly volatile?: readonly string[];
      /** Record writes per statement instead of per row, for statements that write many rows. */
      readonly bulk?: boolean;
    };

/**
 * How the outlets of agent SQL are closed. `server`: by rights on the server, which a superuser
 * sets once. `managed`: by the rights that a role without superuser can set, and otherwise by a
 * gate that looks up every name in a statement and reads the application's code.
 */
export type BoundaryTier = 'server' | 'managed';

/** The sessions of the execution login. */
export interface SessionOptions {
  /** How many operations may be held at once. Default: 10. */
  readonly max?: number;
  /** Whether sessions are reset and used again for other operations. Default: true. */
  readonly reuse?: boolean;
}

/** How to reach a PostgreSQL database, and what to protect in it. */
export interface PostgresOptions {
  /** The trusted login, for surveys, markers and recovery. It never runs agent SQL. */
  readonly control: ConnectionOptions;
  /** The restricted login that runs agent SQL. */
  readonly execution: ConnectionOptions;
  /**
   * The role that owns schema `effectmatch`. No session logs in as it. Default:
   * `effectmatch_owner`.
   */
  readonly owner?: string;
  /**
   * How outlets are closed. `managed` is for servers without a superuser, such as those of cloud
   * providers. Default: `server`.
   */
  readonly boundary?: BoundaryTier;
  /** The tables that protected operations may write. */
  readonly relations: readonly PostgresRelationOption[];
  /**
   * Views that protected operations may write through. Effects are stated on the tables beneath,
   * which must be registered.
   */
  readonly views?: readonly string[];
  /** Other tables whose rows an approval may depend on. */
  readonly reads?: readonly string[];
  /**
   * Functions and procedures that agents may call, as named in SQL. Add the argument types if
   * several have the same name: `billing.pay(integer, numeric)`.
   */
  readonly entryPoints?: readonly string[];
  /** The unit of comparison. Default: `net-state`. */
  readonly profile?: Profile;
  /** How the journal and receipts store values. Default: `plain`. */
  readonly values?: 'plain' | 'digest';
  readonly isolation?: 'read committed' | 'serializable';
  readonly sessions?: SessionOptions;
  /** How long an operation may hold its transaction, enforced by the server. Default: 30000. */
  readonly stageTimeoutMs?: number;
  /**
   * How long to wait for a row that another session has locked, or for a free session. Default:
   * 2000.
   */
  readonly lockTimeoutMs?: number;
  /** Host and network restrictions that the deployment declares and the database cannot see. */
  readonly declared?: readonly string[];
  /**
   * Functions that the certification cannot judge and that a person has read, with the digest from
   * the report.
   */
  readonly reviews?: readonly Review[];
  /** Extensions and preloaded libraries with native code that the deployment vouches for. */
  readonly trustedCode?: readonly string[];
}

/** Checked options, with defaults filled in. */
export interface Settings {
  readonly boundary: BoundaryTier;
  readonly relations: readonly RegisteredName[];
  readonly views: readonly StatedName[];
  readonly reads: readonly StatedName[];
  readonly entryPoints: readonly RoutineName[];
  readonly profile: Profile;
  readonly values: 'plain' | 'digest';
  readonly isolation: 'read committed' | 'serializable';
  readonly stageTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly declared: readonly string[];
  readonly reviews: readonly Review[];
  readonly trustedCode: readonly string[];
}

/** A name as SQL reads it. */
export interface StatedName extends QualifiedName {
  /** The name as written, if SQL reads it differently: `Track` is `track` to SQL. */
  readonly exact?: QualifiedName;
}

export interface RegisteredName extends StatedName {
  readonly volatile: readonly string[];
  readonly bulk: boolean;
}

const OPTIONS: OptionNames<PostgresOptions> = {
  control: true,
  execution: true,
  owner: true,
  boundary: true,
  relations: true,
  reads: true,
  entryPoints: true,
  profile: true,
  values: true,
  isolation: true,
  sessions: true,
  stageTimeoutMs: true,
  lockTimeoutMs: true,
  declared: true,
  reviews: true,
  trustedCode: true,
  views: true,
};
const RELATION: OptionNames<Exclude<PostgresRelationOption, string>> = {
  name: true,
  volatile: true,
  bulk: true,
};
const SESSIONS: OptionNames<SessionOptions> = { max: true, reuse: true };

const PROFILES = ['relation-write', 'row-event', 'net-state'];

/** Checks what can be checked without the database. */
export function readOptions(options: PostgresOptions): Settings {
  checkNames(options);
  const { profile = 'net-state', isolation = 'read committed', boundary = 'server' } = options;
  if (boundary !== 'server' && boundary !== 'managed')
    throw refused(`boundary "${String(boundary)}" is neither "server" nor "managed"`);
  const values = readValuesOption(options.values, refused);
  if (!PROFILES.includes(profile))
    throw refused(`profile "${profile}" is none of ${PROFILES.join(', ')}`);
  if (isolation !== 'read committed' && isolation !== 'serializable') {
    throw refused(
      `isolation "${String(isolation)}" is neither "read committed" nor "serializable"`,
    );
  }
  demandRelations(options.relations, refused);
  const relations = options.relations.map(readRelation);
  refuseTwice(relations);
  return {
    boundary,
    relations,
    profile,
    values,
    isolation,
    views: (options.views ?? []).map(readName),
    reads: (options.reads ?? []).map(readName),
    entryPoints: (options.entryPoints ?? []).map(readRoutine),
    stageTimeoutMs: readDuration(options.stageTimeoutMs ?? 30_000, 'stageTimeoutMs'),
    lockTimeoutMs: readDuration(options.lockTimeoutMs ?? 2000, 'lockTimeoutMs'),
    declared: options.declared ?? [],
    reviews: options.reviews ?? [],
    trustedCode: options.trustedCode ?? [],
  };
}

/** Refuses a relation that is listed twice. */
export function refuseTwice(relations: readonly QualifiedName[]): void {
  const seen = new Set<string>();
  for (const { schema, name } of relations) {
    const id = JSON.stringify([schema, name]);
    if (seen.has(id)) throw refused(`relation "${schema}.${name}" is registered twice`);
    seen.add(id);
  }
}

function checkNames(options: PostgresOptions): void {
  const misnamed =
    misnamedOption(options, OPTIONS) ?? misnamedRelation(options.relations, RELATION);
  if (misnamed !== undefined) throw refused(misnamed);
  const inSessions = misnamedOption(options.sessions ?? {}, SESSIONS);
  if (inSessions !== undefined) throw refused(`sessions: ${inSessions}`);
}

function readRelation(option: PostgresRelationOption): RegisteredName {
  const {
    name,
    volatile = [],
    bulk = false,
  } = typeof option === 'string' ? { name: option } : option;
  return { ...readName(name), volatile: [...new Set(volatile)], bulk };
}

function readName(text: string): StatedName {
  const name = readTarget(text);
  if (name === undefined)
    throw refused(`"${text}" is not a name; write it as SQL does: schema.name`);
  const { exact, folded } = name;
  const isSame = exact.schema === folded.schema && exact.name === folded.name;
  return isSame ? folded : { ...folded, exact };
}

function readRoutine(text: string): RoutineName {
  const name = parseRoutine(text);
  if (name !== undefined) return name;
  throw refused(
    `"${text}" is not a name; write it as SQL does: schema.name or schema.name(type, type)`,
  );
}

function readDuration(value: number, name: string): number {
  if (!Number.isSafeInteger(value) || value < 1)
    throw refused(`${name} must be a whole number of milliseconds from 1 on`);
  return value;
}

/** An error that refuses options or a relation and says what to change. */
export const refused = refusalsOf('postgres');
