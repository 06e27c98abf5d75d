import type { ClaimEntry, JournalEntry } from '../contract/ledgers.ts';
import { EffectMatchError, errorsOf } from '../errors.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { ApprovalRequest, RequestQuery } from '../requests/request.ts';
import type { RequestPage } from '../requests/requests.ts';
import type { Visit } from './visit.ts';

/** The adapters and operations whose requests and verdicts a person may see. Defaults to all. */
export interface Sight {
  readonly adapters?: readonly string[] | undefined;
  readonly operations?: readonly string[] | undefined;
}

/** What a request, a verdict or an event is about. */
export interface Subject {
  readonly adapter: string;
  readonly operation?: string | undefined;
}

const READ = 200;
const MAX_READS = 20;
/** How many verdicts are looked up for a person who sees only some operations. */
const MAX_LOOKED_UP = 100;

/** Whether the person may see everything. */
export function seesAll({ adapters, operations }: Sight): boolean {
  return adapters === undefined && operations === undefined;
}

/** Whether the person may see `subject`. A list of operations hides subjects without one. */
export function sees({ adapters, operations }: Sight, { adapter, operation }: Subject): boolean {
  if (adapters !== undefined && !adapters.includes(adapter)) return false;
  return operations === undefined || operations.some((name) => name === operation);
}

/** A page of the requests that a person may see. Skipping hidden ones may take several reads. */
export async function listVisible(
  { requests, person: { sight } }: Visit,
  query: RequestQuery & { readonly limit: number },
): Promise<RequestPage> {
  if (seesAll(sight)) return await requests.page(query);
  const { limit, after: from, ...rest } = query;
  const found: ApprovalRequest[] = [];
  let after = from;
  for (let reads = 0; reads < MAX_READS; reads += 1) {
    const page = await requests.page({ ...rest, limit: READ, ...(after && { after }) });
    for (const request of page.requests) {
      if (!sees(sight, request)) continue;
      found.push(request);
      if (found.length === limit) return { requests: found, next: request.id };
    }
    after = page.next;
    if (after === undefined) return { requests: found };
  }
  return { requests: found, ...(after !== undefined && { next: after }) };
}

/** Counts the waiting requests that a person may see; at most 500 if some are hidden. */
export async function countVisible(visit: Visit): Promise<number> {
  if (seesAll(visit.person.sight)) return await visit.requests.countWaiting();
  return (await listVisible(visit, { state: 'pending', limit: 500 })).requests.length;
}

/** Reports a request that the person may not see as missing. */
export async function demandVisible(
  { requests, person: { sight } }: Visit,
  id: string,
): Promise<void> {
  if (seesAll(sight) || sees(sight, await requests.get(id))) return;
  throw new EffectMatchError('ERR_EM_NOT_FOUND', `request ${id.slice(0, 80)} does not exist`);
}

/** Reports an occurrence that the person may not see as missing. */
export async function demandVisibleOccurrence(visit: Visit, id: string): Promise<void> {
  const [found] = await visibleOccurrences(visit, [{ occurrence: id as OccurrenceId }]);
  if (found === undefined) throw missing('occurrence');
}

/** Those of the records whose occurrences the person may see. */
export async function visibleOccurrences<T extends { readonly occurrence: OccurrenceId }>(
  { runtime: { ledgers }, person: { sight } }: Visit,
  records: readonly T[],
): Promise<readonly T[]> {
  if (seesAll(sight)) return records;
  const holders = await Promise.all(records.map(({ occurrence }) => ledgers.holder(occurrence)));
  return records.filter((_, index) => {
    const holder = holders[index];
    return holder !== undefined && sees(sight, subjectOf(holder));
  });
}

/** The unsettled claims that the person may see. */
export async function visibleUnsettled({ runtime: { ledgers }, person: { sight } }: Visit) {
  const unsettled = await ledgers.unsettled({ includeLeased: true });
  return unsettled.filter((entry) => sees(sight, subjectOf(entry)));
}

/** The verdicts among these rows that the person may see, newest first. */
export async function visibleVerdicts(
  visit: Visit,
  rows: readonly JournalEntry[],
): Promise<readonly Terminal[]> {
  const { adapters, operations } = visit.person.sight;
  const own = rows
    .flatMap(({ kind, record }) => (kind === 'terminal' ? [record] : []))
    .filter(({ adapter }) => sees({ adapters }, { adapter }))
    .reverse();
  if (operations === undefined) return own;
  return await visibleOccurrences(visit, own.slice(0, MAX_LOOKED_UP));
}

function subjectOf({ claim, license }: ClaimEntry): Subject {
  return { adapter: claim.record.adapter, operation: license.operation };
}

/** The error for something that does not exist or is hidden. */
export const missing = errorsOf('ERR_EM_NOT_FOUND', 'there is no such ');
