import { demandRelations, readValuesOption, refusalsOf } from '../../backend/setup.ts';
import { misnamedOption, misnamedRelation, type OptionNames } from '../../contract/options.ts';
import { type QualifiedName, readTarget } from '../../postgres/identifier.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import type { Profile } from '../../protocol/effect.ts';
import type { Review } from './certify/facts.ts';
import { parseRoutine, type RoutineName } from './routine-name.ts';

/** A relation to register: its name as SQL writes it, or with what is special about it. */
export type PostgresRelationOption =
  | string
  | {
      readonly name: string;
      /** Columns that are not compared on rows that an approval names. */
      readonly volatile?: readonly string[];
      /** Statements write many rows at once: recorded per statement instead of per row. */
      readonly bulk?: boolean;
    };

/**
 * What closes the outlets that agent SQL could take. `server`: the server's rights, which a
 * superuser sets once. `managed`: the rights that a role without superuser can set, and for the rest
 * a gate that looks up every name of a statement and reads the application's code.
 */
export type BoundaryTier = 'server' | 'managed';

/** The sessions of the execution login. */
export interface SessionOptions {
  /** How many operations may be held at once; 10 unless told. */
  readonly max?: number;
  /** Whether a session serves several operations, reset in between; true unless told. */
  readonly reuse?: boolean;
}

/** How a PostgreSQL database is reached and what of it is protected. */
export interface PostgresOptions {
  /** Trusted login: surveys, markers, recovery. Never runs agent SQL. */
  readonly control: ConnectionOptions;
  /** Restricted login that runs agent statements. */
  readonly execution: ConnectionOptions;
  /**
   * The role that owns schema `effectmatch`; `effectmatch_owner` unless told. No session logs in as it.
   */
  readonly owner?: string;
  /**
   * What closes outlets; `server` unless told. `managed` is for servers without a superuser, such as
   * those of cloud providers.
   */
  readonly boundary?: BoundaryTier;
  /** The tables that protected operations may write. */
  readonly relations: readonly PostgresRelationOption[];
  /**
   * Views that protected operations may write through. Effects are those on the tables beneath,
   * which are registered.
   */
  readonly views?: readonly string[];
  /** Further tables whose rows an approval may depend on. */
  readonly reads?: readonly string[];
  /**
   * Functions and procedures that agents may call, as SQL names them; with the types of the
   * arguments where several have the name: `billing.pay(integer, numeric)`.
   */
  readonly entryPoints?: readonly string[];
  /** The unit of change; `net-state` unless told. */
  readonly profile?: Profile;
  /** What journal and receipts keep of values; `plain` unless told. */
  readonly values?: 'plain' | 'digest';
  readonly isolation?: 'read committed' | 'serializable';
  readonly sessions?: SessionOptions;
  /** How long an operation may hold its transaction, enforced by the server; 30000 unless told. */
  readonly stageTimeoutMs?: number;
  /** How long a statement may wait for a row that another session holds; 2000 unless told. */
  readonly lockTimeoutMs?: number;
  /**
   * Restrictions of host and network that the database cannot see, as the deployment declares them.
   */
  readonly declared?: readonly string[];
  /**
   * Functions whose text the certification cannot judge and that a person has read, with the digest
   * from the report.
   */
  readonly reviews?: readonly Review[];
  /** Extensions and preloaded libraries with native code that the deployment vouches for. */
  readonly trustedCode?: readonly string[];
}

/** Options that were checked, with everything filled in. */
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
  /** The name as it is written, if SQL reads it differently: `Track` is `track` to SQL. */
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

/** A refusal of options or of a relation, in words that say what to change. */
export const refused = refusalsOf('postgres');
