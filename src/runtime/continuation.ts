import type { Ledgers } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { digestRecord, occurrenceId } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import {
  type Acknowledgement,
  acknowledgementRecord,
  continuationOf,
  type Halt,
} from '../protocol/continuation.ts';
import { type License, licenseRecord, type SignedLicense } from '../protocol/license.ts';
import { permitRecord } from '../protocol/permit.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import type { TerminalOf } from '../protocol/terminal.ts';
import { type Deployment, isPromotable, nowInstant } from './deployment.ts';
import { openMarker } from './settle.ts';

/** What a worker presents: the occurrence and the authority under which its work was registered. */
export interface Lineage {
  readonly occurrence: OccurrenceId;
  readonly lineage: Digest;
}

/**
 * The occurrences that a license buys, in the order in which they are claimed, as `continuation`
 * and `terminal` ask for them. So the holder of a license can ask what became of it without having
 * seen a verdict: the process that executed it may have died. It says nothing about whether the
 * license is valid or was ever used.
 */
export function lineagesOf({ license }: SignedLicense): readonly [Lineage, ...Lineage[]] {
  const lineage = digestRecord(licenseRecord, license);
  const [first, ...further] = occurrencesOf(license, lineage);
  return [
    { occurrence: first, lineage },
    ...further.map((occurrence) => ({ occurrence, lineage })),
  ];
}

/** The occurrences that a license with this digest buys, in order. */
export function occurrencesOf(
  { issuer, nonce, occurrences }: License,
  lineage: Digest,
): readonly [OccurrenceId, ...OccurrenceId[]] {
  const nth = (index: number) => occurrenceId({ issuer, nonce, license: lineage, index });
  return [nth(0), ...Array.from({ length: occurrences - 1 }, (_, index) => nth(index + 1))];
}

/** What became of dependent work: it ran, with this result, or it was halted, and why. */
export type Release<T> =
  | { readonly kind: 'released'; readonly value: T }
  | { readonly kind: 'halted'; readonly why: Halt };

/**
 * Runs dependent work if, and only if, the occurrence is committed, the continuation is registered
 * under the same license, the committed state is still there, and nothing was released for it
 * before. The release is durable before the work starts: the work runs at most once, even if this
 * process dies in it.
 */
export async function release<T>(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
  work: () => T | Promise<T>,
): Promise<Release<T>> {
  // Before the release is recorded: it is there once.
  if (typeof work !== 'function')
    throw new EffectMatchError('ERR_EM_USAGE', 'release needs the work, as a function');
  const begun = await beginRelease(deployment, from, continuation);
  if (begun.kind === 'halted') return begun;
  const value = await work();
  deployment.reached('continuation:work-done');
  await deployment.ledgers.acknowledge(acknowledge(deployment, from, continuation, 'completed'));
  return { kind: 'released', value };
}

/**
 * The same for work that runs elsewhere, for example behind HTTP: if it is released, that is
 * durable, and the caller runs the work once and then says that it is complete.
 */
export async function beginRelease(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
): Promise<Release<undefined>> {
  const { ledgers } = deployment;
  const { occurrence, lineage } = from ?? {};
  const names = [occurrence, lineage, continuation];
  if (!names.every((name) => typeof name === 'string')) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'a continuation is asked for with a terminal (or its occurrence and lineage) and a name',
    );
  }
  const holder = await ledgers.holder(occurrence);
  const registered = holder?.claim.record.continuations ?? [];
  const fieldMatch = holder?.license.fieldMatch;
  const decision = continuationOf(await ledgers.terminal(occurrence), {
    continuation,
    lineage,
    registered,
    fieldMatch,
  });
  if (decision.kind === 'halt') return { kind: 'halted', why: decision.why };
  if (!(await stateIsThere(deployment, decision.terminal)))
    return { kind: 'halted', why: 'state-missing' };
  deployment.reached('continuation:checked');

  if (!(await ledgers.acknowledge(acknowledge(deployment, from, continuation, 'released'))))
    return { kind: 'halted', why: 'already-released' };
  deployment.reached('continuation:acknowledged');
  return { kind: 'released', value: undefined };
}

/** Records that released work is done; false if it was not released, or is recorded already. */
export async function completeRelease(
  deployment: Deployment,
  from: Lineage,
  continuation: string,
): Promise<boolean> {
  const { ledgers } = deployment;
  const { occurrence, lineage } = from;
  const known = await ledgers.acknowledgements(occurrence);
  const isReleased = known.some(
    (one) => one.continuation === continuation && one.lineage === lineage,
  );
  if (!isReleased) return false;
  return await ledgers.acknowledge(acknowledge(deployment, from, continuation, 'completed'));
}

function acknowledge(
  deployment: Deployment,
  { occurrence, lineage }: Lineage,
  continuation: string,
  state: Acknowledgement['state'],
): Sealed<Acknowledgement> {
  const record = { version: 1 as const, occurrence, continuation, lineage, state };
  return deployment.sealer.seal(acknowledgementRecord, { ...record, at: nowInstant(deployment) });
}

/**
 * Work that was released and has not completed: it is running, or it was interrupted and will not
 * run again.
 */
export interface OpenContinuation extends Lineage {
  readonly continuation: string;
  readonly task: string;
  readonly releasedAt: string;
}

/** Every release without its completion, oldest first. */
export async function openContinuations(ledgers: Ledgers): Promise<readonly OpenContinuation[]> {
  const open: OpenContinuation[] = [];
  for (const { occurrence, lineage, continuation, at: releasedAt } of await ledgers.uncompleted()) {
    const holder = await ledgers.holder(occurrence);
    const task = holder?.claim.record.task ?? '';
    open.push({ occurrence, lineage, continuation, task, releasedAt });
  }
  return open;
}

/**
 * The bound durable state: the marker in the backend, or the consumed permit. A restored database
 * has neither.
 */
async function stateIsThere(
  deployment: Deployment,
  terminal: TerminalOf<'committed'>,
): Promise<boolean> {
  const admitted = deployment.adapters.get(terminal.adapter);
  if (admitted === undefined) return false;
  if (isPromotable(admitted)) {
    const stored = await admitted.adapter.markers.find(terminal.occurrence);
    if (stored === undefined) return false;
    const marker = openMarker(deployment, stored);
    return (
      marker.kind === 'valid' &&
      marker.record.disposition === 'committed' &&
      marker.record.occurrence === terminal.occurrence &&
      marker.record.execution === terminal.execution &&
      marker.record.observed === terminal.observed &&
      marker.record.permit === terminal.permit
    );
  }
  const permit = await deployment.ledgers.permit(terminal.occurrence);
  return (
    permit?.kind === 'consumed' &&
    digestRecord(permitRecord, permit.permit.record) === terminal.permit
  );
}
