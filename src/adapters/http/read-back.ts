import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelReport, Evidence } from '../../contract/adapter.ts';
import { digestValueOf } from '../../crypto/digest.ts';
import { fillPath } from '../../http/content.ts';
import type { Gateway } from '../../http/gateway.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Assigned } from '../../protocol/observation.ts';
import type { Value } from '../../protocol/value.ts';
import { normaliseRecord } from './numbers.ts';
import type { Found, Plan, ReadBackOptions } from './options.ts';

/**
 * What must answer before an outcome counts as established: where the records are found, and how
 * far they reach.
 */
export const CHANNELS = ['look-up', 'coverage'] as const;

export interface ReadBackRequest {
  /** The idempotency key. */
  readonly key: string;
  readonly plan: Plan;
  readonly options: ReadBackOptions;
  readonly assigns: readonly string[];
  readonly window: { readonly fromMs: number; readonly toMs: number };
}

/**
 * Looks, by requests of its own, for what was sent. Only what is found counts: an answer that is
 * missing, late or unreadable, and "not found" itself, leave every channel silent, because the
 * request may still be on its way.
 */
export async function readBackEvidence(
  gateway: Gateway,
  request: ReadBackRequest,
): Promise<Evidence> {
  const { key, options, window } = request;
  let looked = await lookUp(gateway, request);
  for (const waitMs of options.waitsMs ?? []) {
    if (looked.kind === 'found') break;
    await sleep(waitMs);
    looked = await lookUp(gateway, request);
  }
  const base = { candidate: `request ${key}`, unattributed: 0, window };
  if (looked.kind === 'silent') return { ...base, ...silence(looked.why) };
  const { refused, unattributed = 0 } = looked.found;
  const records = looked.found.records.map(normaliseRecord);
  const channels: ChannelReport[] = [
    { channel: 'look-up', kind: 'records', count: records.length },
    { channel: 'coverage', kind: 'touched', targets: options.covers },
  ];
  if (options.witness !== undefined) channels.push(await askWitness(gateway, key, options.witness));
  return {
    ...base,
    unattributed,
    evidence: digestValueOf('effectmatch/http-evidence/v1', records),
    records,
    channels,
    assigned: assignedBy(request.assigns, records),
    ...(refused !== undefined && { refused }),
  };
}

type Looked =
  | { readonly kind: 'found'; readonly found: Found }
  | { readonly kind: 'silent'; readonly why: string };

async function lookUp(gateway: Gateway, { key, plan, options }: ReadBackRequest): Promise<Looked> {
  const answer = await gateway.get(fillPath(options.path, { ...options.parameters?.(plan), key }));
  if (answer.kind === 'silent') return answer;
  if (answer.kind === 'absent') return { kind: 'silent', why: NOT_FOUND };
  const found = options.found(answer.body, plan);
  return found === undefined ? { kind: 'silent', why: NOT_FOUND } : { kind: 'found', found };
}

const NOT_FOUND =
  'the service knows no finished request with this key, which may still be on its way';

async function askWitness(
  gateway: Gateway,
  key: string,
  witness: NonNullable<ReadBackOptions['witness']>,
): Promise<ChannelReport> {
  const channel = 'witness';
  const answer = await gateway.get(fillPath(witness.path, { key }));
  if (answer.kind !== 'found') {
    return {
      channel,
      kind: 'silent',
      why: answer.kind === 'silent' ? answer.why : 'it knows nothing of this key',
    };
  }
  const counts = witness.counts(answer.body);
  return counts === undefined
    ? { channel, kind: 'silent', why: 'it does not say what it counted' }
    : { channel, kind: 'counts', counts };
}

/** Evidence in which nothing is claimed. */
export function silence(
  why: string,
): Pick<Evidence, 'evidence' | 'records' | 'channels' | 'assigned'> {
  const channels = CHANNELS.map((channel) => ({ channel, kind: 'silent' as const, why }));
  return { evidence: 'none', records: [], channels, assigned: [] };
}

/**
 * The request carried no value for these columns, so whatever an inserted entry has in them, the
 * service chose.
 */
function assignedBy(
  assigns: readonly string[],
  records: readonly ChangeRecord[],
): readonly Assigned[] {
  return assigns.flatMap((place) => {
    const { target, column } = placeOf(place);
    const fresh = records
      .filter((record) => record.op === 'insert' && record.target === target)
      .map(({ key, after }): Value | undefined => key?.[column] ?? after?.[column])
      .filter((value) => value !== undefined);
    return fresh.length === 0 ? [] : [{ target, column, fresh }];
  });
}

/** `target.column`, taken apart at the last dot. */
export function placeOf(place: string): { readonly target: string; readonly column: string } {
  const dot = place.lastIndexOf('.');
  return { target: place.slice(0, dot), column: place.slice(dot + 1) };
}
