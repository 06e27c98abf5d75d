/**
 * How long our servers keep an idle connection. Clients and proxies give up an idle connection
 * sooner; a server that closes first may do so while a call is on its way, which then fails.
 */
export const KEEP_ALIVE_MS = 75_000;
