/** Splits a text into words. */
function words(list: string): readonly string[] {
  return list.trim().split(/\s+/);
}

/**
 * Built-in functions that must not be executable, by what they would allow. The lists come from a
 * review of every volatile function of PostgreSQL 15, 16, 17 and 18; {@link HARMLESS} is the other
 * half. A volatile built-in in neither list (of a later server) is treated as dangerous, so an
 * upgrade cannot silently open a route.
 */
export const DANGEROUS: Readonly<Record<string, readonly string[]>> = {
  'signals other sessions when the transaction commits': words('pg_notify'),
  'writes to the WAL what no table shows, partly even after a rollback': words(`
    pg_logical_emit_message
  `),
  'changes large objects': words(`
    lo_creat lo_create lo_export lo_from_bytea lo_import lo_open lo_put lo_truncate
    lo_truncate64 lo_unlink lowrite
  `),
  'changes settings of the session': words('set_config setseed'),
  'runs SQL given as text, which no reading of the statement can see': words(`
    cursor_to_xml cursor_to_xmlschema query_to_xml query_to_xml_and_xmlschema query_to_xmlschema
    ts_rewrite ts_stat
  `),
  'ends or disturbs other sessions': words(`
    pg_cancel_backend pg_terminate_backend pg_log_backend_memory_contexts
  `),
  'holds locks beyond the transaction': words(`
    pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all
    pg_advisory_unlock_shared pg_try_advisory_lock pg_try_advisory_lock_shared
  `),
  'reads or writes files of the server': words(`
    pg_ls_archive_statusdir pg_ls_dir pg_ls_logdir pg_ls_logicalmapdir pg_ls_logicalsnapdir
    pg_ls_replslotdir pg_ls_summariesdir pg_ls_tmpdir pg_ls_waldir pg_read_binary_file pg_read_file
    pg_read_file_old pg_stat_file pg_export_snapshot pg_hba_file_rules pg_ident_file_mappings
    pg_show_all_file_settings
  `),
  'creates, moves or consumes replication state, which survives a rollback': words(`
    pg_copy_logical_replication_slot pg_copy_physical_replication_slot
    pg_create_logical_replication_slot pg_create_physical_replication_slot
    pg_drop_replication_slot pg_logical_slot_get_binary_changes pg_logical_slot_get_changes
    pg_logical_slot_peek_binary_changes pg_logical_slot_peek_changes
    pg_replication_origin_advance pg_replication_origin_create pg_replication_origin_drop
    pg_replication_origin_progress pg_replication_origin_session_is_setup
    pg_replication_origin_session_progress pg_replication_origin_session_reset
    pg_replication_origin_session_setup pg_replication_origin_xact_reset
    pg_replication_origin_xact_setup pg_replication_slot_advance
    pg_show_replication_origin_status pg_sync_replication_slots
  `),
  'acts on the whole server': words(`
    pg_backup_start pg_backup_stop pg_create_restore_point pg_log_standby_snapshot pg_promote
    pg_reload_conf pg_rotate_logfile pg_rotate_logfile_old pg_switch_wal pg_wal_replay_pause
    pg_wal_replay_resume
  `),
  'resets the counters that the second witness reads': words(`
    pg_stat_reset pg_stat_reset_backend_stats pg_stat_reset_replication_slot pg_stat_reset_shared
    pg_stat_reset_single_function_counters pg_stat_reset_single_table_counters
    pg_stat_reset_slru pg_stat_reset_subscription_stats
  `),
  'rewrites indexes or catalogues outside any statement': words(`
    brin_desummarize_range brin_summarize_new_values brin_summarize_range gin_clean_pending_list
    pg_clear_attribute_stats pg_clear_relation_stats pg_import_system_collations
    pg_restore_attribute_stats pg_restore_relation_stats
  `),
};

/**
 * Volatile built-ins that leave nothing behind, or whose effect another privilege controls
 * (sequences).
 */
const HARMLESS = new Set(
  words(`
    amvalidate array_sample array_shuffle clock_timestamp current_query currtid2 currval
    gen_random_uuid lastval lo_close lo_get lo_lseek lo_lseek64 lo_tell lo_tell64 loread nextval
    pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_available_wal_summaries pg_blocking_pids
    pg_collation_actual_version pg_control_checkpoint pg_control_init pg_control_recovery
    pg_control_system pg_current_logfile pg_current_wal_flush_lsn pg_current_wal_insert_lsn
    pg_current_wal_lsn pg_database_collation_actual_version pg_database_size
    pg_extension_config_dump pg_get_aios pg_get_backend_memory_contexts pg_get_loaded_modules
    pg_get_multixact_members pg_get_sequence_data pg_get_shmem_allocations
    pg_get_shmem_allocations_numa pg_get_wait_events pg_get_wal_replay_pause_state
    pg_get_wal_resource_managers pg_get_wal_summarizer_state pg_indexes_size pg_is_in_recovery
    pg_is_wal_replay_paused pg_isolation_test_session_is_blocked pg_jit_available
    pg_last_committed_xact pg_last_wal_receive_lsn pg_last_wal_replay_lsn
    pg_last_xact_replay_timestamp pg_lock_status pg_nextoid pg_notification_queue_usage
    pg_partition_ancestors pg_partition_tree pg_prepared_xact pg_relation_size
    pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_sleep pg_sleep_for pg_sleep_until
    pg_stat_clear_snapshot pg_stat_force_next_flush pg_stat_have_stats
    pg_stop_making_pinned_objects pg_table_size pg_tablespace_size pg_total_relation_size
    pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared pg_wal_summary_contents
    pg_xact_commit_timestamp pg_xact_commit_timestamp_origin pg_xact_status plpgsql_validator
    random random_normal setval timeofday txid_status uuidv4 uuidv7
  `),
);

/**
 * Families of volatile built-ins that only read counters, or that work only while a cluster is
 * being upgraded.
 */
const HARMLESS_FAMILIES = /^(pg_stat_get_|binary_upgrade_)/;

const dangers = new Map(
  Object.entries(DANGEROUS).flatMap(([why, names]) => names.map((name) => [name, why] as const)),
);

/** Why a volatile built-in must not be executable; undefined if it may be. */
export function dangerOf(name: string): string | undefined {
  if (HARMLESS.has(name) || HARMLESS_FAMILIES.test(name)) return undefined;
  return dangers.get(name) ?? 'is volatile and unknown to this release';
}

/** Whether this is the name of a built-in that must not be executable. */
export function isDangerous(name: string): boolean {
  return dangers.has(name);
}

/** Extensions whose native code only computes values. All other extensions must be out of reach. */
export const TRUSTED_EXTENSIONS: ReadonlySet<string> = new Set(
  words(`
    btree_gin btree_gist citext cube dict_int dict_xsyn earthdistance fuzzystrmatch hstore
    insert_username intarray isn ltree moddatetime pg_trgm pgcrypto plpgsql seg tsm_system_rows
    tsm_system_time unaccent uuid-ossp
  `),
);

/**
 * Functions of these extensions that change the session, some in ways that a reset does not undo.
 */
export const SESSION_STATE: ReadonlySet<string> = new Set(words('set_limit isn_weak'));

/**
 * What a function does that an aggregate or an operator calls, if neither a right nor the name in a
 * statement stops it.
 */
export function describeUnseen(name: string): string | undefined {
  if (name === 'setval') return 'moves a sequence';
  return SESSION_STATE.has(name) ? 'changes the session' : undefined;
}

/** Preloaded libraries that only observe. */
export const TRUSTED_LIBRARIES: ReadonlySet<string> = new Set(
  words('auto_explain pg_stat_statements'),
);

/** Predefined roles that only read or monitor. Any other predefined role counts as dangerous. */
export const READING_ROLES: ReadonlySet<string> = new Set(
  words(`
    pg_database_owner pg_monitor pg_read_all_data pg_read_all_settings pg_read_all_stats
    pg_stat_scan_tables
  `),
);

/**
 * Settings that affect speed, logging, limits or display, but not what is written, who may write
 * it, or how durable it is. The trusted functions pin the display formats.
 */
const HARMLESS_SETTINGS =
  /^(application_name|backend_flush_after|bytea_output|client_encoding|client_min_messages|commit_(delay|siblings)|constraint_exclusion|cpu_.*|cursor_tuple_fraction|datestyle|deadlock_timeout|debug_.*|default_statistics_target|effective_.*|enable_.*|extra_float_digits|force_parallel_mode|from_collapse_limit|geqo.*|gin_.*|hash_mem_multiplier|icu_validation_level|idle_.*timeout|intervalstyle|jit.*|join_collapse_limit|lc_.*|lock_timeout|log_.*|logical_decoding_work_mem|maintenance_.*|max_parallel_.*|max_stack_depth|min_parallel_.*|parallel_.*|plan_cache_mode|random_page_cost|recursive_worktable_factor|seq_page_cost|statement_timeout|stats_fetch_consistency|tcp_.*|temp_buffers|temp_file_limit|timezone.*|trace_.*|track_(activities|functions|io_timing|wal_io_timing)|transaction_timeout|vacuum_.*|wal_.*|work_mem|xmlbinary|xmloption)$/i;

/** Whether a setting stored on a role, a database or a function is acceptable. */
export function isHarmlessSetting(name: string): boolean {
  return HARMLESS_SETTINGS.test(name);
}
