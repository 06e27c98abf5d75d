import { digestValueOf } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import type { ApprovedEffect, Requirement, StateRead } from '../protocol/effect.ts';
import { type Digest, isName } from '../protocol/record.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import type { Row } from '../protocol/value.ts';

/**
 * The part of Standard Schema (version 1) used here, which zod, valibot, arktype and others
 * implement.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a contract approves for one input. */
export interface Contracted {
  readonly effects: readonly ApprovedEffect[];
  readonly requires?: readonly Requirement[] | undefined;
  readonly continuations?: readonly string[] | undefined;
  /** The continuations that may be released on a match of registered fields. */
  readonly fieldMatch?: readonly string[] | undefined;
  /** Session settings for the action, such as `{ 'app.actor': 'alice' }`. */
  readonly set?: SessionSettings | undefined;
}

/**
 * An operation contract: the business rule that computes the required outcome from the request and
 * the current state. It computes an approval for a person or a policy to sign; it does not approve
 * anything itself.
 */
export interface Operation<Input = unknown> {
  readonly name: string;
  readonly adapter: string;
  readonly input: StandardSchema<Input>;
  /**
   * Change it when something that the functions refer to changes: only their own source text is
   * identified.
   */
  readonly version?: string | undefined;
  /**
   * The rows that the rule depends on. If one of them changes before the operation runs, the
   * approval is stale.
   */
  reads?(input: Input): readonly StateRead[];
  /** `state` has one entry per read, in the same order: the row, or null if there is none. */
  approve(input: Input, state: readonly (Row | null)[]): Contracted | Promise<Contracted>;
  /**
   * The action that performs the operation. The license is bound to it unless `bindAction` is
   * false.
   */
  action(input: Input): unknown;
  readonly bindAction?: boolean | undefined;
  /** One of these issuers must sign as well. */
  readonly second?: readonly string[] | undefined;
}

const FIELDS = [
  ...['name', 'adapter', 'input', 'version', 'reads', 'approve', 'action'],
  ...['bindAction', 'second'],
];

/** Checks an operation contract and freezes it. Configure it under its own name. */
export function defineOperation<Input>(operation: Operation<Input>): Operation<Input> {
  const { name, adapter, input, version, bindAction } = operation;
  if (!isName(name)) {
    throw invalid('an operation', 'needs a name of 1 to 128 letters, digits and . _ : / @ -');
  }
  const unknown = Object.keys(operation).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined)
    throw invalid(
      `operation "${name}"`,
      `has an unknown field "${unknown}"; it may have ${FIELDS}`,
    );
  if (typeof adapter !== 'string') throw invalid(`operation "${name}"`, 'names no adapter');
  if (typeof input?.['~standard']?.validate !== 'function') {
    throw invalid(
      `operation "${name}"`,
      'needs an input schema that implements Standard Schema, for example of zod',
    );
  }
  if (version !== undefined && typeof version !== 'string')
    throw invalid(`operation "${name}"`, 'has no text version');
  if (bindAction !== undefined && typeof bindAction !== 'boolean') {
    throw invalid(`operation "${name}"`, 'has a bindAction that is neither true nor false');
  }
  for (const part of ['reads', 'approve', 'action'] as const) {
    const code: unknown = operation[part];
    if (code === undefined && part === 'reads') continue;
    if (typeof code !== 'function')
      throw invalid(`operation "${name}"`, `needs a function "${part}"`);
    if (/\[native code\]\s*\}$/.test(String(code))) {
      throw invalid(
        `operation "${name}"`,
        `has a function "${part}" without source (bound or built in); write it out`,
      );
    }
  }
  return Object.freeze({ ...operation });
}

/**
 * Identifies the contracts of one adapter by their names, versions and the source text of their
 * functions. Does not cover what these functions import or close over; `version` is for that.
 * Undefined if the adapter has no contracts.
 */
export function identifyOperations(
  operations: Iterable<Operation>,
  adapter: string,
): Digest | undefined {
  const own = [...operations].filter((operation) => operation.adapter === adapter);
  if (own.length === 0) return undefined;
  const facts = own.map(
    ({ name, version = null, input, reads, approve, action, bindAction = true, second }) => ({
      name,
      version,
      schema: input['~standard'].vendor,
      code: [reads, approve, action].map((part) => part?.toString().toWellFormed() ?? null),
      bindAction,
      ...(second !== undefined && { second: [...second] }),
    }),
  );
  const sorted = facts.sort((a, b) => (a.name < b.name ? -1 : 1));
  return digestValueOf('effectmatch/operations/v1', sorted);
}

function invalid(what: string, why: string): EffectMatchError<'ERR_EM_CONFIG_INVALID'> {
  return new EffectMatchError('ERR_EM_CONFIG_INVALID', `${what} ${why}`);
}
