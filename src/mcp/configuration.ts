/** What one agent may ask for over MCP. */
export interface AgentConfig {
  /**
   * The digest of its bearer token, as `effectmatch mcp --new-token` prints it; several while a
   * token is being replaced. Only HTTP needs it.
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
