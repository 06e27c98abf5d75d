import type { OptionNames } from '../../contract/options.ts';
import type { ReadBackResult } from '../../http/findings.ts';
import type { Plan, PlannedEffect } from '../../http/plan.ts';
import type { TargetColumns } from '../../http/registered.ts';
import type { Profile } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Row, Value } from '../../protocol/value.ts';
import type { UpstreamServer } from '../../upstream/server.ts';

export type { Plan, PlannedEffect, ReadBackResult, UpstreamServer };

/** A tool of the server. It is called only while it is defined as a person has judged it. */
export interface ClassifiedTool {
  readonly name: string;
  /** The digest that `effectmatch mcp --classify` prints. */
  readonly definition: string;
}

/** A registered collection behind the server: its fields, and those that name an entry. */
export interface McpTarget extends TargetColumns {
  /** How one entry is read, for requirements and watched rows. */
  readonly read?: {
    readonly tool: ClassifiedTool;
    readonly arguments: (key: Row) => Row;
    /** The entry's columns, from the answer; null if there is none. */
    readonly row: (answer: Value) => Row | null;
  };
}

/** One call of a tool that reads. `key` is the occurrence. */
export interface ReadingCall {
  readonly tool: ClassifiedTool;
  readonly arguments: (plan: Plan, key: string) => Row;
}

/** How the outcome is established, by tools that only read. */
export interface McpReadBack {
  /** The tools to call, each under a name. All of them must answer. */
  readonly reads: Readonly<Record<string, ReadingCall>>;
  /**
   * What the call did, from the answers by the names of `reads`; undefined if they do not say so
   * (yet), which proves nothing.
   */
  readonly found: (
    answers: Readonly<Record<string, Value>>,
    plan: Plan,
    key: string,
  ) => ReadBackResult | undefined;
  /** Registered targets in which everything that the call did is found. It has to be all of them. */
  readonly covers: readonly string[];
  /** How long to wait before asking again while nothing is found. One look unless said. */
  readonly waitsMs?: readonly number[];
}

/** One tool that writes, called once for each license. */
export interface McpOperation {
  readonly tool: ClassifiedTool;
  /** Checks the agent's input completely and returns what may be used of it, or throws. */
  readonly input: (untrusted: Value) => Value;
  /** The arguments of the call; the checked input unless said. */
  readonly arguments?: (input: Value) => Row;
  /** An argument that carries the occurrence, if the tool has one: a key, a reference, a note. */
  readonly keyArgument?: string;
  readonly readBack: McpReadBack;
  /** Columns whose values the server assigns, as `target.column`. */
  readonly assigns?: readonly string[];
}

/** An MCP server whose tools write where nothing can be held back. */
export interface OpaqueMcpOptions {
  readonly server: UpstreamServer;
  /** Which account or data this is, in your words: a license for one does not fit another. */
  readonly backend: string;
  readonly targets: Readonly<Record<string, McpTarget>>;
  readonly operations: Readonly<Record<string, McpOperation>>;
  /** `row-event` by default. */
  readonly profile?: Exclude<Profile, 'registered-fields'>;
  readonly values?: Registration['values'];
}

/** Every option, by name. */
export const OPTIONS: OptionNames<OpaqueMcpOptions> = {
  server: true,
  backend: true,
  targets: true,
  operations: true,
  profile: true,
  values: true,
};
