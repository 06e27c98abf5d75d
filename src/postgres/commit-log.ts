/**
 * Asks a session for the name of the write-ahead log that its commits go to: which cluster it is,
 * and since when its server runs. Null where a crash can lose or tear what was flushed.
 */
export const COMMIT_LOG = `select system_identifier || '/' ||
    extract(epoch from pg_catalog.pg_postmaster_start_time())
  from pg_catalog.pg_control_system()
  where pg_catalog.current_setting('fsync') = 'on'
    and pg_catalog.current_setting('full_page_writes') = 'on'`;
