import { setTimeout as sleep } from 'node:timers/promises';
import type { AdapterRefusal } from '../backend/setup.ts';
import type { ChannelReport } from '../contract/adapter.ts';
import type { ChangeRecord } from '../protocol/effect.ts';
import type { Assigned } from '../protocol/observation.ts';
import type { Target } from '../protocol/registration.ts';
import { normaliseRecord } from './registered.ts';
import type { ReadBackFindings } from './remote.ts';

/**
 * The channels that must report before an outcome is established: the records, and which targets
 * they cover.
 */
export const CHANNELS = ['look-up', 'coverage'] as const;

/** Why an answer that does not show the request proves nothing. */
export const NOT_FOUND =
  'the service knows no finished request with this key, which may still be on its way';

/** What an independent request found out about the sent request. */
export interface ReadBackResult {
  readonly records: readonly ChangeRecord[];
  /**
   * The number of changes that may not come from this request. If there are any, the outcome stays
   * open. Default: 0.
   */
  readonly unattributed?: number;
  /**
   * The service says that it refused the request under this key and will never carry it out.
   * Without records, this proves that nothing became durable.
   */
  readonly refused?: string;
}

/** What an operation declares about its read-back. */
export interface Declared {
  readonly covers: readonly string[];
  readonly assigns: readonly string[];
}

/** Looks once, and again after each wait while nothing is found. The request is not sent again. */
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

/** Converts the findings to evidence. */
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
 * The request had no values for these columns, so the service chose the values of inserted entries.
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

/** Splits `target.column` at the last dot. */
export function placeOf(place: string): { readonly target: string; readonly column: string } {
  const dot = place.lastIndexOf('.');
  return { target: place.slice(0, dot), column: place.slice(dot + 1) };
}

/** Checks an operation's declarations against the registration. */
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
