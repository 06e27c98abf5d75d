import { EffectMatchError, messageOf } from '../errors.ts';
import { draftManifest } from '../protocol/draft.ts';
import type { StateRead, StateReading } from '../protocol/effect.ts';
import type { Proposal } from '../protocol/license.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import { copyValue, describeRounded, findRounded, type Row } from '../protocol/value.ts';
import { adapterNamed, type Deployment } from './deployment.ts';
import type { Contracted, Operation, SchemaIssue } from './operation.ts';
import { prepare } from './prepare.ts';

/** Options for one use of an operation. */
export interface ProposeOptions {
  readonly task: string;
  readonly planRevision: number;
  /** The application's revision of the task state. The execution must present the same one. */
  readonly revision?: string;
  /** How many executions the license allows. The default is one. */
  readonly occurrences?: number;
  /** Who asks, for the approver to read. It is shown as unverified and is not signed. */
  readonly requestedBy?: string;
  /** Why, also shown as unverified and not signed. */
  readonly reason?: string;
  /** Session settings for the action, in addition to those in the contract. */
  readonly set?: SessionSettings;
  /** Work that a commit may release, in addition to what the contract states. */
  readonly continuations?: readonly string[];
}

/**
 * Runs an operation's contract: checks the input, reads the state that the rule asks for, lets the
 * rule compute the outcome, and prepares it for signing. The license binds the same readings that
 * the rule saw, so a change in between cannot go unnoticed.
 */
export async function propose(
  deployment: Deployment,
  name: string,
  untrustedInput: unknown,
  options: ProposeOptions,
): Promise<Proposal> {
  const operation = operationNamed(deployment, name);
  const input = await parseInput(operation, untrustedInput);
  const watch = await ask(operation, 'reads', () => operation.reads?.(input));
  const readings = await readState(deployment, operation, watch, options);
  // Copied, so that a rule that writes to its rows cannot change what the license binds.
  const rows = readings.map(({ row }) => copyValue(row) as Row | null);
  const contracted = await ask(operation, 'approve', () => operation.approve(input, rows));
  checkContracted(name, contracted);
  const { effects, requires, fieldMatch } = contracted;
  const continuations = joinNames(contracted.continuations, options.continuations);
  const action: unknown = await ask(operation, 'action', () => operation.action(input));
  const { task, planRevision, revision, occurrences, requestedBy, reason } = options;
  const request = {
    adapter: operation.adapter,
    task,
    planRevision,
    revision,
    occurrences,
    requestedBy,
    reason,
    effects,
    requires,
    watch,
    continuations,
    fieldMatch,
    set: joinSettings(name, contracted.set, options.set),
    ...(operation.bindAction !== false && { action }),
  };
  return explain(name, () =>
    prepare(deployment, request, { source: 'contract', operation: name, readings }),
  );
}

function operationNamed(deployment: Deployment, name: string): Operation {
  const operation = deployment.operations.get(name);
  if (operation !== undefined) return operation;
  const known = [...deployment.operations.keys()].join(', ') || 'none';
  throw new EffectMatchError(
    'ERR_EM_NOT_FOUND',
    `no operation named "${name}" is configured (configured: ${known})`,
  );
}

/**
 * Parses the input of an operation with its schema. Throws `ERR_EM_INPUT_INVALID` and names what is
 * wrong.
 */
export async function parseInput({ name, input }: Operation, untrusted: unknown): Promise<unknown> {
  refuseRounded(name, untrusted);
  const result = await input['~standard'].validate(untrusted);
  if (result.issues === undefined) {
    refuseRounded(name, result.value);
    return result.value;
  }
  const issues = result.issues.slice(0, 5).map(describeIssue).join('; ');
  throw new EffectMatchError(
    'ERR_EM_INPUT_INVALID',
    `the input of operation "${name}" is not usable: ${issues}`,
  );
}

/** A rounded identifier would name something else. */
function refuseRounded(name: string, value: unknown): void {
  const rounded = findRounded(value);
  if (rounded === undefined) return;
  const what = `it has the number ${describeRounded(rounded, 'pass a BigInt, or text')}`;
  throw new EffectMatchError(
    'ERR_EM_INPUT_INVALID',
    `the input of operation "${name}" is not usable: ${what}`,
  );
}

function describeIssue({ message, path = [] }: SchemaIssue): string {
  const where = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return where === '' ? message : `${where}: ${message}`;
}

/**
 * Calls a function of the application, and reports anything it throws as a failure of the
 * operation.
 */
async function ask<T>({ name }: Operation, part: string, call: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    const why = messageOf(cause);
    throw failed(name, `its function "${part}" threw: ${why}`, cause);
  }
}

/** Reads are normalised like those of a manifest, so that the license binds what the rule saw. */
async function readState(
  deployment: Deployment,
  { name, adapter: adapterName }: Operation,
  watch: readonly StateRead[] | undefined,
  options: ProposeOptions,
): Promise<readonly StateReading[]> {
  const { task, planRevision } = options;
  const { adapter } = adapterNamed(deployment, adapterName);
  return explain(name, async () => {
    const stated = draftManifest({ adapter: adapterName, task, planRevision, effects: [], watch });
    return adapter.read((await adapter.normalise(stated)).watch);
  });
}

function joinNames(
  contracted: readonly string[] | undefined,
  asked: readonly string[] | undefined,
): readonly string[] | undefined {
  return asked === undefined ? contracted : [...new Set([...(contracted ?? []), ...asked])];
}

/** The caller cannot override a setting that the contract states. */
function joinSettings(
  name: string,
  contracted: SessionSettings = {},
  asked: SessionSettings = {},
): SessionSettings {
  const both = Object.keys(asked).find((setting) => Object.hasOwn(contracted, setting));
  if (both === undefined) return { ...contracted, ...asked };
  throw failed(name, `its contract sets ${both} itself; leave it out of the request`);
}

const CONTRACTED = ['effects', 'requires', 'continuations', 'fieldMatch', 'set'];

function checkContracted(name: string, contracted: Contracted): void {
  if (typeof contracted !== 'object' || contracted === null || !Array.isArray(contracted.effects)) {
    throw failed(name, 'its function "approve" must return { effects: [...] }');
  }
  const unknown = Object.keys(contracted).find((field) => !CONTRACTED.includes(field));
  if (unknown === undefined) return;
  throw failed(
    name,
    `its function "approve" returned an unknown field "${unknown}"; it may have ${CONTRACTED}`,
  );
}

const OF_MANIFEST = ['ERR_EM_MANIFEST_INVALID', 'ERR_EM_OUTCOME_IMPOSSIBLE'];

/** Names the operation in errors about the manifest that it computed. */
async function explain<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof EffectMatchError) || !OF_MANIFEST.includes(cause.code)) throw cause;
    throw new EffectMatchError(cause.code, `operation "${name}": ${cause.message}`, { cause });
  }
}

function failed(
  name: string,
  why: string,
  cause?: unknown,
): EffectMatchError<'ERR_EM_OPERATION_FAILED'> {
  return new EffectMatchError(
    'ERR_EM_OPERATION_FAILED',
    `operation "${name}" proposed nothing: ${why}`,
    { cause },
  );
}
