import { EffectMatchError, errorsOf } from '../errors.ts';
import type { ApprovalRequest, RequestQuery } from '../requests/request.ts';
import type { RequestPage, Requests } from '../requests/requests.ts';
import type { Person } from './access.ts';
import { sees, seesAll } from './sight.ts';

const READ = 200;
const MAX_READS = 20;

/** A page of the requests that a person may see. Skipping hidden ones may take several reads. */
export async function listVisible(
  requests: Requests,
  { sight }: Person,
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

/** Reports a request that the person may not see as missing. */
export async function demandVisible(
  { requests }: { readonly requests: Requests },
  { sight }: Person,
  id: string,
): Promise<void> {
  if (seesAll(sight) || sees(sight, await requests.get(id))) return;
  throw new EffectMatchError('ERR_EM_NOT_FOUND', `request ${id.slice(0, 80)} does not exist`);
}

/** Counts the waiting requests that a person may see; at most 500 if some are hidden. */
export async function countVisible(requests: Requests, person: Person): Promise<number> {
  if (seesAll(person.sight)) return await requests.countWaiting();
  const query = { state: 'pending', limit: 500 } as const;
  return (await listVisible(requests, person, query)).requests.length;
}

/** The error for something that does not exist or is hidden. */
export const missing = errorsOf('ERR_EM_NOT_FOUND', 'there is no such ');
