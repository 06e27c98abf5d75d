import { setTimeout as sleep } from 'node:timers/promises';
import type { AdapterRefusal } from '../backend/setup.ts';
import type { ChannelReport } from '../contract/adapter.ts';
import type { ChangeRecord } from '../protocol/effect.ts';
import type { Assigned } from '../protocol/observation.ts';
import type { Target } from '../protocol/registration.ts';
import { normaliseRecord } from './registered.ts';
import type { ReadBackFindings } from './remote.ts';

/**
 * What must answer before an outcome counts as established: where the records are found, and how
 * far they reach.
 */
export const CHANNELS = ['look-up', 'coverage'] as const;

/** Why nothing is concluded from an answer that does not show the request. */
export const NOT_FOUND =
  'the service knows no finished request with this key, which may still be on its way';

/** What an independent request finds about what was sent. */
export interface ReadBackResult {
  readonly records: readonly ChangeRecord[];
  /**
   * Changes that were seen and may not come from this request; any leaves the outcome open. 0 by
   * default.
   */
  readonly unattributed?: number;
  /**
   * The service says that it refused the request under this key for good and will never carry it
   * out. With no records this proves that nothing became durable.
   */
  readonly refused?: string;
}

/** What an operation declares about its read-back. */
export interface Declared {
  readonly covers: readonly string[];
  readonly assigns: readonly string[];
}

/** Looks, and again after each of these waits while nothing is found. Nothing is sent again. */
export async function lookAgain(
  look: () => Promise<ReadBackResult | string>,
  waitsMs: readonly number[] = [],
): Promise<ReadBackResult | string> {
  let found = await look();
  for (const waitMs of waitsMs) {
    if (typeof found !== 'string') break;
    await sleep(waitMs);
    found = await look();
  }
  return found;
}

/** What was found, as evidence. */
export function findingsOf(
  found: ReadBackResult,
  { covers, assigns }: Declared,
  more: readonly ChannelReport[] = [],
): ReadBackFindings {
  const { refused, unattributed = 0 } = found;
  const records = found.records.map(normaliseRecord);
  const channels: readonly ChannelReport[] = [
    { channel: 'look-up', kind: 'records', count: records.length },
    { channel: 'coverage', kind: 'touched', targets: covers },
    ...more,
  ];
  const assigned = assignedBy(assigns, records);
  return { records, channels, assigned, unattributed, ...(refused !== undefined && { refused }) };
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

/** Checks what an operation declares against what is registered. */
export function checkDeclared(
  name: string,
  { covers, assigns }: Declared,
  targets: readonly Target[],
  refused: AdapterRefusal,
): void {
  const uncovered = targets.find((target) => !covers.includes(target.name));
  if (uncovered !== undefined) {
    throw refused(
      `the read-back of operation "${name}" does not cover "${uncovered.name}", in which it ` +
        'promises that nothing else changes; cover it, or do not register it',
    );
  }
  for (const place of assigns) {
    const { target, column } = placeOf(place);
    const registered = targets.find((candidate) => candidate.name === target);
    if (!registered?.columns.includes(column))
      throw refused(`"${place}" in assigns of operation "${name}" is not a registered column`);
  }
}
