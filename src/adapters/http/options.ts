import type { OptionNames } from '../../contract/options.ts';
import type { RequestParts } from '../../http/content.ts';
import type { ReadBackResult } from '../../http/findings.ts';
import type { ServiceOptions } from '../../http/gateway.ts';
import type { Plan, PlannedEffect } from '../../http/plan.ts';
import type { TargetColumns } from '../../http/registered.ts';
import type { ChangeRecord, Profile, TargetCount } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Row, Value } from '../../protocol/value.ts';

/** A registered collection of the service: its fields, and those that name an entry. */
export interface TargetOptions extends TargetColumns {
  /** How one entry is read, for requirements and watched rows. 404 means that there is none. */
  readonly read?: {
    /** `{column}` stands for a key column. */
    readonly path: string;
    /** The entry's columns, from the response. */
    readonly row: (body: Value, headers: Readonly<Record<string, string>>) => Row;
  };
}

/** How the outcome is established, by requests that share nothing with the one that was sent. */
export interface ReadBackOptions {
  /** `{key}` stands for the idempotency key, other names for `parameters`. */
  readonly path: string;
  readonly parameters?: (plan: Plan) => Readonly<Record<string, Value>>;
  /**
   * What the request did; undefined where the answer does not say so (yet). 404 means the same: it
   * proves nothing.
   */
  readonly found: (body: Value, plan: Plan) => ReadBackResult | undefined;
  /** A second book that counts what the request did. It must agree. */
  readonly witness?: {
    readonly path: string;
    readonly counts: (body: Value) => readonly TargetCount[] | undefined;
  };
  /**
   * Registered collections in which everything that the request did is found. It has to be all of
   * them.
   */
  readonly covers: readonly string[];
  /**
   * How long to wait before asking again while nothing is found; nothing is sent again. One look
   * unless said.
   */
  readonly waitsMs?: readonly number[];
}

/** What every operation says. */
export interface HttpOperation {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Under the service's URL, with `{name}` for what `parameters` fill in. */
  readonly path: string;
  readonly readBack: ReadBackOptions;
  /**
   * Columns whose values the service assigns, as `target.column`: they may be approved as
   * `generated`.
   */
  readonly assigns?: readonly string[];
}

/** One operation of a MEDIATED service. */
export interface MediatedOperation extends HttpOperation {
  /**
   * Which outcomes it is for: exactly these kinds of effects, so many times. No two operations have
   * the same.
   */
  readonly effects: readonly {
    readonly op: 'insert' | 'update' | 'delete';
    readonly target: string;
  }[];
  /** The header that carries the occurrence. */
  readonly idempotency: { readonly header: string };
  /**
   * Sends what a requirement says about this column as `If-Match`; an approval without it is
   * refused.
   */
  readonly ifMatch?: { readonly target: string; readonly column: string };
  /** Derives the request. Deterministic: admission builds it from reordered copies and compares. */
  readonly request: (plan: Plan) => RequestParts;
  /**
   * A harmless instance, for admission: it is built twice and compared, sent without the
   * credential, which must be refused, and sent twice under one fixed key, which must not act
   * twice. At most one such entry ever exists.
   */
  readonly sample: Plan['effects'];
  /**
   * Where the response of `sample` names what it made, as a path of fields, for example `['id']`.
   */
  readonly identifier: readonly string[];
}

/**
 * One operation of an OPAQUE service: the agent says what it wants, within what `input` lets
 * through.
 */
export interface OpaqueOperation extends HttpOperation {
  /**
   * Checks the agent's input completely and returns what may be used of it; throws where it may not
   * be sent.
   */
  readonly input: (untrusted: Value) => Value;
  /** A header for the occurrence, where the service takes one. */
  readonly idempotency?: { readonly header: string };
  readonly request: (input: Value) => RequestParts;
}

/** What every service has. */
export interface HttpOptions {
  readonly service: ServiceOptions;
  readonly targets: Readonly<Record<string, TargetOptions>>;
  /** `row-event` by default. */
  readonly profile?: Exclude<Profile, 'registered-fields'>;
  readonly values?: Registration['values'];
}

export type { Plan, PlannedEffect, ReadBackResult, RequestParts, ServiceOptions };

/** A service whose requests follow from approvals alone. */
export interface MediatedOptions extends HttpOptions {
  readonly operations: Readonly<Record<string, MediatedOperation>>;
}

/** A service whose requests are constrained, and compared afterwards. */
export interface OpaqueOptions extends HttpOptions {
  readonly operations: Readonly<Record<string, OpaqueOperation>>;
}

/** What a draft would leave if it were published now, and the version of what it was made on. */
export interface DraftContent {
  readonly records: readonly ChangeRecord[];
  /**
   * Version of the state when the draft was made, and now. If they differ, nothing may be
   * published.
   */
  readonly base: { readonly before: string; readonly now: string };
}

/**
 * A service that keeps drafts. It is PROMOTABLE as far as it keeps three promises: a draft has no
 * effect until it is published; what stands under a publication key stands there for good,
 * published or void, whichever came first; and it publishes only while the state is the one that
 * the draft was made on.
 */
export interface DraftOptions extends HttpOptions {
  readonly draft: {
    /** Checks what an agent asks for, completely; throws where it may not be drafted. */
    readonly input: (untrusted: Value) => Value;
    /** Makes a draft. `id` is where the response names it, as a path of fields. */
    readonly create: {
      readonly path: string;
      readonly request: (input: Value) => RequestParts;
      readonly id: readonly string[];
    };
    /** Reads and deletes it; `{id}` stands for the draft. */
    readonly path: string;
    readonly content: (body: Value) => DraftContent;
  };
  readonly publication: {
    /**
     * `{key}` stands for the occurrence. PUT publishes or voids, answering 201 where it did and 200
     * with what stood there before; GET reads, DELETE forgets.
     */
    readonly path: string;
    /** `metadata` is to be stored unread and given back. */
    readonly publish: (draft: string, metadata: string) => Value;
    readonly void: (metadata: string) => Value;
    /** What stands under the key, from the response to PUT and GET. */
    readonly standing: (body: Value) => {
      readonly disposition: 'published' | 'void';
      readonly metadata: string;
    };
    /**
     * Statuses by which the service says that it did not publish and never will: of this draft,
     * under this key.
     */
    readonly refusals: readonly number[];
  };
  /** A control object for admission, which no agent can name. */
  readonly probe: {
    readonly input: (token: string) => Value;
    /** The target that `content` reports for it; it is not registered. */
    readonly target: string;
    readonly path: string;
    /** Whether that control object was published, from a GET of `path`. */
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
