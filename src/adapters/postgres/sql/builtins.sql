-- What the boundary takes from the server's own functions, roles, libraries and extensions: lists
-- of names. They come from a review of every function of PostgreSQL 15, 16, 17 and 18.

-- name: dangerous: signals other sessions when the transaction commits
-- Volatile functions that must not be executable, by what they would allow. A volatile function
-- that is neither here nor harmless (of a later server) is treated as dangerous, so an upgrade
-- cannot silently open a route.
select '
  pg_notify
';

-- name: dangerous: writes to the WAL what no table shows, partly even after a rollback
select '
  pg_logical_emit_message
';

-- name: dangerous: changes large objects
select '
  lo_creat lo_create lo_export lo_from_bytea lo_import lo_open lo_put lo_truncate
  lo_truncate64 lo_unlink lowrite
';

-- name: dangerous: changes settings of the session
select '
  set_config setseed
';

-- name: dangerous: runs SQL given as text, which no reading of the statement can see
select '
  cursor_to_xml cursor_to_xmlschema query_to_xml query_to_xml_and_xmlschema query_to_xmlschema
  ts_rewrite ts_stat
';

-- name: dangerous: ends or disturbs other sessions
select '
  pg_cancel_backend pg_terminate_backend pg_log_backend_memory_contexts
';

-- name: dangerous: holds locks beyond the transaction
select '
  pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all
  pg_advisory_unlock_shared pg_try_advisory_lock pg_try_advisory_lock_shared
';

-- name: dangerous: reads or writes files of the server
select '
  pg_ls_archive_statusdir pg_ls_dir pg_ls_logdir pg_ls_logicalmapdir pg_ls_logicalsnapdir
  pg_ls_replslotdir pg_ls_summariesdir pg_ls_tmpdir pg_ls_waldir pg_read_binary_file pg_read_file
  pg_read_file_old pg_stat_file pg_export_snapshot pg_hba_file_rules pg_ident_file_mappings
  pg_show_all_file_settings
';

-- name: dangerous: creates, moves or consumes replication state, which survives a rollback
select '
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
';

-- name: dangerous: acts on the whole server
select '
  pg_backup_start pg_backup_stop pg_create_restore_point pg_log_standby_snapshot pg_promote
  pg_reload_conf pg_rotate_logfile pg_rotate_logfile_old pg_switch_wal pg_wal_replay_pause
  pg_wal_replay_resume
';

-- name: dangerous: resets the counters that the second witness reads
select '
  pg_stat_reset pg_stat_reset_backend_stats pg_stat_reset_replication_slot pg_stat_reset_shared
  pg_stat_reset_single_function_counters pg_stat_reset_single_table_counters
  pg_stat_reset_slru pg_stat_reset_subscription_stats
';

-- name: dangerous: rewrites indexes or catalogues outside any statement
select '
  brin_desummarize_range brin_summarize_new_values brin_summarize_range gin_clean_pending_list
  pg_clear_attribute_stats pg_clear_relation_stats pg_import_system_collations
  pg_restore_attribute_stats pg_restore_relation_stats
';

-- name: harmless
-- Volatile functions that leave nothing behind, or whose effect another privilege controls
-- (sequences).
select '
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
';

-- name: kept from statements
-- Functions that code of the application may call and agent statements may not: they wait, hold
-- locks, draw from sequences, read large objects or whole tables, or force counters out early.
select '
  currval database_to_xml database_to_xml_and_xmlschema database_to_xmlschema lastval lo_close lo_get
  lo_lseek lo_lseek64 lo_tell lo_tell64 loread nextval pg_advisory_xact_lock
  pg_advisory_xact_lock_shared pg_replication_origin_oid pg_sleep pg_sleep_for pg_sleep_until
  pg_stat_force_next_flush pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared schema_to_xml
  schema_to_xml_and_xmlschema schema_to_xmlschema setval table_to_xml table_to_xml_and_xmlschema
  table_to_xmlschema
';

-- name: reviewed
-- Functions that agent statements may call where the server's rights cannot block the others. Each
-- was reviewed in all its overloads: it computes a value from its arguments, reads the clock, the
-- catalogue or a random number, and leaves nothing behind. Functions that read a value as a type
-- run the checks of that type, which the survey judges. The list leaves out functions that run SQL
-- given as text, act on other sessions, files, large objects, sequences, settings or replication,
-- or are for internal use.
select '
  ascii bit_length btrim casefold char_length character_length chr concat concat_ws convert
  convert_from convert_to crc32 crc32c decode encode format initcap is_normalized left length like
  like_escape lower lpad ltrim md5 normalize notlike octet_length overlay parse_ident position
  quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match
  regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat
  replace reverse right rpad rtrim sha224 sha256 sha384 sha512 similar_escape similar_to_escape
  split_part starts_with string_to_array string_to_table strpos substr substring textcat textlen
  to_ascii to_bin to_hex to_oct translate unicode_assigned unistr upper

  abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd
  cosh
  cot cotd degrees div erf erfc exp factorial floor gamma gcd lcm lgamma ln log log10 min_scale mod
  numeric_div_trunc pi pow power radians random random_normal round scale sign sin sind sinh sqrt
  tan tand tanh trim_scale trunc width_bucket

  age clock_timestamp date_add date_bin date_part date_subtract date_trunc extract isfinite
  justify_days justify_hours justify_interval make_date make_interval make_time make_timestamp
  make_timestamptz now overlaps statement_timestamp timeofday timezone to_char to_date to_number
  to_timestamp transaction_timestamp

  array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position
  array_positions array_prepend array_remove array_replace array_reverse array_sample array_shuffle
  array_sort array_to_string array_upper cardinality generate_series generate_subscripts trim_array
  unnest

  array_to_json json_array_elements json_array_elements_text json_array_length json_build_array
  json_build_object json_each json_each_text json_extract_path json_extract_path_text json_object
  json_object_keys json_populate_record json_populate_recordset json_strip_nulls json_to_record
  json_to_recordset json_typeof jsonb_array_elements jsonb_array_elements_text jsonb_array_length
  jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path
  jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys jsonb_path_exists
  jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query jsonb_path_query_array
  jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz jsonb_path_query_tz
  jsonb_populate_record jsonb_populate_record_valid jsonb_populate_recordset jsonb_pretty jsonb_set
  jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof row_to_json
  to_json to_jsonb

  any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp
  cume_dist dense_rank every first_value json_agg json_agg_strict json_object_agg
  json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict jsonb_agg
  jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique
  jsonb_object_agg_unique_strict lag last_value lead max min mode nth_value ntile percent_rank
  percentile_cont percentile_disc range_agg range_intersect_agg rank regr_avgx regr_avgy regr_count
  regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number stddev stddev_pop
  stddev_samp string_agg sum var_pop var_samp variance

  datemultirange daterange int4multirange int4range int8multirange int8range isempty lower_inc
  lower_inf multirange nummultirange numrange range_merge tsmultirange tsrange tstzmultirange
  tstzrange upper_inc upper_inf

  bit_count get_bit get_byte set_bit set_byte enum_first enum_last enum_range gen_random_uuid
  uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 abbrev broadcast family host hostmask
  inet_merge inet_same_family macaddr8_set7bit masklen netmask network set_masklen num_nonnulls
  num_nulls

  area bound_box center diagonal diameter height isclosed ishorizontal isopen isparallel isperp
  isvertical npoints pclose popen radius slope width

  array_to_tsvector get_current_ts_config json_to_tsvector jsonb_to_tsvector numnode
  phraseto_tsquery plainto_tsquery querytree setweight strip to_tsquery to_tsvector ts_delete
  ts_filter ts_headline ts_rank ts_rank_cd tsvector_to_array tsquery_phrase websearch_to_tsquery

  bit bool box bpchar char cidr circle date float4 float8 int2 int4 int8 interval line lseg macaddr
  macaddr8 money name numeric oid path pg_lsn point polygon regclass text time timestamp timestamptz
  timetz varbit varchar xid

  col_description current_database current_schema current_schemas current_setting current_user
  format_type hashtext hashtextextended has_any_column_privilege has_column_privilege
  has_schema_privilege has_table_privilege obj_description pg_backend_pid pg_client_encoding
  pg_collation_for pg_column_size pg_current_snapshot pg_current_xact_id
  pg_current_xact_id_if_assigned pg_get_constraintdef pg_get_expr pg_get_indexdef
  pg_get_serial_sequence pg_get_userbyid pg_get_viewdef pg_size_pretty pg_table_is_visible pg_typeof
  row_security_active session_user shobj_description system_user to_regclass to_regtype
  txid_current txid_current_if_assigned version
';

-- name: trusted extensions
-- Extensions whose native code only computes values. All other extensions must be out of reach.
select '
  btree_gin btree_gist citext cube dict_int dict_xsyn earthdistance fuzzystrmatch hstore
  insert_username intarray isn ltree moddatetime pg_trgm pgcrypto plpgsql seg tsm_system_rows
  tsm_system_time unaccent uuid-ossp
';

-- name: session state
-- Functions of these extensions that change the session, some in ways that a reset does not undo.
select '
  set_limit isn_weak
';

-- name: trusted libraries
-- Preloaded libraries that only observe.
select '
  auto_explain pg_stat_statements
';

-- name: reading roles
-- Predefined roles that only read or monitor. Any other predefined role counts as dangerous.
select '
  pg_database_owner pg_monitor pg_read_all_data pg_read_all_settings pg_read_all_stats
  pg_stat_scan_tables
';
