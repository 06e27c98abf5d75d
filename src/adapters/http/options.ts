import { misnamedOption, type OptionNames } from '../../contract/options.ts';
import type { RequestParts } from '../../http/content.ts';
import { refused } from '../../http/gateway.ts';
import type { ServiceOptions } from '../../http/options.ts';
import type { ChangeRecord, Profile } from '../../protocol/effect.ts';
import type { TargetCount } from '../../protocol/observation.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Row, Value } from '../../protocol/value.ts';

/** A registered collection of the service: its fields, and those that name an entry. */
export interface TargetOptions {
  readonly columns: readonly string[];
  readonly key: readonly string[];
  readonly volatile?: readonly string[];
  /** How one entry is read, for requirements and watched rows. 404 means that there is none. */
  readonly read?: {
    /** `{column}` stands for a key column. */
    readonly path: string;
    /** The entry's columns, from the response. */
    readonly row: (body: Value, headers: Readonly<Record<string, string>>) => Row;
  };
}

/**
 * An approved effect with its exact values: what is left to the service (`generated`, `any`, …) is
 * not in it.
 */
export interface PlannedEffect {
  readonly op: 'insert' | 'update' | 'delete';
  readonly target: string;
  readonly key: Row;
  readonly before: Row;
  readonly after: Row;
}

/** All that a request may be derived from: the approved outcome. */
export interface Plan {
  readonly effects: readonly PlannedEffect[];
  /** The first effect, for operations that have one. */
  readonly effect: PlannedEffect;
}

/** What an independent request finds about what was sent. */
export interface Found {
  readonly records: readonly ChangeRecord[];
  /**
   * Changes that were seen and may be somebody else's; any leaves the outcome open. None unless
   * said.
   */
  readonly unattributed?: number;
  /**
   * The service says that it refused the request under this key for good and will never carry it
   * out. With no records this proves that nothing became durable.
   */
  readonly refused?: string;
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
  readonly found: (body: Value, plan: Plan) => Found | undefined;
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

interface OperationBase {
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
export interface MediatedOperation extends OperationBase {
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
export interface OpaqueOperation extends OperationBase {
  /**
   * Checks the agent's input completely and returns what may be used of it; throws where it may not
   * be sent.
   */
  readonly input: (untrusted: Value) => Value;
  /** A header for the occurrence, where the service takes one. */
  readonly idempotency?: { readonly header: string };
  readonly request: (input: Value) => RequestParts;
}

interface CommonOptions {
  readonly service: ServiceOptions;
  readonly targets: Readonly<Record<string, TargetOptions>>;
  /** `row-event` unless said otherwise. */
  readonly profile?: Exclude<Profile, 'registered-fields'>;
  readonly values?: Registration['values'];
}

export type { RequestParts, ServiceOptions };

/** A service whose requests follow from approvals alone. */
export interface MediatedOptions extends CommonOptions {
  readonly operations: Readonly<Record<string, MediatedOperation>>;
}

/** A service whose requests are constrained, and compared afterwards. */
export interface OpaqueOptions extends CommonOptions {
  readonly operations: Readonly<Record<string, OpaqueOperation>>;
}

const OPTIONS: OptionNames<MediatedOptions> = {
  ...{ service: true, targets: true, operations: true, profile: true, values: true },
};

/** Refuses what nobody would look at. */
export function checkOptionNames(options: MediatedOptions | OpaqueOptions): void {
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
}
