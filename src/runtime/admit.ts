import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Adapter,
  Approval,
  PromotableAdapter,
  RemoteAdapter,
  Stage,
  Staged,
} from '../contract/adapter.ts';
import { type Clock, deadlineIn, type IdSource, instant, isOver } from '../contract/clock.ts';
import type { Certificate, Claim, ConsumedPermit, MarkerText } from '../contract/proof.ts';
import type { Sealer } from '../contract/seal.ts';
import { requestDigest } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import { markerRecord } from '../protocol/marker.ts';
import type { ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { isTriedLater } from './deployment.ts';
import { markerText } from './settle.ts';

/** Every probe that can fail an admission. A declared capability counts only if its probes pass. */
export const PROBES = [
  'profile-supported',
  'held-candidate-invisible',
  'observes-own-write',
  'channels-answer',
  'discard-leaves-nothing',
  'void-marker-fences',
  'capability-rendered',
  'deterministic-request',
  'exclusive-credential',
  'idempotent-service',
] as const;
export type Probe = (typeof PROBES)[number];

export interface AdmissionContext {
  readonly name: string;
  readonly sealer: Sealer;
  readonly ids: IdSource;
  readonly clock: Clock;
}

const NOTHING = '0'.repeat(64);
const ZEROS = { approved: NOTHING, observed: NOTHING, certificate: NOTHING, claim: NOTHING };

interface Attempted {
  readonly occurrence: OccurrenceId;
  readonly execution: ExecutionId;
}

/**
 * Checks that the adapter really controls what it declares, by probing an object reserved for that.
 * Probes that reach a live service are left to {@link tryService}.
 */
export async function admit(context: AdmissionContext, adapter: Adapter): Promise<void> {
  const { profile } = adapter.registration;
  demand(
    context,
    'profile-supported',
    adapter.profiles.includes(profile),
    `it does not support profile "${profile}"`,
  );
  const stated = adapter.registration.capability ?? 'PROMOTABLE';
  const agree = stated === adapter.capability;
  demand(
    context,
    'capability-rendered',
    agree,
    `approvers would read ${stated}, and it is ${adapter.capability}`,
  );
  if (adapter.capability === 'MEDIATED') admitMediated(context, adapter);
  else if (adapter.capability === 'PROMOTABLE' && !isTriedLater(adapter))
    await admitPromotable(context, adapter);
}

/** Probes a live service to see whether it does what its adapter declares. */
export async function tryService(context: AdmissionContext, adapter: Adapter): Promise<void> {
  if (adapter.capability === 'MEDIATED') await tryMediated(context, adapter);
  else if (adapter.capability === 'PROMOTABLE') await admitPromotable(context, adapter);
}

function demand(context: AdmissionContext, probe: Probe, passed: boolean, what: string): void {
  if (passed) return;
  throw new EffectMatchError(
    'ERR_EM_ADAPTER_REFUSED',
    `adapter "${context.name}" failed the admission probe ${probe}: ${what}`,
  );
}

async function admitPromotable(
  context: AdmissionContext,
  adapter: PromotableAdapter,
): Promise<void> {
  const { ids } = context;
  const token = ids.hex(8);
  const occurrence = `occ_${ids.hex(20)}` as OccurrenceId;
  const attempt = { occurrence, execution: `exe_${ids.hex(16)}` as ExecutionId };
  const { probe, markers } = adapter;
  const { credentials } = await adapter.survey();
  try {
    const first = await holdProbe(context, adapter, attempt, { token, credentials });
    if (first.kind === 'failed') throw unavailable(context, 'hold a candidate');
    await probeCandidate(context, adapter, first.stage, token);

    await voidProbe(context, adapter, marker(context, 'void', attempt));
    const second = await stageProbe(adapter, attempt, { token, credentials });
    if (second.kind === 'held') {
      const { stage } = second;
      const deadline = deadlineIn(context.clock, PROBE_MS);
      const terms = { marker: marker(context, 'committed', attempt), credentials, deadline };
      const promotion = await probePermit(stage, attempt, terms)
        .then((permit) => stage.promote(permit))
        .catch(() => undefined);
      await stage.discard();
      const fenced = promotion?.kind !== 'confirmed';
      demand(context, 'void-marker-fences', fenced, 'it promoted a candidate over a void marker');
    }
    demand(
      context,
      'void-marker-fences',
      !(await probe.durable(token)),
      'a fenced candidate became durable',
    );
  } finally {
    await markers.forget(occurrence);
  }
}

/** How long admission waits for other writers. */
const BUSY_MS = 30_000;

async function holdProbe(
  context: AdmissionContext,
  ...staged: Parameters<typeof stageProbe>
): ReturnType<typeof stageProbe> {
  const until = deadlineIn(context.clock, BUSY_MS);
  for (;;) {
    const result = await stageProbe(...staged);
    const isPrevented = result.kind === 'failed' && result.transient === true;
    if (!isPrevented || isOver(context.clock, until)) return result;
    await sleep(100);
  }
}

const VOID_TRIES = 20;
/** How long a probe's permit can be used. */
const PROBE_MS = 60_000;

/**
 * Retries while busy: other processes may probe at the same moment, and a void marker that was not
 * written fences nothing.
 */
async function voidProbe(
  context: AdmissionContext,
  adapter: PromotableAdapter,
  marker: MarkerText,
): Promise<void> {
  for (let tries = 0; tries < VOID_TRIES; tries += 1) {
    if ((await adapter.markers.void(marker)).kind !== 'busy') return;
  }
  throw unavailable(context, 'write a marker');
}

function unavailable(context: AdmissionContext, what: string): EffectMatchError {
  return new EffectMatchError(
    'ERR_EM_ADAPTER_UNAVAILABLE',
    `adapter "${context.name}" could not ${what} to try the backend: another process holds its lock. Nothing was changed, and no license was used`,
  );
}

async function probeCandidate(
  context: AdmissionContext,
  adapter: PromotableAdapter,
  stage: Stage,
  token: string,
): Promise<void> {
  const { probe, channels } = adapter;
  try {
    demand(
      context,
      'held-candidate-invisible',
      !(await probe.durable(token)),
      'a held write was already durable',
    );
    const evidence = await stage.observe();
    const seen = Iterator.from(evidence.records).some((record) => record.target === probe.target);
    demand(
      context,
      'observes-own-write',
      seen,
      'its observer did not report a write it had just made',
    );
    for (const channel of channels) {
      const answered = evidence.channels.some(
        (report) => report.channel === channel && report.kind !== 'silent',
      );
      demand(context, 'channels-answer', answered, `evidence channel "${channel}" did not answer`);
    }
  } finally {
    await stage.discard();
  }
  demand(
    context,
    'discard-leaves-nothing',
    !(await probe.durable(token)),
    'a discarded write became durable',
  );
}

async function stageProbe(
  adapter: PromotableAdapter,
  attempt: Attempted,
  { token, credentials }: { readonly token: string; readonly credentials: string },
): Promise<Staged> {
  const claim = { sealed: { record: attempt }, digest: NOTHING } as unknown as Claim;
  const certificate = { digest: NOTHING, credentials } as unknown as Certificate;
  return adapter.stage(claim, certificate, adapter.probe.action(token));
}

/** A permit that fits the stage, so that only the void marker can be the reason for a refusal. */
async function probePermit(
  stage: Stage,
  attempt: Attempted,
  terms: Pick<ConsumedPermit, 'marker' | 'credentials' | 'deadline'>,
): Promise<ConsumedPermit> {
  const { candidate, evidence } = await stage.observe();
  const { observed, ...digests } = ZEROS;
  const bound = { candidate, evidence, observed };
  const record = { version: 1, ...attempt, ...digests, bound, consumedAt: instant(0) };
  return { record, digest: NOTHING, ...terms } as unknown as ConsumedPermit;
}

/** All-zero digests identify the markers of probes. They are removed when admission ends. */
function marker(
  context: AdmissionContext,
  disposition: 'committed' | 'void',
  attempt: Attempted,
): MarkerText {
  const at = instant(0);
  const fields =
    disposition === 'void' ? { voidedAt: at } : { ...ZEROS, permit: NOTHING, consumedAt: at };
  const record = markerRecord.parse({ version: 1, disposition, ...attempt, ...fields });
  return markerText(context.sealer.seal(markerRecord, record));
}

/** The same approved outcome, with everything reordered whose order has no meaning. */
function reorder(approval: Approval): Approval {
  const turn = (value: unknown): unknown => {
    if (Array.isArray(value)) return value;
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([name, inner]) => [name, turn(inner)]),
    );
  };
  const { effects, requires } = approval;
  return {
    ...approval,
    effects: effects.toReversed().map(turn),
    requires: requires.toReversed().map(turn),
  } as Approval;
}

function admitMediated(context: AdmissionContext, adapter: RemoteAdapter): void {
  const { probe } = adapter;
  const named = typeof probe.fingerprint === 'function';
  demand(
    context,
    'exclusive-credential',
    named,
    'its probe has no fingerprint, so a changed credential would not be noticed',
  );
  const samples = probe.samples();
  const same = samples.every((sample) => {
    const other = reorder(sample);
    const built = [sample, other, other].map((approval) =>
      requestDigest(adapter.buildRequest(approval, {})),
    );
    return new Set(built).size === 1;
  });
  demand(
    context,
    'deterministic-request',
    samples.length > 0 && same,
    'the same approved outcome does not always give the same request, so no permit could bind it',
  );
}

async function tryMediated(context: AdmissionContext, { probe }: RemoteAdapter): Promise<void> {
  demand(
    context,
    'exclusive-credential',
    await probe.exclusiveCredential(),
    'the service accepts the same request without the gateway credential; declare it OPAQUE or close that path',
  );
  demand(
    context,
    'idempotent-service',
    await probe.idempotent(),
    'the service does not honour the idempotency key; declare it OPAQUE',
  );
}
