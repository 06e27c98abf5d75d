import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { opaquePaymentOptions, paymentOptions } from '../../../examples/payment-service/adapter.ts';
import {
  type PaymentService,
  startPaymentService,
} from '../../../examples/payment-service/server.ts';
import { mediatedHttp, opaqueHttp } from '../../../src/adapters/http/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { generated, insert } from '../../../src/protocol/draft.ts';
import type { Proposal, SignedLicense } from '../../../src/protocol/license.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';
import {
  createRuntime,
  type Internals,
  type Runtime,
  type RuntimeConfig,
} from '../../../src/runtime/runtime.ts';

const key = generateApprover('treasury');
const signer = approver(key);

/** What is approved in most tests: one payment of 35 to acme, and nothing else. */
export const PAYMENT: PrepareRequest = {
  adapter: 'bank',
  task: 'pay acme',
  planRevision: 1,
  effects: [insert('payment', { id: generated('payment'), payee: 'acme', amount: 35, memo: null })],
  continuations: ['book'],
};

/** What an agent says to the OPAQUE variant. */
export const PAYING = { operation: 'pay', input: { payee: 'acme', amount: 35 } };

/** A payment service and a deployment in front of it, both real, in a folder of their own. */
export class Rig implements AsyncDisposable {
  readonly service: PaymentService;
  readonly folder: string;
  readonly capability: 'MEDIATED' | 'OPAQUE';
  readonly #opened: Runtime[] = [];

  constructor(service: PaymentService, capability: 'MEDIATED' | 'OPAQUE') {
    this.service = service;
    this.capability = capability;
    this.folder = mkdtempSync(join(tmpdir(), 'effectmatch-http-'));
  }

  get ledger(): string {
    return join(this.folder, 'ledger.db');
  }

  /** Where adapters reach the service. */
  get place() {
    return { origin: this.service.origin, token: this.service.token, account: 'main' };
  }

  get account() {
    return this.service.account('main');
  }

  get faults() {
    return this.service.faults('main');
  }

  /** Payments that somebody ordered: what admission left behind is not one. */
  get payments() {
    return [...this.account.payments.values()].filter(({ memo }) => memo !== 'probe');
  }

  /** What an agent submits. */
  get action(): unknown {
    return this.capability === 'MEDIATED' ? {} : PAYING;
  }

  factory(timeoutMs = 5000): AdapterFactory {
    const within = <O extends { readonly service: object }>(options: O): O => ({
      ...options,
      service: { ...options.service, timeoutMs },
    });
    return this.capability === 'MEDIATED'
      ? mediatedHttp(within(paymentOptions(this.place)))
      : opaqueHttp(within(opaquePaymentOptions(this.place)));
  }

  config(more: Partial<RuntimeConfig> = {}): RuntimeConfig {
    return {
      store: this.ledger,
      keyring: join(this.folder, 'keys.json'),
      issuers: { treasury: { key: key.publicKey, may: ['bank'] } },
      adapters: { bank: this.factory() },
      recoverAtStart: false,
      ...more,
    };
  }

  /** One process's runtime, whose service was tried. */
  async start(more: Partial<RuntimeConfig> = {}, internals: Internals = {}): Promise<Runtime> {
    const runtime = await this.open(more, internals);
    const proof = await runtime.prove('bank');
    assert.notEqual(proof.kind, 'unproven', proof.kind === 'unproven' ? proof.why : '');
    return runtime;
  }

  /** One process's runtime, as it is opened. */
  async open(more: Partial<RuntimeConfig> = {}, internals: Internals = {}): Promise<Runtime> {
    const runtime = await createRuntime(this.config(more), internals);
    this.#opened.push(runtime);
    return runtime;
  }

  /** A runtime that calls back at every step. */
  async startWatched(at: (step: Step) => void): Promise<Runtime> {
    return await this.start({}, { reached: at });
  }

  async approve(runtime: Runtime, request: PrepareRequest = PAYMENT): Promise<SignedLicense> {
    return this.sign(await runtime.prepare(request));
  }

  sign(proposal: Proposal): SignedLicense {
    return signer.sign(proposal, { expiresIn: '10m' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const runtime of this.#opened) await runtime.close();
    await this.service[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A rig of its own for one test. */
export async function openRig(
  capability: 'MEDIATED' | 'OPAQUE' = 'MEDIATED',
  options: Parameters<typeof startPaymentService>[0] = {},
): Promise<Rig> {
  return new Rig(await startPaymentService(options), capability);
}
