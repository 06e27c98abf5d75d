import type { AgentConfig, UpstreamConfig } from '../access/configuration.ts';
import type { ConsoleConfig } from '../console/configuration.ts';
import type { AdapterFactory, QueryRows } from '../contract/adapter.ts';
import { type Clock, type IdSource, systemClock } from '../contract/clock.ts';
import type { JournalVerdict, Ledgers, LedgersFactory } from '../contract/ledgers.ts';
import { type Reached, unobserved } from '../contract/steps.ts';
import { randomIds } from '../crypto/approver.ts';
import { digestFolders } from '../crypto/code-identity.ts';
import { digestRecord, digestText, digestValueOf } from '../crypto/digest.ts';
import type { Envelope } from '../crypto/dsse.ts';
import { type Keyring, type KeyringSource, openKeyring } from '../crypto/keyring.ts';
import { createSigner } from '../crypto/receipt.ts';
import { receiptKeys } from '../crypto/receipt-key.ts';
import { createSealer, keyedDigest, keyedTextDigest } from '../crypto/seal.ts';
import { verifyLicense as verifySignature } from '../crypto/signature.ts';
import { EffectMatchError } from '../errors.ts';
import { ledgersOf } from '../ledger/configured.ts';
import type { Survey } from '../protocol/boundary.ts';
import { canonical } from '../protocol/canon.ts';
import type { Acknowledgement } from '../protocol/continuation.ts';
import { frameRecord, policyRecord } from '../protocol/frame.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import { classify as classifyOutcome } from '../protocol/outcome.ts';
import { freezeDeep, type OccurrenceId } from '../protocol/record.ts';
import type { Registration } from '../protocol/registration.ts';
import type { Resolution } from '../protocol/resolution.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { RequestsConfig } from '../requests/configuration.ts';
import type { WorkflowsConfig } from '../workflow/configuration.ts';
import { admit } from './admit.ts';
import type { Refusal } from './attempt.ts';
import { issuersFor } from './authority.ts';
import { type CheckOptions, checkProposal, checkSigned } from './check.ts';
import { CheckedLicenses } from './checked-licenses.ts';
import { checkConfiguration, LEASE_MS, RESTAGE_MS } from './configuration.ts';
import {
  type ContinuationGate,
  continuationGate,
  type Lineage,
  type OpenContinuation,
  openContinuations,
} from './continuation.ts';
import { type Admitted, adapterNamed, type Deployment, provingContext } from './deployment.ts';
import { type Draft, type DraftTaskOptions, openDraft } from './draft.ts';
import { type Ensured, type EnsureOptions, ensure } from './ensure.ts';
import { type ExecuteOptions, execute } from './execute.ts';
import { openLeases } from './lease.ts';
import { identifyOperations, type Operation } from './operation.ts';
import { checkTargets, type IssuerConfig, operationsOf, policyOf } from './policy.ts';
import { type PrepareRequest, prepare } from './prepare.ts';
import type { Executed } from './promotable.ts';
import { type ProposeOptions, propose } from './propose.ts';
import { proveService, type ServiceProof } from './prove.ts';
import { type QueryRequest, query } from './query.ts';
import { type ReceiptOptions, receiptOf } from './receipt.ts';
import { type Recovered, type RecoverOptions, recoverTraced } from './recover.ts';
import { openRefusalBound } from './refusal-bound.ts';
import { type PlanOptions, type PlanRequest, rehearse } from './rehearse.ts';
import { reopenContinuation } from './reopen.ts';
import { type OperatorKeys, resolveOccurrence } from './resolve.ts';
import { type ShadowDraft, type Shadowed, shadow } from './shadow.ts';
import { openTask, runTask, type Task, type TaskOptions } from './task.ts';
import { quietly, type Telemetry, traced } from './telemetry.ts';
import { type VerdictWaitOptions, waitForVerdict } from './wait.ts';

/** A deployment, as `effectmatch.config.ts` exports it and as {@link createRuntime} takes it. */
export interface RuntimeConfig {
  /**
   * Path of the ledger's SQLite file, which is never the business database; the address of a login
   * that `effectmatch provision --ledger` made (`postgres://…`), for a ledger that several machines
   * share; or another ledger.
   */
  readonly store: string | LedgersFactory;
  /**
   * Path of the keyring file (created with mode 0600 when absent), or `{ env: 'EFFECTMATCH_KEYS'
   * }`.
   */
  readonly keyring: KeyringSource;
  readonly issuers: Readonly<Record<string, IssuerConfig>>;
  /**
   * Who may say what became of an indeterminate effect: public keys, of the same form as those of
   * issuers.
   */
  readonly operators?: Readonly<Record<string, { readonly key: string | readonly string[] }>>;
  /** Operation contracts, each under its own name. */
  readonly operations?: Readonly<Record<string, Operation>>;
  // biome-ignore lint/suspicious/noExplicitAny: adapters with different actions share one map; each checks its own.
  readonly adapters: Readonly<Record<string, AdapterFactory<any>>>;
  /** How long a silent attempt counts as alive; 30 s unless said otherwise. */
  readonly leaseMs?: number;
  /**
   * How long an execution that other transactions prevent (a lock, a deadlock, a serialization
   * failure) is tried again under the same license; 30 s unless said otherwise, 0 for never.
   */
  readonly restageMs?: number;
  /** Where the command line keeps what agents ask for; see `effectmatch/requests`. */
  readonly requests?: RequestsConfig;
  /** The workflows of the deployment; see `effectmatch/workflow`. */
  readonly workflows?: WorkflowsConfig;
  /** Where `effectmatch serve` is reached and who may sign in; see `effectmatch/console`. */
  readonly console?: ConsoleConfig;
  /** The agents that `effectmatch mcp` serves, and what each may ask for. */
  readonly agents?: Readonly<Record<string, AgentConfig>>;
  /** Other MCP servers that agents reach through `effectmatch mcp`, with what each tool does. */
  readonly upstreams?: Readonly<Record<string, UpstreamConfig>>;
  /**
   * Where to report spans and metrics, for example `openTelemetry()` of `effectmatch/telemetry`;
   * nowhere unless said.
   */
  readonly telemetry?: Telemetry;
  /**
   * Whether interrupted attempts are settled at start; yes unless said otherwise. Opening waits a
   * second for it at most; what takes longer continues in the background, which is safe because
   * recovery may run beside everything else. `runtime.recover()` waits for it.
   */
  readonly recoverAtStart?: boolean;
}

/** What tests may replace. No public export takes it. */
export interface Internals {
  readonly clock?: Clock;
  readonly ids?: IdSource;
  readonly reached?: Reached;
  /** Other checks than ours, for the ablations of the evaluation. */
  readonly classify?: Deployment['classify'];
  readonly verifyLicense?: Deployment['verifyLicense'];
}

/** A running deployment. */
export interface Runtime extends AsyncDisposable {
  /**
   * Normalises a manifest and renders it for approval. Writes nothing but the task's plan revision.
   */
  prepare(request: PrepareRequest): Promise<Proposal>;
  /**
   * Has an operation's contract compute what to approve for this input, and renders it for
   * approval.
   */
  propose(operation: string, input: unknown, options: ProposeOptions): Promise<Proposal>;
  /**
   * Rehearses an action twice, always rolled back, and renders what it would do for a person to
   * approve.
   */
  plan(request: PlanRequest, options?: PlanOptions): Promise<Proposal>;
  /**
   * Runs the action once under the license; whatever happens, the answer is a recorded terminal. If
   * it committed, `generated` has the values that the backend assigned to the approval's labels, and
   * `results` the rows that the action's statements returned.
   */
  execute(
    license: SignedLicense | unknown,
    action: unknown,
    options?: ExecuteOptions,
  ): Promise<Executed>;
  /**
   * Executes the license if it is unused; otherwise waits for the attempt that holds it, recovers
   * one whose lease has run out, or returns the recorded verdict. May be called again and again,
   * from any number of processes: there is one effect and one verdict.
   */
  ensure(
    license: SignedLicense | unknown,
    action: unknown,
    options?: EnsureOptions,
  ): Promise<Ensured>;
  /**
   * Opens a task under the license: a private candidate that takes call after call, is compared
   * with the approval once, by `finish`, and is made durable or given up as a whole. Returns the
   * recorded terminal instead if the license is refused or no candidate can be held.
   */
  open(license: SignedLicense | unknown, options?: TaskOptions): Promise<Task | Terminal>;
  /**
   * Opens a task, runs `work` with it, and finishes it when `work` returns. If `work` throws, the
   * task is discarded and the error is thrown again. At the deadline, when the calls are used up or
   * when `signal` aborts, the task is discarded and its terminal returned.
   */
  task(
    license: SignedLicense | unknown,
    work: (task: Task) => unknown,
    options?: TaskOptions,
  ): Promise<Executed>;
  /**
   * Opens a draft, for work that has no approval yet: calls run on a candidate that can only be
   * discarded, and are recorded. `submit` rehearses the recorded calls and proposes what they show.
   */
  draft(adapter: string, options?: DraftTaskOptions): Promise<Draft>;
  /**
   * Why `execute` would refuse this license now, or why this proposal is out of date; undefined if
   * nothing is in the way. Records and spends nothing. Without an action it is about a task.
   */
  check(
    approval: { readonly license: unknown } | { readonly proposal: unknown },
    action: unknown,
    options?: CheckOptions,
  ): Promise<Refusal | undefined>;
  /**
   * Who could sign a proposal, by the designations and limits of the configuration; of an operation,
   * who could sign some proposal of it.
   */
  issuersFor(proposal: Proposal | { readonly operation: string }): readonly string[];
  /**
   * Rehearses the action beside production and records what would have been decided under a
   * license, a proposal or a draft. Always rolled back; spends, releases and blocks nothing.
   */
  shadow(
    approval: SignedLicense | Proposal | ShadowDraft | unknown,
    action: unknown,
    options?: ExecuteOptions,
  ): Promise<Shadowed>;
  /**
   * What dependent work asks before it runs. A terminal will do as `from`, in this process or any
   * later one.
   */
  continuation(from: Lineage, name: string): ContinuationGate;
  /**
   * Work that was released and has not completed, oldest first: it is under way or waits in a queue,
   * or its process died in it. It is released again only by an operator's decision.
   */
  continuations(): Promise<readonly OpenContinuation[]>;
  /**
   * Records an operator's signed decision (`signReopening`) that work which never completed may be
   * released once more, with the evidence it was signed for. It runs nothing.
   */
  reopen(decision: unknown, evidence: string): Promise<Acknowledgement>;
  /**
   * The conclusive verdict about an occurrence, once there is one; undefined if the time is over
   * first. Executes nothing, and recovers an attempt whose lease has run out.
   */
  wait(occurrence: OccurrenceId, options?: VerdictWaitOptions): Promise<Terminal | undefined>;
  /**
   * A fresh survey of an adapter's boundary, as `effectmatch doctor` shows it: every outlet, and
   * what would close those that are open (`unclassified`). It changes nothing; while one is open,
   * every operation there is refused.
   */
  survey(adapter: string): Promise<Survey>;
  /**
   * Has a live service tried, as the first execution would: whether it turns away who has no
   * credential, honours its idempotency key, keeps drafts without effect. It is sent samples unless
   * the same service was proven before with the same operations, credential and adapter code; the
   * result is kept in the ledger.
   */
  prove(adapter: string): Promise<ServiceProof>;
  /**
   * Runs one statement for its rows where the backend lets it write nothing. Needs no approval and
   * records nothing. Throws `ERR_EM_QUERY_REFUSED` with what the backend said.
   */
  query(request: QueryRequest): Promise<QueryRows>;
  /** Settles interrupted attempts, once what was begun at the start has ended. */
  recover(options?: RecoverOptions): Promise<readonly Recovered[]>;
  /**
   * Records an operator's signed decision about an indeterminate occurrence, with the evidence it
   * was signed for. It sends nothing and releases nothing.
   */
  resolve(resolution: Resolution | unknown, evidence: string): Promise<Resolution>;
  /** The verdict about an occurrence; undefined means that there is none, which is a halt. */
  terminal(occurrence: OccurrenceId): Promise<Terminal | undefined>;
  /**
   * A signed receipt of how an attempt at an occurrence ended, made now from what is stored;
   * undefined without a verdict. Anyone with a public key of `receiptKeys` can verify it without
   * this deployment.
   */
  receipt(occurrence: OccurrenceId, options?: ReceiptOptions): Promise<Envelope | undefined>;
  /** The public keys of every key generation, newest first. */
  readonly receiptKeys: readonly string[];
  /** Checks every journal row and checkpoint. */
  verifyJournal(): Promise<JournalVerdict>;
  readonly ledgers: Ledgers;
  close(): Promise<void>;
}

/** Under which secrets of adapters are digested. */
export const SECRET_DOMAIN = 'effectmatch/secret/v1';

/**
 * Opens store, keys and adapters, admits every adapter, and begins to settle what an earlier
 * process left.
 */
export async function createRuntime(
  config: RuntimeConfig,
  internals: Internals = {},
): Promise<Runtime> {
  checkConfiguration(config);
  const policy = policyOf(config);
  const operations = operationsOf(config);
  const keyring = openKeyring(config.keyring);
  const adapters = new Map<string, Admitted>();
  const parts = { policy, operations, keyring, adapters };
  const deployment = await openDeployment(config, internals, parts);
  const background: Background = { isClosing: false, unwatch: () => {} };
  const close = () => closeAll(deployment, background);
  try {
    for (const [name, factory] of Object.entries(config.adapters)) {
      adapters.set(name, await admitAdapter(deployment, name, factory));
    }
    checkTargets(policy, adapters);
    await beginBackground(deployment, config, background);
  } catch (error) {
    await close();
    throw error;
  }
  return methodsOf({ deployment, config, keyring, background, close });
}

/** What runs in the background while a runtime is open. */
interface Background {
  isClosing: boolean;
  /** The recovery that was begun at the start. */
  recovery?: Promise<unknown>;
  unwatch: () => void;
}

/** Opens the store. Adapters are admitted to the deployment afterwards. */
async function openDeployment(
  config: RuntimeConfig,
  internals: Internals,
  parts: Pick<Deployment, 'policy' | 'operations' | 'adapters'> & { readonly keyring: Keyring },
): Promise<Deployment> {
  const { clock = systemClock, ids = randomIds, reached = unobserved } = internals;
  const { classify = classifyOutcome, verifyLicense = verifySignature } = internals;
  const { leaseMs = LEASE_MS, restageMs = RESTAGE_MS, telemetry } = config;
  const { keyring, policy, operations, adapters } = parts;
  const sealer = createSealer(keyring);
  const ledgers = await ledgersOf(config.store).open({ sealer, digest: digestText });
  const digestKeyed = keyedTextDigest(keyring);
  const issuerKeys = Object.entries(config.issuers).map(
    ([name, issuer]) => [name, [issuer.key].flat()] as const,
  );
  return {
    ledgers,
    sealer,
    digestValue: keyedDigest(keyring),
    digestSecret: (secret) => digestKeyed(SECRET_DOMAIN, [secret]),
    digestObserved: (lines) => digestKeyed('effectmatch/observed/v1', lines),
    clock,
    ids,
    reached,
    telemetry,
    classify,
    verifyLicense,
    adapters,
    operations,
    policy,
    policyDigest: digestRecord(policyRecord, policy),
    issuerKeys: new Map(issuerKeys),
    contract: digestFolders([
      new URL('../protocol/', import.meta.url),
      new URL('./', import.meta.url),
    ]),
    leaseMs,
    restageMs,
    leases: openLeases(ledgers, leaseMs, clock),
    licenses: new CheckedLicenses(),
    refusals: openRefusalBound(ledgers, clock),
    tasks: new Set(),
  };
}

/** How long opening waits for what it settles. Whatever takes longer continues afterwards. */
const START_WAIT_MS = 1000;

async function beginBackground(
  deployment: Deployment,
  { recoverAtStart = true, telemetry }: RuntimeConfig,
  background: Background,
): Promise<void> {
  if (recoverAtStart) {
    background.recovery = recoverTraced(deployment, {}, () => background.isClosing);
    await withinMs(START_WAIT_MS, background.recovery);
  }
  const countOrphans = async () => (await deployment.ledgers.unsettled()).length;
  background.unwatch = quietly(() => telemetry?.watchOrphans(countOrphans)) ?? background.unwatch;
}

/** Waits for the work, but no longer than that. An error is left to others who wait for it. */
async function withinMs(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  work.catch(() => {});
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

const CLOSED = 'the runtime was closed before the task was finished';

async function closeAll(deployment: Deployment, background: Background): Promise<void> {
  background.isClosing = true;
  quietly(background.unwatch);
  await Promise.allSettled([...deployment.tasks].map((task) => task.interrupt(CLOSED)));
  deployment.leases.close();
  for (const { adapter } of deployment.adapters.values()) await adapter.close();
  await background.recovery?.catch(() => {});
  await deployment.ledgers.close();
}

/** The runtime's methods, each one call of the function that does it. */
function methodsOf(parts: {
  readonly deployment: Deployment;
  readonly config: RuntimeConfig;
  readonly keyring: Keyring;
  readonly background: Background;
  readonly close: () => Promise<void>;
}): Runtime {
  const { deployment, config, keyring, background, close } = parts;
  const { ledgers, sealer } = deployment;
  const adapterOf = (name: string) => adapterNamed(deployment, name).adapter;
  return {
    prepare: (request) => prepare(deployment, request),
    propose: (operation, input, options) => propose(deployment, operation, input, options),
    plan: (request, options) => planTraced(deployment, request, options),
    execute: (license, action, options) => execute(deployment, license, action, options),
    ensure: (license, action, options) => ensure(deployment, license, action, options),
    open: (license, options) => openTask(deployment, license, options),
    task: (license, work, options) => runTask(deployment, license, work, options),
    draft: (adapter, options) => openDraft(deployment, adapter, options),
    check: (approval, action, options) =>
      'license' in approval
        ? checkSigned(deployment, approval.license, action, options)
        : checkProposal(deployment, approval.proposal, action, options),
    issuersFor: (proposal) => issuersFor(deployment, proposal),
    shadow: (approval, action, options) => shadowTraced(deployment, approval, action, options),
    continuation: (from, name) => continuationGate(deployment, from, name),
    continuations: () => openContinuations(ledgers),
    reopen: (decision, evidence) =>
      reopenContinuation({ ledgers, sealer, operators: operatorKeys(config) }, decision, evidence),
    wait: (occurrence, options) => waitForVerdict(deployment, occurrence, options),
    survey: async (name) => await adapterOf(name).survey(),
    prove: async (name) =>
      await proveService(provingContext(deployment, name), adapterOf(name), { asked: true }),
    query: (request) => query(deployment, request),
    recover: async (options) => {
      await background.recovery?.catch(() => {});
      return await recoverTraced(deployment, options);
    },
    resolve: (resolution, evidence) =>
      resolveOccurrence({ ledgers, sealer, operators: operatorKeys(config) }, resolution, evidence),
    terminal: (occurrence) => ledgers.terminal(occurrence),
    receipt: (occurrence, options) =>
      receiptOf({ ledgers, signer: createSigner(keyring) }, occurrence, options),
    get receiptKeys() {
      return receiptKeys(keyring).map(({ publicKey }) => publicKey);
    },
    verifyJournal: () => ledgers.verify(),
    ledgers,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function planTraced(
  deployment: Deployment,
  request: PlanRequest,
  options?: PlanOptions,
): Promise<Proposal> {
  const adapter = request?.adapter;
  const activity = { kind: 'plan', ...(deployment.adapters.has(adapter) && { adapter }) } as const;
  const plan = (reporting: Deployment) => rehearse(reporting, request, options);
  return traced(deployment, activity, plan, () => ({ kind: 'done' }));
}

function shadowTraced(
  deployment: Deployment,
  approval: unknown,
  action: unknown,
  options?: ExecuteOptions,
): Promise<Shadowed> {
  const work = (reporting: Deployment) => shadow(reporting, approval, action, options);
  return traced(deployment, { kind: 'shadow' }, work, ({ record: { would } }) => ({
    kind: 'shadow',
    would,
  }));
}

/** The public keys of those who may resolve, by name. */
export function operatorKeys({ operators = {} }: Pick<RuntimeConfig, 'operators'>): OperatorKeys {
  return new Map(
    Object.entries(operators).map(([name, operator]) => {
      const keys = [operator?.key].flat();
      if (keys.length > 0 && keys.every((key) => typeof key === 'string')) return [name, keys];
      throw new EffectMatchError(
        'ERR_EM_CONFIG_INVALID',
        `operator "${name}" needs a key: a public key, as text`,
      );
    }),
  );
}

/** Opens and admits one adapter, and fixes the frame that its licenses presuppose. */
async function admitAdapter(
  deployment: Deployment,
  name: string,
  factory: AdapterFactory,
): Promise<Admitted> {
  const { clock, reached, sealer, ids, leaseMs } = deployment;
  const adapter = await factory.open({ name, clock, reached, leaseMs });
  try {
    await admit({ name, sealer, ids, clock }, adapter);
    const { kind, backend, code } = adapter.identity;
    const identity = Object.freeze({ kind, backend, code });
    const identityDigest = digestValueOf('effectmatch/identity/v1', identity);
    const registrationText = canonical(adapter.registration);
    const operations = identifyOperations(deployment.operations.values(), name);
    const frame = frameRecord.parse({
      version: 1,
      adapter: name,
      capability: adapter.capability,
      registration: digestText('effectmatch/registration/v1', registrationText),
      identity: identityDigest,
      channels: [...adapter.channels],
      policy: deployment.policyDigest,
      contract: deployment.contract,
      ...(operations !== undefined && { operations }),
    });
    const frameDigest = digestRecord(frameRecord, frame);
    const registration = freezeDeep(JSON.parse(registrationText) as Registration);
    return {
      name,
      adapter,
      frame,
      frameDigest,
      registration,
      registrationText,
      identity,
      identityDigest,
    };
  } catch (error) {
    await adapter.close();
    throw error;
  }
}
