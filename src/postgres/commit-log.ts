/**
 * Reads the name of the write-ahead log that a session's commits go to: the cluster, and the time
 * its server started. Returns nothing if a crash can lose or tear flushed data.
 */
export const COMMIT_LOG = `select system_identifier || '/' ||
    extract(epoch from pg_catalog.pg_postmaster_start_time())
  from pg_catalog.pg_control_system()
  where pg_catalog.current_setting('fsync') = 'on'
    and pg_catalog.current_setting('full_page_writes') = 'on'`;
