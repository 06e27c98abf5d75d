import type { CallAnswer, QueryRows, ResultRow, StatementResult } from '../contract/adapter.ts';
import { given } from '../contract/options.ts';
import { EffectMatchError, type ErrorCode } from '../errors.ts';
import { renderDiff } from '../protocol/render.ts';
import { diffOfTerminal, type Terminal } from '../protocol/terminal.ts';
import type { Value } from '../protocol/value.ts';
import type { ApprovalRequest, RequestState } from '../requests/request.ts';

/** The status of a call. */
export type ToolStatus =
  /** A person has to approve it. */
  | 'approval-required'
  | Exclude<RequestState, 'pending'>
  /** A read tool returned rows. */
  | 'read'
  /** A task is open, a call in it succeeded or failed without an effect, or it was discarded. */
  | 'open'
  | 'done'
  | 'failed'
  | 'discarded'
  /** The input is invalid; nothing was requested or changed. */
  | 'refused'
  /** The host could not answer. The request may still have gone through. */
  | 'unavailable';

/** The answer of every tool, as plain JSON. */
export interface ToolAnswer {
  readonly status: ToolStatus;
  /** The id of the request, for `request_status`. */
  readonly request?: string;
  /** Where a person can answer the request. */
  readonly link?: string;
  /** What a person is asked to approve, shortened to a few thousand characters. */
  readonly rendering?: string;
  readonly occurrence?: string;
  /** The values that the backend assigned, by label. Only for committed changes. */
  readonly generated?: { readonly [label: string]: Value };
  /** The rows that the statements returned. Only for committed changes and reads. */
  readonly rows?: readonly ResultRow[];
  /** There are more rows than `rows` contains. */
  readonly more?: true;
  /** The handle of a task, and when the task expires. */
  readonly task?: string;
  readonly expiresAt?: string;
  /** What the backend's tools returned, one entry for each call. */
  readonly returned?: readonly Value[];
  /** How the observed outcome differs from the approved one, shortened like the rendering. */
  readonly diff?: string;
  /** Why it was declined, rejected or refused. */
  readonly detail?: string;
  /** A question from an approver. Reply to it with `reply_request`. */
  readonly question?: string;
  readonly code?: ErrorCode;
  /** What to do next, in one sentence. */
  readonly next: string;
}

const MAX_TEXT = 4000;
const MAX_ROWS = 100;
const MAX_ROW_CHARACTERS = 32_000;

/** The answer about a request. Nothing in it can approve anything. */
export function answerOf(request: ApprovalRequest): ToolAnswer {
  const { id, state, link, occurrence, detail, rendering, terminal, results, mode } = request;
  const status = state === 'pending' ? 'approval-required' : state;
  return {
    status,
    request: id,
    ...given({ link, occurrence, rendering: state === 'pending' ? cut(rendering) : undefined }),
    ...(terminal && verdictFields(terminal, results)),
    ...given({ detail: cut(detail), question: cut(questionIn(request)) }),
    next: state === 'approved' && mode === 'on-call' ? CALL_AGAIN : nextOf(status, request),
  };
}

/** The answer of a read tool. */
export function answerOfRows({ rows, more }: QueryRows): ToolAnswer {
  const kept = capRows(rows);
  const isCut = more || kept.length < rows.length;
  return { status: 'read', rows: kept, ...(isCut ? CUT : { next: 'These are all rows.' }) };
}

/** The answer of `task_open`. */
export function answerOfOpen(task: string, expiresAt: string): ToolAnswer {
  return { status: 'open', task, expiresAt, next: NEXT.open };
}

/** The answer about one call in a task. */
export function answerOfCall(answer: CallAnswer): ToolAnswer {
  if (answer.kind === 'failed') {
    const { reason, detail, isLost } = answer;
    // The task may be over because it was committed.
    const next = isLost === true ? OVER : NEXT.failed;
    return { status: 'failed', detail: cut(`${reason}: ${detail}`), next };
  }
  const { results, returned } = answer;
  return {
    status: 'done',
    ...(results && rowFields(results)),
    ...(returned && { returned: capReturned(returned) }),
    next: NEXT.done,
  };
}

/** The answer about how a task ended. */
export function answerOfTask(terminal: Terminal): ToolAnswer {
  const { kind: status, occurrence } = terminal;
  return {
    status,
    occurrence,
    ...verdictFields(terminal),
    ...(terminal.kind === 'rejected' && { detail: cut(`${terminal.reason}: ${terminal.detail}`) }),
    next: nextOfTask(terminal),
  };
}

function nextOfTask(terminal: Terminal): string {
  if (terminal.kind !== 'rejected') return NEXT[terminal.kind];
  if (DONE_BEFORE.test(`${terminal.reason}: `)) return DONE_BY_ANOTHER;
  return 'Nothing was changed; the approval is spent.';
}

const OVER = 'The task is over, and this call changed nothing; ending it tells how it ended.';

/** An error as an answer. If the input is not to blame, the agent learns only the error code. */
export function answerOfError(error: unknown): ToolAnswer {
  if (!(error instanceof EffectMatchError) || !OF_INPUT.has(error.code))
    return answerOfFault(error);
  const { code, message } = error;
  return { status: 'refused', code, detail: cut(message.toWellFormed()), next: NEXT.refused };
}

/** The answer if the host failed. It does not say whether the request went through. */
export function answerOfFault(error: unknown, request?: string): ToolAnswer {
  const code = error instanceof EffectMatchError ? error.code : undefined;
  return { status: 'unavailable', ...given({ request, code }), next: NEXT.unavailable };
}

const OF_INPUT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['ERR_EM_INPUT_INVALID', 'ERR_EM_ACTION_INVALID', 'ERR_EM_CANON_UNSUPPORTED'] as const),
  ...(['ERR_EM_MANIFEST_INVALID', 'ERR_EM_OUTCOME_IMPOSSIBLE', 'ERR_EM_NOT_FOUND'] as const),
  ...(['ERR_EM_OPERATION_FAILED', 'ERR_EM_QUERY_REFUSED'] as const),
  ...(['ERR_EM_RECORD_TOO_LARGE', 'ERR_EM_REHEARSAL_REFUSED'] as const),
]);

const CALL_AGAIN = 'It is approved; call the same tool with the same input to have it done.';
const CUT = {
  more: true,
  next: 'There are more rows than these; narrow the query.',
} as const;
const ASK_AGAIN = 'to ask again, pass another key';

/** The answer of `task_discard`. */
export const DISCARDED: ToolAnswer = {
  status: 'discarded',
  next: 'Nothing of the task remains.',
};

const NEXT: Readonly<Record<Exclude<ToolStatus, 'approval-required'>, string>> = {
  approved: 'It is approved and will be executed; call request_status to learn the verdict.',
  running: 'It is being executed; call request_status to learn the verdict.',
  committed: 'It is done exactly as approved; do not call this again for the same purpose.',
  rejected: `Nothing was changed; detail and diff say why; ${ASK_AGAIN}.`,
  diverged: 'Something other than what was approved is durable; tell a person and stop.',
  indeterminate: 'Whether it happened is not known; tell a person, and do not repeat it.',
  declined: `A person said no; do not repeat it unless they tell you to; ${ASK_AGAIN}.`,
  expired: `It was not answered or not used in time, and nothing was changed; ${ASK_AGAIN}.`,
  withdrawn: `It was taken back, and nothing was changed; ${ASK_AGAIN}.`,
  stale: `What it was proposed for has changed, and nothing was done; ${ASK_AGAIN}.`,
  read: 'These are all rows.',
  open: 'Work with task_call; end with task_submit if it is a draft, otherwise with task_finish.',
  done: 'Go on with task_call, or end the task.',
  failed: 'The call changed nothing; the task continues.',
  discarded: DISCARDED.next,
  refused: 'Correct the input; nothing was asked for or changed.',
  unavailable: 'The host could not answer; call it again later: it never runs twice.',
};

/** Another execution under the same license committed the change, unknown to this ledger. */
const DONE_BEFORE = /^(?:already-committed|decided-elsewhere): /;
const DONE_BY_ANOTHER =
  'It was done before, by another execution; do not ask again, and tell a person.';

/** The approver's last question, unless the agent has replied to it. */
function questionIn({ state, messages = [] }: ApprovalRequest): string | undefined {
  const last = messages.at(-1);
  return state === 'pending' && last?.from === 'approver' ? last.text : undefined;
}

function nextOf(status: ToolStatus, request: ApprovalRequest): string {
  const { id, link, detail = '' } = request;
  if (status === 'rejected' && DONE_BEFORE.test(detail)) return DONE_BY_ANOTHER;
  if (status !== 'approval-required') return NEXT[status];
  if (questionIn(request) !== undefined)
    return `A person asks a question about it; answer with reply_request for request ${id}.`;
  const where = link === undefined ? '' : ` at ${link}`;
  return `A person has to approve it${where}; then call request_status with request ${id}.`;
}

/** What a verdict says: the values and rows of a commit, or how the outcome differs. */
function verdictFields(
  terminal: Terminal,
  results: readonly StatementResult[] = [],
): Partial<ToolAnswer> {
  const diff = diffOfTerminal(terminal);
  if (terminal.kind !== 'committed') return given({ diff: diff && cut(renderDiff(diff)) });
  const { generated } = terminal;
  return { ...given({ generated }), ...(results.length > 0 && rowFields(results)) };
}

function rowFields(results: readonly StatementResult[]): Pick<ToolAnswer, 'rows' | 'more'> {
  const rows = results.flatMap((result) => result.rows);
  const kept = capRows(rows);
  const isCut = kept.length < rows.length || results.some(({ omitted }) => omitted > 0);
  return { rows: kept, ...(isCut && { more: true as const }) };
}

/** Replaces each value that is too long with a note of its length. */
function capReturned(returned: readonly Value[]): readonly Value[] {
  return returned.map((value) => {
    const { length } = JSON.stringify(value);
    return length <= MAX_ROW_CHARACTERS ? value : `left out: ${length} characters`;
  });
}

function capRows(rows: readonly ResultRow[]): readonly ResultRow[] {
  let characters = 0;
  const end = rows.slice(0, MAX_ROWS).findIndex((row) => {
    characters += JSON.stringify(row).length;
    return characters > MAX_ROW_CHARACTERS;
  });
  return rows.slice(0, end === -1 ? MAX_ROWS : end);
}

function cut(text: string): string;
function cut(text: string | undefined): string | undefined;
function cut(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= MAX_TEXT) return text;
  const left = text.length - MAX_TEXT;
  return `${text.slice(0, MAX_TEXT)}… (${left} more characters)`.toWellFormed();
}

const text = { type: 'string' } as const;

/** The JSON Schema of {@link ToolAnswer}. */
export const TOOL_ANSWER_SCHEMA = {
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['approval-required', ...Object.keys(NEXT)] },
    request: text,
    link: text,
    rendering: text,
    occurrence: text,
    generated: { type: 'object' },
    rows: { type: 'array', items: { type: 'object' } },
    more: { type: 'boolean' },
    task: text,
    expiresAt: text,
    returned: { type: 'array' },
    diff: text,
    detail: text,
    question: text,
    code: text,
    next: text,
  },
  required: ['status', 'next'],
  additionalProperties: false,
} as const;
