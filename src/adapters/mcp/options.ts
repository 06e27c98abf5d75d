import type { OptionNames } from '../../contract/options.ts';
import type { ReadBackResult } from '../../http/findings.ts';
import type { Plan, PlannedEffect } from '../../http/plan.ts';
import type { TargetColumns } from '../../http/registered.ts';
import type { Profile } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Row, Value } from '../../protocol/value.ts';
import type { UpstreamServer } from '../../upstream/server.ts';

export type { Plan, PlannedEffect, UpstreamServer };

/** A tool of the server. It is called only while its definition is the one that a person judged. */
export interface ClassifiedTool {
  readonly name: string;
  /** The digest that `effectmatch mcp --classify` prints. */
  readonly definition: string;
}

/** A registered collection behind the server: its fields, and those that identify an entry. */
export interface McpTarget extends TargetColumns {
  /** How to read one entry, for requirements and watched rows. */
  readonly read?: {
    readonly tool: ClassifiedTool;
    readonly arguments: (key: Row) => Row;
    /** Extracts the entry's columns from the answer; null if there is none. */
    readonly row: (answer: Value) => Row | null;
  };
}

/** One call of a read-only tool. `key` is the occurrence. */
export interface ReadingCall {
  readonly tool: ClassifiedTool;
  readonly arguments: (plan: Plan, key: string) => Row;
}

/** What read-only tools found out about the call. */
export type FoundByTools = Omit<ReadBackResult, 'refused'>;

/** How to establish the outcome, with read-only tools. */
export interface McpReadBack {
  /** The tools to call, by name. All of them must answer. */
  readonly reads: Readonly<Record<string, ReadingCall>>;
  /**
   * What the call did, from the answers by their names in `reads`; undefined if they do not show it
   * (yet), which proves nothing. It cannot report a refusal, because the call was made.
   */
  readonly found: (
    answers: Readonly<Record<string, Value>>,
    plan: Plan,
    key: string,
  ) => FoundByTools | undefined;
  /**
   * The registered targets in which everything that the call did can be found. This must be all of
   * them.
   */
  readonly covers: readonly string[];
  /** How long to wait before each further look while nothing is found. Default: only one look. */
  readonly waitsMs?: readonly number[];
}

/** One tool that writes. It is called once for each license. */
export interface McpOperation {
  readonly tool: ClassifiedTool;
  /** Checks all of the agent's input and returns what may be used, or throws. */
  readonly input: (untrusted: Value) => Value;
  /** The arguments of the call. Default: the checked input. */
  readonly arguments?: (input: Value) => Row;
  /** An argument for the occurrence, if the tool has one: a key, a reference or a note. */
  readonly keyArgument?: string;
  readonly readBack: McpReadBack;
  /** Columns whose values the server assigns, as `target.column`. */
  readonly assigns?: readonly string[];
}

/** An MCP server with tools whose writes cannot be held back. */
export interface OpaqueMcpOptions {
  readonly server: UpstreamServer;
  /** The account or data, in your own words. A license for one backend is not valid for another. */
  readonly backend: string;
  readonly targets: Readonly<Record<string, McpTarget>>;
  readonly operations: Readonly<Record<string, McpOperation>>;
  /** The unit of change. Default: `row-event`. */
  readonly profile?: Exclude<Profile, 'registered-fields'>;
  readonly values?: Registration['values'];
}

/** The names of all options. */
export const OPTIONS: OptionNames<OpaqueMcpOptions> = {
  server: true,
  backend: true,
  targets: true,
  operations: true,
  profile: true,
  values: true,
};
