import type { OptionNames } from '../../contract/options.ts';
import type { RequestParts } from '../../http/content.ts';
import type { ReadBackResult } from '../../http/findings.ts';
import type { ServiceOptions } from '../../http/gateway.ts';
import type { Plan, PlannedEffect } from '../../http/plan.ts';
import type { TargetColumns } from '../../http/registered.ts';
import type { ChangeRecord, Profile, TargetCount } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Row, Value } from '../../protocol/value.ts';

/** A registered collection of the service: its fields, and those that identify an entry. */
export interface TargetOptions extends TargetColumns {
  /** How to read one entry, for requirements and watched rows. 404 means that there is none. */
  readonly read?: {
    /** The path, with `{column}` for a key column. */
    readonly path: string;
    /** Extracts the entry's columns from the response. */
    readonly row: (body: Value, headers: Readonly<Record<string, string>>) => Row;
  };
}

/** How to establish the outcome, with requests that are independent of the one that was sent. */
export interface ReadBackOptions {
  /** The path, with `{key}` for the idempotency key and other names for `parameters`. */
  readonly path: string;
  readonly parameters?: (plan: Plan) => Readonly<Record<string, Value>>;
  /**
   * What the request did; undefined if the answer does not show it (yet). 404 means the same and
   * proves nothing.
   */
  readonly found: (body: Value, plan: Plan) => ReadBackResult | undefined;
  /** A second source that counts what the request did. It must agree. */
  readonly witness?: {
    readonly path: string;
    readonly counts: (body: Value) => readonly TargetCount[] | undefined;
  };
  /**
   * The registered collections in which everything that the request did can be found. This must be
   * all of them.
   */
  readonly covers: readonly string[];
  /**
   * How long to wait before each further look while nothing is found. The request is not sent
   * again. Default: only one look.
   */
  readonly waitsMs?: readonly number[];
}

/** What every operation declares. */
export interface HttpOperation {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path under the service's URL, with `{name}` for `parameters`. */
  readonly path: string;
  readonly readBack: ReadBackOptions;
  /**
   * Columns whose values the service assigns, as `target.column`. They can be approved as
   * `generated`.
   */
  readonly assigns?: readonly string[];
}

/** One operation of a MEDIATED service. */
export interface MediatedOperation extends HttpOperation {
  /**
   * The effects of this operation: exactly these kinds, each as often as listed. No two operations
   * may list the same effects.
   */
  readonly effects: readonly {
    readonly op: 'insert' | 'update' | 'delete';
    readonly target: string;
  }[];
  /** The header for the occurrence. */
  readonly idempotency: { readonly header: string };
  /** Sends the required value of this column as `If-Match`. An approval without it is refused. */
  readonly ifMatch?: { readonly target: string; readonly column: string };
  /**
   * Derives the request. It must be deterministic: admission compares requests from reordered
   * copies.
   */
  readonly request: (plan: Plan) => RequestParts;
  /**
   * A harmless instance for admission. It is built twice and compared, sent without the credential,
   * which must be refused, and sent twice with one fixed key, which must not act twice. At most one
   * such entry ever exists.
   */
  readonly sample: Plan['effects'];
  /**
   * The path of fields in the response to `sample` that names what it made, for example `['id']`.
   */
  readonly identifier: readonly string[];
}

/**
 * One operation of an OPAQUE service. The agent says what it wants, within what `input` accepts.
 */
export interface OpaqueOperation extends HttpOperation {
  /**
   * Checks all of the agent's input and returns what may be used. Throws if it must not be sent.
   */
  readonly input: (untrusted: Value) => Value;
  /** The header for the occurrence, if the service accepts one. */
  readonly idempotency?: { readonly header: string };
  readonly request: (input: Value) => RequestParts;
}

/** The options that every service has. */
export interface HttpOptions {
  readonly service: ServiceOptions;
  readonly targets: Readonly<Record<string, TargetOptions>>;
  /** The unit of change. Default: `row-event`. */
  readonly profile?: Exclude<Profile, 'registered-fields'>;
  readonly values?: Registration['values'];
}

export type { Plan, PlannedEffect, ReadBackResult, RequestParts, ServiceOptions };

/** A service whose requests are derived only from approvals. */
export interface MediatedOptions extends HttpOptions {
  readonly operations: Readonly<Record<string, MediatedOperation>>;
}

/** A service whose requests are constrained, and compared afterwards. */
export interface OpaqueOptions extends HttpOptions {
  readonly operations: Readonly<Record<string, OpaqueOperation>>;
}

/** What a draft would change if it were published now, and the version it was made on. */
export interface DraftContent {
  readonly records: readonly ChangeRecord[];
  /**
   * The version of the state when the draft was made, and now. If they differ, nothing may be
   * published.
   */
  readonly base: { readonly before: string; readonly now: string };
}

/**
 * A service that keeps drafts. It is PROMOTABLE if it keeps three promises. A draft has no effect
 * until it is published. The first entry under a publication key, published or void, is final. A
 * draft is published only while the state is the one that it was made on.
 */
export interface DraftOptions extends HttpOptions {
  readonly draft: {
    /** Checks everything that an agent asks for. Throws if it must not be drafted. */
    readonly input: (untrusted: Value) => Value;
    /** Creates a draft. `id` is the path of fields in the response that names it. */
    readonly create: {
      readonly path: string;
      readonly request: (input: Value) => RequestParts;
      readonly id: readonly string[];
    };
    /** The path for reading and deleting the draft, with `{id}` for the draft. */
    readonly path: string;
    readonly content: (body: Value) => DraftContent;
  };
  readonly publication: {
    /**
     * The path, with `{key}` for the occurrence. PUT publishes or voids: it answers 201 if it did,
     * or 200 with the existing entry. GET reads and DELETE forgets.
     */
    readonly path: string;
    /** The service must store `metadata` unread and return it. */
    readonly publish: (draft: string, metadata: string) => Value;
    readonly void: (metadata: string) => Value;
    /** Reads the entry under the key from a response to PUT or GET. */
    readonly standing: (body: Value) => {
      readonly disposition: 'published' | 'void';
      readonly metadata: string;
    };
    /**
     * Statuses with which the service says that it did not and never will publish this draft under
     * this key.
     */
    readonly refusals: readonly number[];
  };
  /** A control object for admission, which no agent can name. */
  readonly probe: {
    readonly input: (token: string) => Value;
    /** The target that `content` reports for it. It must not be registered. */
    readonly target: string;
    readonly path: string;
    /** Whether the control object was published, from a GET of `path`. */
    readonly durable: (body: Value, token: string) => boolean;
  };
}

const COMMON: OptionNames<HttpOptions> = {
  service: true,
  targets: true,
  profile: true,
  values: true,
};

/** The options of a service with operations. */
export const OPERATION_OPTIONS: OptionNames<MediatedOptions> = { ...COMMON, operations: true };

/** The options of a service with drafts. */
export const DRAFT_OPTIONS: OptionNames<DraftOptions> = {
  ...COMMON,
  draft: true,
  publication: true,
  probe: true,
};
