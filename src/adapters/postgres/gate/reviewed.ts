/**
 * Built-in functions that agent statements may call where the server's rights cannot block the
 * others. Each was reviewed for PostgreSQL 15 to 18, in all its overloads: it computes a value from
 * its arguments, reads the clock, the catalogue or a random number, and leaves nothing behind.
 * Functions that read a value as a type run the checks of that type, which the survey judges. The
 * list leaves out functions that run SQL given as text, act on other sessions, files, large
 * objects, sequences, settings or replication, or are for internal use.
 */
const REVIEWED = `
  ascii bit_length btrim casefold char_length character_length chr concat concat_ws convert
  convert_from convert_to crc32 crc32c decode encode format initcap is_normalized left length like
  like_escape lower lpad ltrim md5 normalize notlike octet_length overlay parse_ident position
  quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match
  regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat
  replace reverse right rpad rtrim sha224 sha256 sha384 sha512 similar_escape similar_to_escape
  split_part starts_with string_to_array string_to_table strpos substr substring textcat textlen
  to_ascii to_bin to_hex to_oct translate unicode_assigned unistr upper

  abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh
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
`;

/** The names of the reviewed built-in functions. */
export const REVIEWED_FUNCTIONS: ReadonlySet<string> = new Set(REVIEWED.trim().split(/\s+/));

/** Sampling methods that only choose rows. */
export const REVIEWED_SAMPLES: ReadonlySet<string> = new Set(['bernoulli', 'system']);
