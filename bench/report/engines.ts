/** The backends of the crash tests, by the names that a reader knows. */
const ENGINES: { readonly [backend: string]: string } = {
  'sqlite-wal': 'SQLite (WAL)',
  'sqlite-delete': 'SQLite (rollback)',
  snapshot: 'JSON state',
  postgres: 'PostgreSQL (SQLite ledger)',
  'postgres-ledger': 'PostgreSQL (own ledger)',
  mysql: 'MariaDB',
  'http-mediated': 'HTTP (mediated)',
  'http-opaque': 'HTTP (opaque)',
};

export function engineName(backend: string): string {
  return ENGINES[backend] ?? backend;
}
