import type { UpstreamServer } from '../upstream/server.ts';

/** What one agent may do, over MCP and over the HTTP API. */
export interface AgentConfig {
  /**
   * The digest of a bearer token, as printed by `effectmatch token new --digest-only`; list several
   * while you replace a token. Tokens that `effectmatch token new` stores need no entry here.
   */
  readonly token?: string | readonly string[];
  /** The operations that it may ask for. None by default. */
  readonly operations?: readonly string[];
  /** The adapters that it may propose SQL for. None by default. */
  readonly sql?: readonly string[];
  /** The adapters that it may read. None by default. */
  readonly read?: readonly string[];
  /** The adapters on which it may open tasks of many calls. None by default. */
  readonly tasks?: readonly string[];
  /** The upstream servers whose classified tools it can call. None by default. */
  readonly upstreams?: readonly string[];
  /** How many calls it may make per minute. Defaults to 120. */
  readonly callsPerMinute?: number;
}

/**
 * Another MCP server, which agents reach only through this one. In its command, `{folder}` stands
 * for the private copy of `files`.
 */
export interface UpstreamConfig extends UpstreamServer {
  /** What each tool does, as judged by a person. All other tools are refused. */
  readonly tools: Readonly<Record<string, UpstreamTool>>;
  /** Gives the server a private copy of this folder. Its changes to the copy become a request. */
  readonly files?: {
    /** An adapter made by `files()`. */
    readonly adapter: string;
    /** The folder that the adapter protects. */
    readonly root: string;
  };
}

/**
 * What a tool of an upstream server does. `read` and `write` hold the digest that `effectmatch mcp
 * --classify` prints. If the tool's definition changes, the tool is refused.
 */
export type UpstreamTool =
  /** Only reads. Calls are passed through. */
  | { readonly read: string }
  /** Writes. A call asks for this operation, with the call's arguments as input. */
  | { readonly write: string; readonly operation: string }
  /** Writes. A call asks for the effects of this action, which is rehearsed first. */
  | {
      readonly write: string;
      readonly adapter: string;
      // biome-ignore lint/suspicious/noExplicitAny: each tool has its own arguments.
      readonly action: (input: any) => unknown;
    }
  /** Writes to the private copy of `files`. */
  | { readonly write: string; readonly files: true }
  | 'refused';
