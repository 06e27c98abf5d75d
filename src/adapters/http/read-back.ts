import { setTimeout as sleep } from 'node:timers/promises';
import type { Approval, ChannelReport } from '../../contract/adapter.ts';
import { fillPath } from '../../http/content.ts';
import type { Gateway } from '../../http/gateway.ts';
import type { ReadBackFindings } from '../../http/remote.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Assigned } from '../../protocol/observation.ts';
import type { HttpOperation, Plan, ReadBackOptions, ReadBackResult } from './options.ts';
import { planOf } from './plan.ts';
import { normaliseRecord } from './service.ts';

/**
 * What must answer before an outcome counts as established: where the records are found, and how
 * far they reach.
 */
export const CHANNELS = ['look-up', 'coverage'] as const;

/**
 * Looks for what was sent under this key, with separate requests. Only what is found counts: an
 * answer that is missing, late or unreadable, and "not found" itself, establish nothing, because
 * the request may still be on its way.
 */
export async function readBack(
  gateway: Gateway,
  key: string,
  { readBack: options, assigns = [] }: HttpOperation,
  approved: Approval,
): Promise<ReadBackFindings | string> {
  const { waitsMs = [], covers, witness } = options;
  const plan = planOf(approved.effects);
  let found = await lookUp(gateway, key, options, plan);
  for (const waitMs of waitsMs) {
    if (typeof found !== 'string') break;
    await sleep(waitMs);
    found = await lookUp(gateway, key, options, plan);
  }
  if (typeof found === 'string') return found;
  const { refused, unattributed = 0 } = found;
  const records = found.records.map(normaliseRecord);
  const channels: ChannelReport[] = [
    {
      channel: 'look-up',
      kind: 'records',
      count: records.length,
    },
    {
      channel: 'coverage',
      kind: 'touched',
      targets: covers,
    },
  ];
  if (witness !== undefined) channels.push(await askWitness(gateway, key, witness));
  const assigned = assignedBy(assigns, records);
  return {
    records,
    channels,
    assigned,
    unattributed,
    ...(refused !== undefined && { refused }),
  };
}

const NOT_FOUND =
  'the service knows no finished request with this key, which may still be on its way';

async function lookUp(
  gateway: Gateway,
  key: string,
  options: ReadBackOptions,
  plan: Plan,
): Promise<ReadBackResult | string> {
  const answer = await gateway.get(fillPath(options.path, { ...options.parameters?.(plan), key }));
  if (answer.kind === 'silent') return answer.why;
  if (answer.kind === 'absent') return NOT_FOUND;
  return options.found(answer.body, plan) ?? NOT_FOUND;
}

async function askWitness(
  gateway: Gateway,
  key: string,
  witness: NonNullable<ReadBackOptions['witness']>,
): Promise<ChannelReport> {
  const channel = 'witness';
  const silent = (why: string): ChannelReport => ({ channel, kind: 'silent', why });
  const answer = await gateway.get(fillPath(witness.path, { key }));
  if (answer.kind === 'silent') return silent(answer.why);
  if (answer.kind === 'absent') return silent('it knows nothing of this key');
  const counts = witness.counts(answer.body);
  if (counts === undefined) return silent('it does not say what it counted');
  return { channel, kind: 'counts', counts };
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
      .map(({ key, after }) => key?.[column] ?? after?.[column])
      .filter((value) => value !== undefined);
    return fresh.length === 0 ? [] : [{ target, column, fresh }];
  });
}

/** `target.column`, taken apart at the last dot. */
export function placeOf(place: string): { readonly target: string; readonly column: string } {
  const dot = place.lastIndexOf('.');
  return { target: place.slice(0, dot), column: place.slice(dot + 1) };
}
