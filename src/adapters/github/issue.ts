import { EffectMatchError } from '../../errors.ts';
import type { Target } from '../../protocol/registration.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';

/** The registered fields: these are compared, everything else about an issue is not. */
export const FIELDS = ['title', 'body', 'state', 'labels', 'assignees'] as const;
export type Field = (typeof FIELDS)[number];

export const ISSUE: Target = {
  name: 'issue',
  columns: ['number', ...FIELDS],
  key: ['number'],
  volatile: [],
};

/** What a new issue has where nothing is said. */
export const BLANK: Readonly<Record<Field, Value>> = {
  title: '',
  body: null,
  state: 'open',
  labels: [],
  assignees: [],
};

/**
 * Stands at the end of the body of what we create, invisible in the rendered issue, so that it can
 * be found again.
 */
export function markOf(occurrence: string): string {
  return `<!-- effectmatch:${occurrence} -->`;
}

const MARK = /^<!-- effectmatch:occ_[0-9a-f]{40} -->$/;
const MARK_LENGTH = markOf(`occ_${'0'.repeat(40)}`).length;
const GAP = '\n\n';

/** A body with the mark of its occurrence. */
export function markBody(body: Value | undefined, occurrence: string): string {
  return typeof body === 'string' && body !== ''
    ? `${body}${GAP}${markOf(occurrence)}`
    : markOf(occurrence);
}

/**
 * The registered fields of an issue as the API shows it; undefined where the answer is not an
 * issue.
 */
export function readIssue(
  json: Value,
): { readonly number: number; readonly fields: Row } | undefined {
  if (!isObject(json) || Object.hasOwn(json, 'pull_request')) return undefined;
  const { number, title, body, state, labels, assignees } = json;
  const named = namesOf(labels, 'name');
  const logins = namesOf(assignees ?? [], 'login');
  if (
    typeof number !== 'number' ||
    typeof title !== 'string' ||
    (body !== null && typeof body !== 'string')
  ) {
    return undefined;
  }
  if ((state !== 'open' && state !== 'closed') || named === undefined || logins === undefined)
    return undefined;
  const fields = { title, body: plainBody(body), state, labels: named, assignees: logins };
  return { number, fields };
}

/** Without our mark; an empty body and none are the same to GitHub. */
function plainBody(body: string | null): string | null {
  const text = (body ?? '').replace(/\r\n/g, '\n');
  const said = MARK.test(text.slice(-MARK_LENGTH)) ? withoutGap(text.slice(0, -MARK_LENGTH)) : text;
  return said === '' ? null : said;
}

/** Takes away what we put in, and no more: newlines at the end of a body are the body's. */
function withoutGap(text: string): string {
  return text.endsWith(GAP) ? text.slice(0, -GAP.length) : text;
}

function namesOf(list: Value | undefined, field: string): readonly string[] | undefined {
  if (!Array.isArray(list)) return undefined;
  const names = (list as readonly Value[]).map((entry) => (isObject(entry) ? entry[field] : entry));
  return names.every((name) => typeof name === 'string') ? sortNames(names as string[]) : undefined;
}

/**
 * Labels and assignees are sets: their order means nothing, and the API gives them back in its own.
 */
function sortNames(names: readonly string[]): readonly string[] {
  return [...new Set(names)].toSorted();
}

/**
 * A field's value in the form in which it is compared. Throws `ERR_EM_MANIFEST_INVALID` with what
 * to change.
 */
export function normaliseField(field: string, value: Value): Value {
  switch (field) {
    case 'title':
      if (
        typeof value === 'string' &&
        value !== '' &&
        value.trim() === value &&
        !/[\r\n]/.test(value)
      )
        return value;
      throw invalid('a title is one line of text, without blanks at its ends');
    case 'body':
      if (value === null || typeof value === 'string') {
        if (typeof value === 'string' && /<!-- effectmatch:/.test(value))
          throw invalid('a body may not contain our mark');
        return plainBody(value);
      }
      throw invalid('a body is text or null');
    case 'state':
      if (value === 'open' || value === 'closed') return value;
      throw invalid("a state is 'open' or 'closed'");
    case 'labels':
    case 'assignees':
      if (Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '')) {
        return sortNames(value as readonly string[]);
      }
      throw invalid(`${field} is a list of names; write to([…]) to set a column to a list`);
    default:
      throw invalid(`"${field}" is not a registered field; there are ${FIELDS.join(', ')}`);
  }
}

export function invalid(what: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', what);
}
