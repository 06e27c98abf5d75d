import { SQL } from '../sql.ts';

/** The words of a list in `../sql/builtins.sql`, which says what each list is for. */
function list(name: string): ReadonlySet<string> {
  return new Set(
    SQL.builtins
      .get(name)
      .match(/[\w-]+/g)
      ?.slice(1),
  );
}

const DANGEROUS = 'dangerous: ';

/** Built-in functions that must not be executable, by what they would allow. */
export const DANGERS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  SQL.builtins.names
    .filter((name) => name.startsWith(DANGEROUS))
    .map((name) => [name.slice(DANGEROUS.length), list(name)]),
);

const HARMLESS = list('harmless');

/**
 * Families of volatile built-ins that only read counters, or that work only while a cluster is
 * being upgraded.
 */
const HARMLESS_FAMILIES = /^(pg_stat_get_|binary_upgrade_)/;

/** Why a volatile built-in must not be executable; undefined if it may be. */
export function dangerOf(name: string): string | undefined {
  if (HARMLESS.has(name) || HARMLESS_FAMILIES.test(name)) return undefined;
  return knownDanger(name) ?? 'is volatile and unknown to this release';
}

/** The same for a name that need not be one of the server's functions. */
export function knownDanger(name: string): string | undefined {
  for (const [why, names] of DANGERS) if (names.has(name)) return why;
  return undefined;
}

const KEPT_FROM_STATEMENTS = list('kept from statements');

/** Whether a function of the server acts outside the transaction, or runs text as SQL. */
export function actsOutside(name: string): boolean {
  const isListed = KEPT_FROM_STATEMENTS.has(name) || knownDanger(name) !== undefined;
  return isListed || /^(?:binary_upgrade|pg_file)_/.test(name);
}

export const REVIEWED_FUNCTIONS = list('reviewed');
export const TRUSTED_EXTENSIONS = list('trusted extensions');
export const SESSION_STATE = list('session state');
export const TRUSTED_LIBRARIES = list('trusted libraries');
export const READING_ROLES = list('reading roles');

/**
 * What a function does that an aggregate or an operator calls, if neither a right nor the name in a
 * statement stops it.
 */
export function describeUnseen(name: string): string | undefined {
  if (name === 'setval') return 'moves a sequence';
  return SESSION_STATE.has(name) ? 'changes the session' : undefined;
}

/**
 * Settings that affect speed, logging, limits or display, but not what is written, who may write
 * it, or how durable it is. The trusted functions pin the display formats.
 */
export const HARMLESS_SETTINGS =
  /^(application_name|backend_flush_after|bytea_output|client_encoding|client_min_messages|commit_(delay|siblings)|constraint_exclusion|cpu_.*|cursor_tuple_fraction|datestyle|deadlock_timeout|debug_.*|default_statistics_target|effective_.*|enable_.*|extra_float_digits|force_parallel_mode|from_collapse_limit|geqo.*|gin_.*|hash_mem_multiplier|icu_validation_level|idle_.*timeout|intervalstyle|jit.*|join_collapse_limit|lc_.*|lock_timeout|log_.*|logical_decoding_work_mem|maintenance_.*|max_parallel_.*|max_stack_depth|min_parallel_.*|parallel_.*|plan_cache_mode|random_page_cost|recursive_worktable_factor|seq_page_cost|statement_timeout|stats_fetch_consistency|tcp_.*|temp_buffers|temp_file_limit|timezone.*|trace_.*|track_(activities|functions|io_timing|wal_io_timing)|transaction_timeout|vacuum_.*|wal_.*|work_mem|xmlbinary|xmloption)$/i;

/** Whether a setting stored on a role, a database or a function is acceptable. */
export function isHarmlessSetting(name: string): boolean {
  return HARMLESS_SETTINGS.test(name);
}
