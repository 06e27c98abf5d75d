/**
 * SQL functions that agent SQL, and triggers and views it sets off, may call: built in, and without
 * any effect outside the statement. A list of what is allowed rather than of what is not, so that a
 * function of a later SQLite, of an extension or of a virtual table stays closed until someone has
 * looked at it. Left out on purpose: `load_extension`, `fts3_tokenizer` and `sqlite_log` reach
 * outside the database, `optimize` and the other full-text functions can write. `changes`,
 * `last_insert_rowid` and `total_changes` tell what the connection did last, which before the first
 * write of an action is of an earlier one; what comes of it is observed like everything else.
 */
export const ALLOWED_FUNCTIONS: ReadonlySet<string> = new Set(
  `-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling changes char coalesce concat concat_ws cos cosh
  count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
  format glob group_concat hex if ifnull iif instr json json_array json_array_insert json_array_length
  json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty
  json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract
  jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
  julianday lag last_insert_rowid last_value lead length like likelihood likely ln log log10 log2 lower ltrim max median
  min mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont percentile_disc pi pow power
  printf quote radians random randomblob rank replace round row_number rtrim sign sin sinh sqlite_source_id
  sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total total_changes trim
  trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob`.split(/\s+/),
);
