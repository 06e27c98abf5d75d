import type { Adapter } from '../contract/adapter.ts';
import type { Ledgers } from '../contract/ledgers.ts';
import { digestText } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Digest } from '../protocol/record.ts';
import { type AdmissionContext, tryService } from './admit.ts';
import { isTriedLater } from './deployment.ts';

/** Whether a live service has been shown to do what its adapter declares. */
export type ServiceProof =
  /** The adapter's probes do not reach a live service: they ran when it was opened. */
  | { readonly kind: 'not-needed' }
  /** `tried`: in this call, or earlier with the same fingerprint. */
  | { readonly kind: 'proven'; readonly tried: 'now' | 'earlier' }
  | { readonly kind: 'unproven'; readonly why: string };

export interface ProvingContext extends AdmissionContext {
  readonly ledgers: Pick<Ledgers, 'keep' | 'document'>;
  /** A keyed digest, which reveals nothing about the secret without the keyring. */
  readonly digestSecret: (secret: string) => string;
}

const DOMAIN = 'effectmatch/service-proof/v1';

/**
 * Trials in this process, so that executions need not ask the ledger again and concurrent ones
 * share a trial.
 */
const known = new WeakMap<Adapter, Map<string, Promise<ServiceProof>>>();

/**
 * Tries a live service once per fingerprint: service, operations, credential and adapter code. The
 * ledger keeps the sealed result. A failure is kept too: otherwise every execution would send
 * samples to a service that acts on each of them. With `asked`, a service that failed before is
 * tried again.
 */
export async function proveService(
  context: ProvingContext,
  adapter: Adapter,
  options: { readonly asked?: boolean } = {},
): Promise<ServiceProof> {
  if (!isTriedLater(adapter)) return { kind: 'not-needed' };
  const subject = subjectOf(context, adapter);
  const tries = known.get(adapter) ?? new Map<string, Promise<ServiceProof>>();
  known.set(adapter, tries);
  const underWay = options.asked === true ? undefined : tries.get(subject);
  if (underWay !== undefined) return await underWay;
  const trying = findOrTry(context, adapter, subject, options.asked === true);
  tries.set(subject, trying);
  const proof = await trying.catch((error: unknown) => {
    tries.delete(subject);
    throw error;
  });
  // The ledger remembers a failure. A service that did not answer is tried again.
  if (proof.kind === 'proven')
    tries.set(subject, Promise.resolve({ kind: 'proven', tried: 'earlier' }));
  else tries.delete(subject);
  return proof;
}

/** Whether a live service is proven for the current credential. Sends nothing. */
export async function isProven(context: ProvingContext, adapter: Adapter): Promise<boolean> {
  const subject = subjectOf(context, adapter);
  const found = await known.get(adapter)?.get(subject);
  return found?.kind === 'proven' || (await isKept(context, resultOf(subject, 'passed')));
}

async function findOrTry(
  context: ProvingContext,
  adapter: Adapter,
  subject: string,
  asked: boolean,
): Promise<ServiceProof> {
  const passed = resultOf(subject, 'passed');
  const failed = resultOf(subject, 'failed');
  if (await isKept(context, passed)) return { kind: 'proven', tried: 'earlier' };
  if (!asked && (await isKept(context, failed))) {
    const why = `adapter "${context.name}" failed an admission probe before; have it tried again: effectmatch doctor`;
    return { kind: 'unproven', why };
  }
  try {
    await tryService(context, adapter);
  } catch (error) {
    if (!(error instanceof EffectMatchError)) throw error;
    if (error.code === 'ERR_EM_ADAPTER_REFUSED')
      await context.ledgers.keep(failed.digest, failed.text);
    else if (error.code !== 'ERR_EM_ADAPTER_UNAVAILABLE') throw error;
    return { kind: 'unproven', why: error.message };
  }
  if (subjectOf(context, adapter) !== subject) {
    return {
      kind: 'unproven',
      why: `the credential of adapter "${context.name}" changed while its service was tried`,
    };
  }
  await context.ledgers.keep(passed.digest, passed.text);
  return { kind: 'proven', tried: 'now' };
}

interface Result {
  readonly digest: Digest;
  readonly text: string;
}

/** Contains no time, so that two processes with the same result store the same document. */
function resultOf(subject: string, result: 'passed' | 'failed'): Result {
  const text = canonical({ version: 1, result, subject });
  return { text, digest: digestText(DOMAIN, text) };
}

async function isKept({ ledgers }: ProvingContext, { digest, text }: Result): Promise<boolean> {
  return (await ledgers.document(digest)) === text;
}

/** The subject of a proof. If it changes, the service is tried again. */
function subjectOf({ digestSecret }: ProvingContext, adapter: Adapter): string {
  const { kind, backend, code } = adapter.identity;
  const service = adapter.probe.fingerprint?.(digestSecret) ?? '';
  return canonical({ capability: adapter.capability, identity: { kind, backend, code }, service });
}
