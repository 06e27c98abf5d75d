import type { Approval, Evidence } from '../../contract/adapter.ts';
import { digestValueOf } from '../../crypto/digest.ts';
import type { Gateway } from '../../http/gateway.ts';
import { canonical } from '../../protocol/canon.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';
import { FIELDS, ISSUE, markOf, readIssue } from './issue.ts';

/** The fields as a fresh GET shows them. */
export const CHANNELS = ['fields'] as const;

/** GitHub said that it did the write, and to which issue. */
export interface Acknowledged {
  readonly number: number;
}

const PAGE = 100;
const PAGES = 5;

interface Place {
  readonly gateway: Gateway;
  readonly base: string;
  readonly nowMs: number;
}

/**
 * Reads the registered fields back. A match counts, whoever wrote them. A mismatch counts only
 * where GitHub said that it did our write: until then the request may still be on its way, and what
 * is seen is the state before it.
 */
export async function readBackIssue(
  place: Place,
  asked: {
    readonly occurrence: string;
    readonly approved: Approval;
    readonly acknowledged: Acknowledged | undefined;
  },
): Promise<Evidence> {
  const { occurrence, approved, acknowledged } = asked;
  const [effect] = approved.effects;
  const creates = effect?.op === 'insert';
  const window = { fromMs: place.nowMs, toMs: place.nowMs };
  const facts = { candidate: `request ${occurrence}`, unattributed: 0, window };
  const silent = (why: string): Evidence => ({
    ...facts,
    evidence: 'none',
    records: [],
    assigned: [],
    channels: [{ channel: 'fields', kind: 'silent', why }],
  });

  const cell = effect?.key?.number;
  const known = acknowledged?.number ?? (cell !== undefined && 'is' in cell ? cell.is : undefined);
  const number = known ?? (creates ? await findMarked(place, occurrence) : undefined);
  if (typeof number !== 'number')
    return silent(
      'no issue, or more than one, carries the mark of this occurrence; it may be on its way',
    );

  const answer = await place.gateway.get(`${place.base}/issues/${number}`);
  if (answer.kind !== 'found')
    return silent(answer.kind === 'silent' ? answer.why : 'there is no such issue');
  const issue = readIssue(answer.body);
  if (issue === undefined) return silent('the answer is not an issue');
  const { fields } = issue;
  if (acknowledged === undefined && !matches(fields, effect?.after)) {
    return silent(
      'the fields are not as approved, and GitHub did not say that it has done the write',
    );
  }
  return {
    ...facts,
    evidence: digestValueOf('effectmatch/github-evidence/v1', fields),
    records: [
      {
        op: creates ? 'insert' : 'update',
        target: ISSUE.name,
        key: { number },
        before: null,
        after: fields,
      },
    ],
    assigned: creates ? [{ target: ISSUE.name, column: 'number', fresh: [number] }] : [],
    channels: [{ channel: 'fields', kind: 'records', count: 1 }],
  };
}

function matches(fields: Row, approved: Approval['effects'][number]['after']): boolean {
  return FIELDS.every(
    (field) => canonical({ is: fields[field] ?? null }) === canonical(approved?.[field] ?? null),
  );
}

/**
 * The newest issues are looked through for the mark that only this occurrence's request carries. A
 * mark is text, and text is copied and quoted: it counts where we put it, at the end of a body, and
 * only if one issue has it.
 */
async function findMarked(
  { gateway, base }: Place,
  occurrence: string,
): Promise<number | undefined> {
  const mark = markOf(occurrence);
  const numbers = new Set<number>();
  for (let page = 1; page <= PAGES; page += 1) {
    const answer = await gateway.get(
      `${base}/issues?state=all&sort=created&direction=desc&per_page=${PAGE}&page=${page}`,
    );
    if (answer.kind !== 'found' || !Array.isArray(answer.body)) return undefined;
    const listed = answer.body as readonly Value[];
    for (const entry of listed) {
      const issue = readIssue(entry);
      if (issue !== undefined && isObject(entry) && String(entry.body ?? '').endsWith(mark))
        numbers.add(issue.number);
    }
    if (listed.length < PAGE) break;
  }
  const [number] = numbers;
  return numbers.size === 1 ? number : undefined;
}
