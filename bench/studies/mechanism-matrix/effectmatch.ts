// The sixth condition: the runtime itself, with its ledger on disk and the adapters for the three
// backends.
import { join } from 'node:path';
import { opaquePaymentOptions, paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { mediatedHttp, opaqueHttp } from '../../../src/adapters/http/index.ts';
import { postgres } from '../../../src/adapters/postgres/index.ts';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { approver, type generateApprover } from '../../../src/crypto/approver.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
import type { IssuerConfig } from '../../../src/runtime/policy.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';
import { createRuntime, type Internals, type Runtime } from '../../../src/runtime/runtime.ts';
import { TOKEN } from './service.ts';
import { LEDGER_FILE, type Place, SQLITE_FILE, type Step, TABLES, type Workflow } from './task.ts';
import { statementOf } from './tools.ts';
import { runDependent } from './workflow.ts';

/** The one whose approvals count. */
export const ISSUER = 'owner';
/** Another name. */
export const CLERK = 'clerk';
const NEXT = 'next';

/** Whose approvals the deployment knows. */
export interface Approvers {
  readonly owner: string;
  /** Another approver's key, and what that approver may approve. */
  readonly clerk?: {
    readonly key: string;
    readonly isDesignated: boolean;
    readonly sources: NonNullable<IssuerConfig['sources']>;
  };
}

/** So that a process that takes over does not wait for the default of 30 s. */
const SHORT = { leaseMs: 2000, timeoutMs: 1500 };

/** The deployment: the same in every process, with default settings but for the paper's reading. */
export async function openRuntime(
  place: Place,
  { steps, settles, isInterrupted }: Workflow,
  { owner, clerk }: Approvers,
  internals: Internals = {},
): Promise<Runtime> {
  const adapters: Record<string, AdapterFactory> = {};
  const { leaseMs, timeoutMs } = settles && isInterrupted ? SHORT : {};
  for (const step of steps) adapters[adapterOf(step)] = factoryOf(place, step, timeoutMs);
  const all = Object.keys(adapters);
  const { key = '', isDesignated = false, sources = [] } = clerk ?? {};
  const runtime = await createRuntime(
    {
      store: join(place.folder, LEDGER_FILE),
      keyring: join(place.folder, 'keys.json'),
      issuers: {
        [ISSUER]: { key: owner, may: all },
        ...(clerk && { [CLERK]: { key, may: isDesignated ? all : [], sources } }),
      },
      adapters,
      recoverAtStart: settles,
      ...(leaseMs !== undefined && { leaseMs }),
    },
    internals,
  );
  // Before anything goes wrong on purpose: the first execution would have the service tried.
  for (const name of all) await runtime.prove(name);
  return runtime;
}

const adapterOf = (step: Step) => (step.kind === 'payment' ? 'bank' : step.where);

function factoryOf(place: Place, step: Step, timeoutMs = 5000): AdapterFactory {
  if (step.kind === 'payment') {
    const { origin, customer } = place.service;
    const at = { origin, token: TOKEN, account: customer };
    if (place.capability === 'OPAQUE')
      return opaqueHttp(opaquePaymentOptions(at)) as AdapterFactory;
    const { service, ...options } = paymentOptions(at);
    return mediatedHttp({ ...options, service: { ...service, timeoutMs } }) as AdapterFactory;
  }
  if (step.where === 'sqlite') {
    return sqlite({
      file: join(place.folder, SQLITE_FILE),
      relations: [...TABLES.sqlite],
    }) as AdapterFactory;
  }
  if (place.provisioned === undefined) throw new Error('this database was not provisioned');
  return postgres(place.provisioned) as AdapterFactory;
}

/** A license for every step, by any approver; of what is stated, or of what was rehearsed. */
export async function approveSteps(
  runtime: Runtime,
  place: Place,
  { steps }: Workflow,
  from: { readonly signer: ReturnType<typeof generateApprover>; readonly isRehearsed: boolean },
): Promise<readonly SignedLicense[]> {
  const licenses: SignedLicense[] = [];
  for (const [index, step] of steps.entries()) {
    const { effects, ...rest } = approvalOf(step);
    const request = {
      adapter: adapterOf(step),
      task: `step ${index + 1}`,
      planRevision: 1,
      continuations: [NEXT],
      ...rest,
    };
    const proposal = from.isRehearsed
      ? await runtime.plan({ ...request, action: actionOf(place, step) })
      : await runtime.prepare({ ...request, effects });
    licenses.push(approver(from.signer).sign(proposal, { expiresIn: '10m' }));
  }
  return licenses;
}

/** The approved change; of a row also that it is still the row that was looked at. */
function approvalOf(step: Step): Pick<PrepareRequest, 'effects' | 'requires'> {
  if (step.kind === 'payment') {
    const { payee, amount } = step;
    return {
      effects: [insert('payment', { id: generated('payment'), payee, amount, memo: null })],
    };
  }
  const { table, id, column, value, seen } = step;
  return {
    effects: [update(table, { id }, { [column]: [seen[column] ?? null, value] })],
    requires: [{ target: table, key: { id }, row: seen }],
  };
}

/** What the agent submits. */
function actionOf(place: Place, step: Step): unknown {
  if (step.kind === 'row') return statementAction(step);
  const { payee, amount } = step;
  return place.capability === 'MEDIATED' ? {} : { operation: 'pay', input: { payee, amount } };
}

function statementAction(step: Extract<Step, { kind: 'row' }>) {
  const { sql, values } = statementOf(step);
  return step.where === 'postgres'
    ? { sql, values }
    : { sql: sql.replace(/\$(\d)/g, '?$1'), values };
}

/** Executes every step; each releases the next one, and the last one the dependent work. */
export async function runLicensed(
  runtime: Runtime,
  place: Place,
  workflow: Workflow,
  licenses: readonly SignedLicense[],
): Promise<void> {
  const { steps, hasDependent, settles } = workflow;
  const from = async (index: number): Promise<void> => {
    const step = steps[index];
    if (step === undefined) {
      if (hasDependent) runDependent(place);
      return;
    }
    const license = licenses[index];
    if (license === undefined) throw new Error('a step has no license');
    const action = actionOf(place, step);
    await (settles ? runtime.ensure(license, action) : runtime.execute(license, action));
    const [origin] = lineagesOf(license);
    await runtime.continuation(origin, NEXT).release(() => from(index + 1));
  };
  await from(0);
}
