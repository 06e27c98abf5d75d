import type { Adapter, PromotableAdapter, RemoteAdapter } from '../contract/adapter.ts';
import { type Clock, type IdSource, instant } from '../contract/clock.ts';
import type { Ledgers } from '../contract/ledgers.ts';
import type { Sealer } from '../contract/seal.ts';
import type { Reached } from '../contract/steps.ts';
import type { IssuerKey } from '../crypto/issuer-key.ts';
import type { verifyLicense } from '../crypto/signature.ts';
import { EffectMatchError } from '../errors.ts';
import type { Frame, Policy } from '../protocol/frame.ts';
import type { classify } from '../protocol/outcome.ts';
import type { Digest } from '../protocol/record.ts';
import type { Registration } from '../protocol/registration.ts';
import type { Value } from '../protocol/value.ts';
import type { CheckedLicenses } from './checked-licenses.ts';
import type { Leases } from './lease.ts';
import type { Operation } from './operation.ts';
import type { ProvingContext } from './prove.ts';
import type { RefusalBound } from './refusal-bound.ts';
import type { Telemetry } from './telemetry.ts';

/** An adapter that passed admission, and the frame that its licenses presuppose. */
export interface Admitted<A extends Adapter = Adapter> {
  readonly name: string;
  readonly adapter: A;
  readonly frame: Frame;
  readonly frameDigest: Digest;
  /** The adapter's registration at admission, as a frozen copy and as canonical text. */
  readonly registration: Registration;
  readonly registrationText: string;
  /** The adapter's identity at admission. */
  readonly identity: Readonly<A['identity']>;
  readonly identityDigest: Digest;
}

export type AdmittedPromotable = Admitted<PromotableAdapter>;
export type AdmittedRemote = Admitted<RemoteAdapter>;

/** Everything the execution path needs. `createRuntime` builds it once. */
export interface Deployment {
  readonly ledgers: Ledgers;
  readonly sealer: Sealer;
  /** Keyed digest of one value, for deployments that do not store values. */
  readonly digestValue: (target: string, column: string, value: Value) => string;
  /** Keyed digest of a secret. */
  readonly digestSecret: (secret: string) => string;
  /** Keyed digest of E, for deployments that do not store values. */
  readonly digestObserved: (lines: Iterable<string>) => Digest;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly reached: Reached;
  /** Absent unless configured. */
  readonly telemetry?: Telemetry | undefined;
  /** Compares E with A before a promotion. Only an ablation replaces it. */
  readonly classify: typeof classify;
  /** Whether a registered key signed a license. Only an ablation replaces it. */
  readonly verifyLicense: typeof verifyLicense;
  readonly adapters: ReadonlyMap<string, Admitted>;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly policy: Policy;
  readonly policyDigest: Digest;
  /** Public keys of each designated issuer. */
  readonly issuerKeys: ReadonlyMap<string, readonly IssuerKey[]>;
  /** Digest of the protocol and runtime code. */
  readonly contract: Digest;
  readonly leaseMs: number;
  /** How long to retry a stage that other transactions prevent. */
  readonly restageMs: number;
  readonly leases: Leases;
  readonly licenses: CheckedLicenses;
  readonly refusals: RefusalBound;
  /** The tasks that are open in this runtime. Each is ended before the adapters close. */
  readonly tasks: Set<OpenTask>;
}

/** A task that can be ended from outside. */
export interface OpenTask {
  /** Discards the task, and waits until that is done. */
  interrupt(why: string): Promise<unknown>;
}

/** The parts of the deployment that are needed to prove an adapter's service. */
export function provingContext(deployment: Deployment, name: string): ProvingContext {
  const { sealer, ids, clock, ledgers, digestSecret } = deployment;
  return { name, sealer, ids, clock, ledgers, digestSecret };
}

/** The adapter with this name. Throws an error that lists the configured ones if there is none. */
export function adapterNamed(deployment: Deployment, name: string): Admitted {
  const admitted = deployment.adapters.get(name);
  if (admitted === undefined) {
    const known = [...deployment.adapters.keys()].join(', ') || 'none';
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      `no adapter named "${name}" is configured here (configured: ${known}); nothing was changed`,
    );
  }
  return admitted;
}

export function nowInstant(deployment: Deployment): string {
  return instant(deployment.clock.now());
}

export function isPromotable(admitted: Admitted): admitted is AdmittedPromotable {
  return admitted.adapter.capability === 'PROMOTABLE';
}

/**
 * Whether the adapter's probes reach a live service. Such probes run once per fingerprint, not
 * every time a runtime opens.
 */
export function isTriedLater({ capability, probe }: Adapter): boolean {
  return (
    capability === 'MEDIATED' || (capability === 'PROMOTABLE' && probe.fingerprint !== undefined)
  );
}
