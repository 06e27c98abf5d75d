import type { UpstreamServer } from '../upstream/server.ts';

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
  /** The upstream servers whose classified tools it is offered; none unless said. */
  readonly upstreams?: readonly string[];
  /** How often it may call in a minute; 120 unless said otherwise. */
  readonly callsPerMinute?: number;
}

/**
 * Another MCP server, which agents reach only through this one. In its command `{folder}` is the
 * private copy of `files`.
 */
export interface UpstreamConfig extends UpstreamServer {
  /** What each of its tools does, as a person has judged it. Any other tool is refused. */
  readonly tools: Readonly<Record<string, UpstreamTool>>;
  /** The server works on a private copy of this folder, and what it changed there is asked for. */
  readonly files?: {
    /** An adapter made by `files()`. */
    readonly adapter: string;
    /** The folder that this adapter protects. */
    readonly root: string;
  };
}

/**
 * What a tool of an upstream server does. `definition` is the digest that `effectmatch mcp
 * --classify` prints: a tool whose definition changed since is refused.
 */
export type UpstreamTool =
  /** It only reads, and is passed through. */
  | { readonly read: string }
  /** It writes: calls of it ask for the operation of this name, with its arguments as the input. */
  | { readonly write: string; readonly operation: string }
  /** It writes: calls of it ask for what this action would do, when it is rehearsed. */
  | {
      readonly write: string;
      readonly adapter: string;
      // biome-ignore lint/suspicious/noExplicitAny: each tool has its own arguments.
      readonly action: (input: any) => unknown;
    }
  /** It writes to the private copy of `files`. */
  | { readonly write: string; readonly files: true }
  | 'refused';
