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
import {
  type Decision,
  type Place,
  SQLITE_FILE,
  type Step,
  TABLES,
  type Workflow,
} from './task.ts';
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
  /** Somebody else's key, and what that one may approve. */
  readonly clerk?: {
    readonly key: string;
    readonly isDesignated: boolean;
    readonly sources: NonNullable<IssuerConfig['sources']>;
  };
}

/** The deployment: the same in every process. Nothing is recovered unless somebody asks for it. */
export async function openRuntime(
  place: Place,
  { steps }: Workflow,
  { owner, clerk }: Approvers,
  internals: Internals = {},
): Promise<Runtime> {
  const adapters: Record<string, AdapterFactory> = {};
  for (const step of steps) adapters[adapterOf(step)] = factoryOf(place, step);
  const all = Object.keys(adapters);
  const { key = '', isDesignated = false, sources = [] } = clerk ?? {};
  const runtime = await createRuntime(
    {
      store: join(place.folder, 'ledger.db'),
      keyring: join(place.folder, 'keys.json'),
      issuers: {
        [ISSUER]: { key: owner, may: all },
        ...(clerk && { [CLERK]: { key, may: isDesignated ? all : [], sources } }),
      },
      adapters,
      recoverAtStart: false,
    },
    internals,
  );
  // Before anything goes wrong on purpose: the first execution would have the service tried.
  for (const name of all) await runtime.prove(name);
  return runtime;
}

const adapterOf = (step: Step) => (step.kind === 'payment' ? 'bank' : step.where);

function factoryOf(place: Place, step: Step): AdapterFactory {
  if (step.kind === 'payment') {
    const { origin, customer } = place.service;
    const at = { origin, token: TOKEN, account: customer };
    return place.capability === 'MEDIATED'
      ? (mediatedHttp(paymentOptions(at)) as AdapterFactory)
      : (opaqueHttp(opaquePaymentOptions(at)) as AdapterFactory);
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
): Promise<Decision> {
  const { steps, hasDependent } = workflow;
  const from = async (index: number): Promise<Decision> => {
    const step = steps[index];
    if (step === undefined) {
      if (hasDependent) runDependent(place);
      return 'done';
    }
    const license = licenses[index];
    if (license === undefined) throw new Error('a step has no license');
    await runtime.execute(license, actionOf(place, step));
    // Not from the verdict: the process that executed may have been another one.
    const [origin] = lineagesOf(license);
    const release = await runtime.continuation(origin, NEXT).release(() => from(index + 1));
    if (release.kind === 'released') return release.value;
    if (release.why === 'diverged') return 'diverged';
    if (release.why === 'indeterminate') return 'uncertain';
    // What was claimed and has no terminal may have happened.
    const isClaimed = (await runtime.ledgers.holder(origin.occurrence)) !== undefined;
    return release.why === 'no-terminal' && isClaimed ? 'uncertain' : 'rejected';
  };
  return await from(0);
}
