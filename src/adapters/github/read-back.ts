import type { Approval } from '../../contract/adapter.ts';
import type { Gateway } from '../../http/gateway.ts';
import type { ReadBackFindings } from '../../http/remote.ts';
import { canonical } from '../../protocol/canon.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import { ISSUE, markOf, readIssue } from './issue.ts';
import { asCells } from './normalise.ts';

/** The fields from a new GET. */
export const CHANNELS = ['fields'] as const;

const PAGE = 100;
const PAGES = 5;

/** What was requested. */
interface Requested {
  readonly occurrence: string;
  readonly approved: Approval;
  /** The issue that GitHub says it wrote; undefined if it did not say so. */
  readonly acknowledged: number | undefined;
}

/**
 * Reads the registered fields back. A match counts, no matter who wrote them. A mismatch counts only if
 * GitHub confirmed our write. Until then the request may still be on its way, and the fields may be
 * those before it.
 */
export async function lookUpIssue(
  gateway: Gateway,
  issues: string,
  { occurrence, approved, acknowledged }: Requested,
): Promise<ReadBackFindings | string> {
  const [effect] = approved.effects;
  const creates = effect?.op === 'insert';
  const cell = effect?.key?.number;
  const named = cell !== undefined && 'is' in cell ? cell.is : undefined;
  const number =
    acknowledged ?? named ?? (creates ? await findMarked(gateway, issues, occurrence) : undefined);
  if (typeof number !== 'number')
    return 'no issue, or more than one, carries the mark of this occurrence; it may be on its way';

  const answer = await gateway.get(`${issues}/${number}`);
  if (answer.kind === 'silent') return answer.why;
  if (answer.kind === 'absent') return 'there is no such issue';
  const after = readIssue(answer.body)?.fields;
  if (after === undefined) return 'the answer is not an issue';
  const isApproved = canonical(asCells(after)) === canonical(effect?.after ?? null);
  if (acknowledged === undefined && !isApproved)
    return 'the fields are not as approved, and GitHub did not say that it has done the write';
  const op = creates ? 'insert' : 'update';
  return {
    records: [
      {
        op,
        target: ISSUE.name,
        key: { number },
        before: null,
        after,
      },
    ],
    assigned: creates
      ? [
          {
            target: ISSUE.name,
            column: 'number',
            fresh: [number],
          },
        ]
      : [],
    channels: [
      {
        channel: 'fields',
        kind: 'records',
        count: 1,
      },
    ],
  };
}

/**
 * Searches the newest issues for the mark that only this occurrence's request has. Marks are text
 * that can be copied and quoted. A mark counts only at the end of a body, where we put it, and only
 * if exactly one issue has it.
 */
async function findMarked(
  gateway: Gateway,
  issues: string,
  occurrence: string,
): Promise<number | undefined> {
  const mark = markOf(occurrence);
  const numbers = new Set<number>();
  for (let page = 1; page <= PAGES; page += 1) {
    const query = `state=all&sort=created&direction=desc&per_page=${PAGE}&page=${page}`;
    const answer = await gateway.get(`${issues}?${query}`);
    if (answer.kind !== 'found' || !Array.isArray(answer.body)) return undefined;
    const listed = answer.body as readonly Value[];
    for (const entry of listed) {
      const number = readIssue(entry)?.number;
      const body = isObject(entry) ? entry.body : null;
      if (number !== undefined && String(body ?? '').endsWith(mark)) numbers.add(number);
    }
    if (listed.length < PAGE) break;
  }
  const [number] = numbers;
  return numbers.size === 1 ? number : undefined;
}
