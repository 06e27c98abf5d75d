import { invalid, type ManifestSchema, plainSchema } from '../../backend/manifest-schema.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';

/** The registered fields. Nothing else about an issue is compared. */
export const FIELDS = ['title', 'body', 'state', 'labels', 'assignees'] as const;

export const ISSUE: Target = {
  name: 'issue',
  columns: ['number', ...FIELDS],
  key: ['number'],
  volatile: [],
};

/**
 * The mark at the end of the body of a new issue, by which it can be found again. It is invisible
 * in the rendered issue.
 */
export function markOf(occurrence: string): string {
  return `<!-- effectmatch:${occurrence} -->`;
}

const GAP = '\n\n';
const MARK = /(?:\n\n)?<!-- effectmatch:occ_[0-9a-f]{40} -->$/;

/** Adds the mark of an occurrence to a body. */
export function markBody(body: Value | undefined, occurrence: string): string {
  return typeof body === 'string' && body !== ''
    ? `${body}${GAP}${markOf(occurrence)}`
    : markOf(occurrence);
}

/** Reads the registered fields from an API answer; undefined if it is not an issue. */
export function readIssue(
  json: Value,
): { readonly number: number; readonly fields: Row } | undefined {
  if (!isObject(json) || Object.hasOwn(json, 'pull_request')) return undefined;
  const { number, title, body, state } = json;
  const labels = namesOf(json.labels, 'name');
  const assignees = namesOf(json.assignees ?? [], 'login');
  if (typeof number !== 'number' || typeof title !== 'string') return undefined;
  if (body !== null && typeof body !== 'string') return undefined;
  if (state !== 'open' && state !== 'closed') return undefined;
  if (labels === undefined || assignees === undefined) return undefined;
  return {
    number,
    fields: {
      title,
      body: plainBody(body),
      state,
      labels,
      assignees,
    },
  };
}

/**
 * Removes our mark and the gap before it. Other trailing newlines belong to the body. GitHub treats
 * an empty body and no body alike.
 */
function plainBody(body: string | null): string | null {
  const text = body ?? '';
  const plain = text.replace(/\r\n/g, '\n').replace(MARK, '');
  return plain === '' ? null : plain;
}

function namesOf(list: Value | undefined, field: string): readonly string[] | undefined {
  if (!Array.isArray(list)) return undefined;
  const names = list.map((entry: Value) => (isObject(entry) ? (entry[field] ?? null) : entry));
  return isNames(names) ? sortNames(names) : undefined;
}

/**
 * Labels and assignees are sets. Their order has no meaning, and the API returns them in its own
 * order.
 */
function sortNames(names: readonly string[]): readonly string[] {
  return [...new Set(names)].toSorted();
}

/** The schema of issues for manifests. */
export function issueSchema(registration: Registration): ManifestSchema {
  return {
    ...plainSchema(registration),
    store: (_relation, { name }, value) => storedForm(name, value),
    fill: (_relation, { name }, where) => {
      if (Object.hasOwn(BLANK, name)) return { is: BLANK[name] ?? null };
      throw invalid(where, `a new issue needs a ${name}`);
    },
    checkConstraint: ({ name }, cell, where) => {
      const wrong = 'is' in cell ? faultIn(name, cell.is) : undefined;
      if (wrong !== undefined) throw invalid(where, wrong);
    },
  };
}

/** The fields of a new issue if they are not stated. */
const BLANK: Row = {
  body: null,
  state: 'open',
  labels: [],
  assignees: [],
};

/** The value of a field in the form that is compared. */
function storedForm(field: string, value: Value): Value {
  if (field === 'body' && typeof value === 'string') return plainBody(value);
  const isSet = field === 'labels' || field === 'assignees';
  return isSet && isNames(value) ? sortNames(value) : value;
}

/** Why a field cannot have this value; undefined if it can. */
function faultIn(field: string, value: Value): string | undefined {
  switch (field) {
    case 'title':
      return typeof value === 'string' && /^\S(?:[^\r\n]*\S)?$/.test(value)
        ? undefined
        : 'a title is one line of text, without blanks at its ends';
    case 'body':
      if (value !== null && typeof value !== 'string') return 'a body is text or null';
      return value?.includes('<!-- effectmatch:') ? 'a body may not contain our mark' : undefined;
    case 'state':
      return value === 'open' || value === 'closed' ? undefined : "a state is 'open' or 'closed'";
    case 'labels':
    case 'assignees':
      return isNames(value)
        ? undefined
        : `${field} is a list of names; write to([…]) to set a column to a list`;
    default:
      return undefined;
  }
}

function isNames(value: Value): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '');
}
