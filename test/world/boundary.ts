import type { Outlet, Survey } from '../../src/contract/adapter.ts';
import type { Target } from '../../src/protocol/registration.ts';

/** What a backend in memory lets a survey see. */
export interface Surveyed {
  readonly id: string;
  readonly schema: number;
  readonly unclassified: string | undefined;
}

const lists = new Map<string, readonly Outlet[]>();

/**
 * Lists the outlets of a backend in memory: its tables, what is denied, and the one that nobody
 * classified, if any.
 */
export function memoryOutlets(
  { id, schema, unclassified }: Surveyed,
  targets: readonly Target[],
): Survey {
  const outlets: Outlet[] = targets.map(({ name }) => ({
    outlet: `table ${name}`,
    disposition: 'observed',
    by: 'the event log of the candidate',
  }));
  outlets.push({ outlet: 'other tables', disposition: 'denied', by: 'the check of actions' });
  if (unclassified !== undefined) {
    outlets.push({
      outlet: unclassified,
      disposition: 'unclassified',
      by: 'nothing observes it; remove it',
    });
  }
  return Object.freeze({
    backend: id,
    executor: 'memory',
    outlets: sharedList(outlets),
    configuration: `schema ${schema}`,
    credentials: 'none',
    enforcement: 'one process',
  });
}

/**
 * The same list is the same frozen object every time, so that the core need not digest it again.
 */
function sharedList(outlets: Outlet[]): readonly Outlet[] {
  const text = JSON.stringify(outlets);
  const known = lists.get(text);
  if (known !== undefined) return known;
  for (const outlet of outlets) Object.freeze(outlet);
  lists.set(text, Object.freeze(outlets));
  return outlets;
}
