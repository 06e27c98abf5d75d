import { sameValue } from './bag.ts';
import { canonical } from './canon.ts';
import type { Requirement, StateRead, StateReading } from './effect.ts';
import type { Approved } from './manifest.ts';

/** The reads that an approval depends on: its requirements, then its watched rows, in A's order. */
export function stateReads(approved: Pick<Approved, 'requires' | 'watch'>): readonly StateRead[] {
  return [...approved.requires.map(readOf), ...approved.watch];
}

function readOf(requirement: Requirement): StateRead {
  const { target, key, row } = requirement;
  const columns = row === null ? [] : Object.keys(row);
  return columns.length === 0 ? { target, key } : { target, key, columns };
}

/** A requirement, and what was found instead. */
export interface BrokenRequirement {
  readonly requirement: Requirement;
  readonly found: StateReading | undefined;
}

/** The requirements that the readings of {@link stateReads} contradict; empty if all hold. */
export function brokenRequirements(
  approved: Pick<Approved, 'requires'>,
  readings: readonly StateReading[],
): readonly BrokenRequirement[] {
  return approved.requires.flatMap((requirement, index) => {
    const found = readings[index];
    return found !== undefined && holds(requirement, found) ? [] : [{ requirement, found }];
  });
}

function holds(requirement: Requirement, found: StateReading): boolean {
  if (found.target !== requirement.target || !sameValue(found.key, requirement.key)) return false;
  if (requirement.row === null || found.row === null) return requirement.row === found.row;
  const row = found.row;
  return Object.entries(requirement.row).every(
    ([column, value]) => Object.hasOwn(row, column) && sameValue(row[column], value),
  );
}

/** What was required of a row, and what was found instead. */
export function describeBroken({
  requirement: { target, key, row },
  found,
}: BrokenRequirement): string {
  const wanted = row === null ? 'must not exist' : `must be ${canonical(row)}`;
  const now = found?.row ? `it is ${canonical(found.row)}` : 'there is none';
  return `${target} ${canonical(key)} ${wanted}, and ${now}`;
}

/** What a task-state digest covers: every reading, the application's revision, and A's salt. */
export function taskStateText(
  approved: Approved,
  readings: readonly StateReading[],
  revision: string | undefined,
): string {
  return canonical({ readings, revision: revision ?? null, salt: approved.salt });
}
