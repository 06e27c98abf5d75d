import { EffectMatchError } from '../errors.ts';
import { draftManifest } from '../protocol/draft.ts';
import type { StateRead, StateReading } from '../protocol/effect.ts';
import type { Proposal } from '../protocol/license.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import { copyValue, describeRounded, findRounded, type Row } from '../protocol/value.ts';
import { adapterNamed, type Deployment } from './deployment.ts';
import type { Contracted, Operation, SchemaIssue } from './operation.ts';
import { prepare } from './prepare.ts';

/** What is said about one use of an operation. */
export interface ProposeOptions {
  readonly task: string;
  readonly planRevision: number;
  /** The application's own revision of the task state; the execution must present the same. */
  readonly revision?: string;
  /** How many executions the license buys; one unless said otherwise. */
  readonly occurrences?: number;
  /** Who asks, for the approver to read. It is shown as unverified and not signed. */
  readonly requestedBy?: string;
  /** Why, on the same terms. */
  readonly reason?: string;
  /** Settings of the session that the action runs in, besides those that the contract states. */
  readonly set?: SessionSettings;
  /** Work that a commit may release, besides what the contract states. */
  readonly continuations?: readonly string[];
}

/**
 * Runs an operation's contract: checks the input, reads the state the rule asks for, has the rule
 * compute the outcome, and prepares it for signing. The very readings that the rule saw are bound,
 * so that no change can slip in between.
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
  // Copies: a rule that writes to its rows must not write to what the license binds.
  const rows = readings.map(({ row }) => copyValue(row) as Row | null);
  const contracted = await ask(operation, 'approve', () => operation.approve(input, rows));
  checkContracted(name, contracted);
  const { effects, requires, fieldMatch } = contracted;
  const continuations = joinNames(contracted.continuations, options.continuations);
  const action: unknown = await ask(operation, 'action', () => operation.action(input));
  const { task, planRevision, revision, occurrences, requestedBy, reason } = options;
  const request = {
    ...{ adapter: operation.adapter, task, planRevision, revision, occurrences },
    ...{ requestedBy, reason },
    ...{ effects, requires, watch, continuations, fieldMatch },
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
 * The input of an operation as its schema understands it; throws `ERR_EM_INPUT_INVALID` with the
 * places that are wrong.
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

/** An identifier that was rounded on its way here names something else. */
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
 * Calls one function of the application; what it throws is its own fault and is reported as that.
 */
async function ask<T>({ name }: Operation, part: string, call: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw failed(name, `its function "${part}" threw: ${why}`, cause);
  }
}

/** Reads are normalised like a manifest's, so that what the rule saw is what the license binds. */
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

/** A setting that the contract states is not for the caller to choose. */
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

/**
 * What is wrong with a manifest is wrong with the operation that computed it, so the message names
 * it.
 */
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
