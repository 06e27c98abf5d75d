import { digestValueOf } from '../crypto/digest.ts';
import { EffectMatchError, errorsOf } from '../errors.ts';
import type { Proposal } from '../protocol/license.ts';
import { isName } from '../protocol/record.ts';
import type { Operation } from '../runtime/operation.ts';
import { parseInput } from '../runtime/propose.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Ask, WantedChange } from './request.ts';

/** What is needed to propose a change and to find the action that carries it out. */
export interface Proposer {
  readonly runtime: Pick<Runtime, 'plan' | 'prepare' | 'propose'>;
  readonly operations: Readonly<Record<string, Operation>>;
}

const WAYS = ['operation', 'action', 'manifest'] as const;
const FIELDS: Readonly<Record<(typeof WAYS)[number], readonly string[]>> = {
  operation: ['operation', 'input'],
  action: ['adapter', 'action', 'set'],
  manifest: ['manifest', 'action'],
};
const COMMON: readonly string[] = ['by', 'run', 'reason', 'key'];
const MAX_REASON = 4000;
const MAX_WORDS = 256;

/** Validates a request and returns only the change, without who asks and why. */
export function readAsk(ask: Ask): WantedChange {
  if (typeof ask !== 'object' || ask === null) throw invalid('it is not an object');
  const { by, run, reason = '', key = '' } = ask;
  if (!isName(by)) throw invalid('"by" must be the name of an agent');
  if (typeof run !== 'string' || run === '' || run.length > MAX_WORDS)
    throw invalid(`"run" must be a string of 1 to ${MAX_WORDS} characters`);
  if (typeof key !== 'string' || key.length > MAX_WORDS)
    throw invalid(`"key" must be a string of at most ${MAX_WORDS} characters`);
  if (typeof reason !== 'string' || reason.length > MAX_REASON || !reason.isWellFormed())
    throw invalid(`"reason" must be a string of at most ${MAX_REASON} characters`);
  const way = 'manifest' in ask ? 'manifest' : WAYS.find((name) => name in ask);
  if (way === undefined) throw invalid('it needs an operation, an action or a manifest');
  const allowed = FIELDS[way];
  const unknown = Object.keys(ask).find(
    (name) => !allowed.includes(name) && !COMMON.includes(name),
  );
  if (unknown !== undefined) throw invalid(`it has an unknown field "${unknown}"`);
  const fields = Object.entries(ask).filter(([name]) => allowed.includes(name));
  return Object.fromEntries(fields) as WantedChange;
}

/**
 * The id of a request. If an agent asks for the same thing again in one run, the id is the same, so
 * a model that repeats its call finds its earlier request.
 */
export function requestId({ by, run, key = '' }: Ask, wanted: WantedChange): string {
  const content = { by, run, key, wanted };
  return `req_${digestValueOf('effectmatch/request/v1', content).slice(0, 40)}`;
}

/** Whether a text, such as the name of a task, is the id of a request. */
export function isRequestId(text: string): boolean {
  return /^req_[0-9a-f]{40}$/.test(text);
}

/** The task and revision of a proposal, and what the approver is told about it. */
interface RequestPlan {
  readonly task: string;
  readonly planRevision: number;
  readonly requestedBy: string;
  readonly reason?: string;
}

/** Proposes a change. The request's id is the task. */
export async function proposeWanted(
  { runtime }: Proposer,
  wanted: WantedChange,
  plan: RequestPlan,
): Promise<Proposal> {
  if ('operation' in wanted) return await runtime.propose(wanted.operation, wanted.input, plan);
  if ('manifest' in wanted) {
    const { manifest, action } = wanted;
    return await runtime.prepare({ ...manifest, ...plan, ...(action !== undefined && { action }) });
  }
  const { adapter, action, set } = wanted;
  return await runtime.plan({ adapter, action, ...plan, ...(set && { set }) });
}

/** Whether the agent carries out the change itself, in a task. */
export function isForTask(wanted: WantedChange): boolean {
  return 'manifest' in wanted && wanted.action === undefined;
}

/** The action that carries out the change; undefined for a task. */
export async function actionFor({ operations }: Proposer, wanted: WantedChange): Promise<unknown> {
  if (!('operation' in wanted)) return wanted.action;
  const operation = Object.hasOwn(operations, wanted.operation)
    ? operations[wanted.operation]
    : undefined;
  if (operation === undefined)
    throw new EffectMatchError(
      'ERR_EM_NOT_FOUND',
      `no operation named "${wanted.operation}" is configured`,
    );
  return operation.action(await parseInput(operation, wanted.input));
}

const invalid = errorsOf('ERR_EM_INPUT_INVALID', 'the question cannot be asked: ');
