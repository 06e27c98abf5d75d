/** What one agent may ask for, over MCP and over the HTTP API. */
export interface AgentConfig {
  /**
   * The digest of a bearer token, as `effectmatch token new --digest-only` prints it; several while
   * a token is being replaced. Tokens that `effectmatch token new` keeps need no entry here.
   */
  readonly token?: string | readonly string[];
  /** The operations that it may ask for; none unless said. */
  readonly operations?: readonly string[];
  /** The adapters that it may propose SQL for; none unless said. */
  readonly sql?: readonly string[];
  /** The adapters that it may read; none unless said. */
  readonly read?: readonly string[];
  /** The adapters that it may work on in tasks of many calls; none unless said. */
  readonly tasks?: readonly string[];
  /** How often it may call in a minute; 120 unless said otherwise. */
  readonly callsPerMinute?: number;
}
