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
import { parseIssuerKey } from '../crypto/issuer-key.ts';
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
import { type CheckOptions, check } from './check.ts';
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
import { type OperatorKeys, reopenContinuation, resolveOccurrence } from './resolve.ts';
import { type ShadowDraft, type Shadowed, shadow } from './shadow.ts';
import { openTask, runTask, type Task, type TaskOptions } from './task.ts';
import { quietly, type Telemetry, traced } from './telemetry.ts';
import { type VerdictWaitOptions, waitForVerdict } from './wait.ts';

/**
 * The configuration of a deployment, exported by `effectmatch.config.ts` and passed to {@link
 * createRuntime}.
 */
export interface RuntimeConfig {
  /**
   * The path of the ledger's SQLite file, which is never the business database; or, for a ledger
   * that several machines share, the address of a login that `effectmatch provision --ledger` made
   * (`postgres://…`); or another ledger.
   */
  readonly store: string | LedgersFactory;
  /**
   * The path of the keyring file (created with mode 0600 if absent), or `{ env: 'EFFECTMATCH_KEYS'
   * }`.
   */
  readonly keyring: KeyringSource;
  readonly issuers: Readonly<Record<string, IssuerConfig>>;
  /**
   * Who may state what became of an indeterminate effect. The public keys have the same form as
   * those of issuers.
   */
  readonly operators?: Readonly<Record<string, { readonly key: string | readonly string[] }>>;
  /** Operation contracts, each under its own name. */
  readonly operations?: Readonly<Record<string, Operation>>;
  // biome-ignore lint/suspicious/noExplicitAny: adapters with different actions share one map; each checks its own.
  readonly adapters: Readonly<Record<string, AdapterFactory<any>>>;
  /** How long a silent attempt counts as alive. The default is 30 s. */
  readonly leaseMs?: number;
  /**
   * How long to retry an execution under the same license if other transactions prevent it (a lock,
   * a deadlock, a serialization failure). The default is 30 s; 0 means never.
   */
  readonly restageMs?: number;
  /** Where the command line keeps the requests of agents; see `effectmatch/requests`. */
  readonly requests?: RequestsConfig;
  /** The workflows of the deployment; see `effectmatch/workflow`. */
  readonly workflows?: WorkflowsConfig;
  /** The address of `effectmatch serve` and who may sign in; see `effectmatch/console`. */
  readonly console?: ConsoleConfig;
  /** The agents that `effectmatch mcp` serves, and what each may ask for. */
  readonly agents?: Readonly<Record<string, AgentConfig>>;
  /** Other MCP servers that agents reach through `effectmatch mcp`, and what each tool does. */
  readonly upstreams?: Readonly<Record<string, UpstreamConfig>>;
  /**
   * Where to report spans and metrics, for example `openTelemetry()` of `effectmatch/telemetry`. By
   * default nothing is reported.
   */
  readonly telemetry?: Telemetry;
  /**
   * Whether to settle interrupted attempts at start; true by default. Opening waits for this for at
   * most one second. The rest continues in the background, which is safe because recovery can run
   * during anything else. `runtime.recover()` waits for it.
   */
  readonly recoverAtStart?: boolean;
}

/** What tests may replace. No public export takes it. */
export interface Internals {
  readonly clock?: Clock;
  readonly ids?: IdSource;
  readonly reached?: Reached;
  /** Replacements for our checks, for the ablations of the evaluation. */
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
   * Lets an operation's contract compute what to approve for this input, and renders it for
   * approval.
   */
  propose(operation: string, input: unknown, options: ProposeOptions): Promise<Proposal>;
  /** Rehearses an action twice, always rolled back, and renders its effects for approval. */
  plan(request: PlanRequest, options?: PlanOptions): Promise<Proposal>;
  /**
   * Runs the action once under the license and returns the verdict. Every verdict is recorded,
   * except refusals that spent nothing and were repeated too often. If it committed, `generated`
   * has the values that the backend assigned to the approval's labels, and `results` has the rows
   * that the statements returned.
   */
  execute(
    license: SignedLicense | unknown,
    action: unknown,
    options?: ExecuteOptions,
  ): Promise<Executed>;
  /**
   * Executes the license if it is unused. Otherwise waits for the attempt that holds it, recovers
   * that attempt if its lease has expired, or returns the recorded verdict. Can be called
   * repeatedly, from any number of processes: there is one effect and one verdict.
   */
  ensure(
    license: SignedLicense | unknown,
    action: unknown,
    options?: EnsureOptions,
  ): Promise<Ensured>;
  /**
   * Opens a task under the license: a private candidate that takes many calls. `finish` compares it
   * with the approval once, and it becomes durable or is discarded as a whole. Returns the terminal
   * instead if the license is refused or no candidate can be held.
   */
  open(license: SignedLicense | unknown, options?: TaskOptions): Promise<Task | Terminal>;
  /**
   * Opens a task, runs `work` with it, and finishes it when `work` returns. If `work` throws, the
   * task is discarded and the error is rethrown. At the deadline, when the calls are used up or
   * when `signal` aborts, the task is discarded and its terminal is returned.
   */
  task(
    license: SignedLicense | unknown,
    work: (task: Task) => unknown,
    options?: TaskOptions,
  ): Promise<Executed>;
  /**
   * Opens a draft, for work without an approval: calls run on a candidate that can only be
   * discarded, and are recorded. `submit` rehearses the recorded calls and proposes their outcome.
   */
  draft(adapter: string, options?: DraftTaskOptions): Promise<Draft>;
  /**
   * Why `execute` would refuse this license now, or why this proposal is out of date; undefined if
   * there is no reason. Records and spends nothing. Omit the action to check for a task.
   */
  check(
    approval: { readonly license: unknown } | { readonly proposal: unknown },
    action: unknown,
    options?: CheckOptions,
  ): Promise<Refusal | undefined>;
  /**
   * Who may sign a proposal under the configured designations and limits. For an operation:
   * who may sign at least some of its proposals.
   */
  issuersFor(proposal: Proposal | { readonly operation: string }): readonly string[];
  /**
   * Rehearses the action next to production and records what would have been decided under a
   * license, a proposal or a draft. Always rolled back; spends, releases and blocks nothing.
   */
  shadow(
    approval: SignedLicense | Proposal | ShadowDraft | unknown,
    action: unknown,
    options?: ExecuteOptions,
  ): Promise<Shadowed>;
  /**
   * The gate that dependent work asks before it runs. `from` can be a terminal, in this process or
   * a later one.
   */
  continuation(from: Lineage, name: string): ContinuationGate;
  /**
   * Work that was released and has not completed, oldest first. It is running or queued, or its
   * process died. It is released again only if an operator decides so.
   */
  continuations(): Promise<readonly OpenContinuation[]>;
  /**
   * Records an operator's signed decision (`signReopening`), with evidence, that work may be released
   * again because it never completed. Does not run the work.
   */
  reopen(decision: unknown, evidence: string): Promise<Acknowledgement>;
  /**
   * Waits for the verdict about an occurrence; undefined if there is none in time. Executes
   * nothing, but recovers an attempt whose lease has expired. Returns `indeterminate` only if
   * recovery could not settle it.
   */
  wait(occurrence: OccurrenceId, options?: VerdictWaitOptions): Promise<Terminal | undefined>;
  /**
   * A new survey of an adapter's boundary, as `effectmatch doctor` shows it: every outlet, and how
   * to close those that are open (`unclassified`). Changes nothing. An execution that reaches an
   * open outlet is refused.
   */
  survey(adapter: string): Promise<Survey>;
  /**
   * Tests a live service, as the first execution would: it must reject requests without the
   * credential, honour its idempotency key, and give drafts no effect. Sends samples unless the
   * service was proven before with the same operations, credential and adapter code. The ledger
   * keeps the result.
   */
  prove(adapter: string): Promise<ServiceProof>;
  /**
   * Runs one statement that the backend prevents from writing, and returns its rows. Needs no
   * approval and records nothing. Throws `ERR_EM_QUERY_REFUSED` with the backend's message.
   */
  query(request: QueryRequest): Promise<QueryRows>;
  /** Settles interrupted attempts. Waits for the recovery at start to end first. */
  recover(options?: RecoverOptions): Promise<readonly Recovered[]>;
  /**
   * Records an operator's signed decision about an indeterminate occurrence, with the evidence for
   * it. Sends nothing and releases nothing.
   */
  resolve(resolution: Resolution | unknown, evidence: string): Promise<Resolution>;
  /** The verdict about an occurrence; undefined if there is none, which is a halt. */
  terminal(occurrence: OccurrenceId): Promise<Terminal | undefined>;
  /**
   * A signed receipt of how an attempt at an occurrence ended, made from the stored terminal;
   * undefined without a verdict. Anyone with a public key from `receiptKeys` can verify it without
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

/** The domain label for digests of adapter secrets. */
export const SECRET_DOMAIN = 'effectmatch/secret/v1';

/**
 * Opens the store, the keys and the adapters, admits every adapter, and starts to settle what an
 * earlier process left.
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
  /** The recovery that was started when the runtime opened. */
  recovery?: Promise<unknown>;
  unwatch: () => void;
}

/** Opens the store. The adapters are admitted later. */
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
    ([name, issuer]) => [name, [issuer.key].flat().map(parseIssuerKey)] as const,
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

/** How long opening waits for recovery. The rest continues in the background. */
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

/** Waits for the work, at most this long. Errors after that are left to others who await it. */
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

/** The methods of the runtime. Each calls the function that implements it. */
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
    check: (approval, action, options) => check(deployment, approval, action, options),
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

/** The public keys of the operators, by name. */
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
