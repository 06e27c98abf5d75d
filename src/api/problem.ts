import { EffectMatchError, type ErrorCode } from '../errors.ts';
import { choice, closed, form, type Infer, integer, optional, text } from '../protocol/schema.ts';

/** The HTTP statuses of refusals. */
export type RefusalStatus =
  | 400
  | 401
  | 403
  | 404
  | 408
  | 409
  | 413
  | 415
  | 421
  | 422
  | 429
  | 500
  | 503;

/** The body of a refusal (RFC 9457), with one of our codes. */
export const problemSchema = closed({
  type: form(/^urn:effectmatch:error:ERR_EM_[A-Z_]+$/, 'the name of the code'),
  title: text(1, 200),
  status: integer(400, 599),
  detail: text(0, 8000),
  code: form(/^ERR_EM_[A-Z_]+$/, 'an error code of docs/errors.md'),
  /** The id of the call, as in the header `x-request-id` and in the log. */
  call: text(1, 64),
  /** Present if the same call may succeed later. */
  retry: optional(choice(true)),
});
/** A problem document. */
type ProblemDocument = Infer<typeof problemSchema>;

/** A refusal whose status does not follow from its code alone. */
export class ApiRefusal extends EffectMatchError {
  readonly status: RefusalStatus;

  constructor(status: RefusalStatus, code: ErrorCode, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.status = status;
  }
}

const TITLES: Readonly<Record<RefusalStatus, string>> = {
  400: 'The input is not valid',
  401: 'The token is missing or not valid',
  403: 'This is not allowed',
  404: 'Not found',
  408: 'The body arrived too slowly',
  409: 'This is no longer possible, or not yet',
  413: 'The body is too large',
  415: 'The body must be JSON',
  421: 'This host name is not served here',
  422: 'Refused',
  429: 'Too many calls',
  500: 'The server failed',
  503: 'Not available at the moment',
};

/** What a status means, in a few words. */
export function titleOf(status: RefusalStatus): string {
  return TITLES[status];
}

const STATUSES: Partial<Record<ErrorCode, RefusalStatus>> = {
  ERR_EM_ACCESS_REFUSED: 403,
  ERR_EM_ACTION_INVALID: 400,
  ERR_EM_ADAPTER_UNAVAILABLE: 503,
  ERR_EM_ATTEMPT_OPEN: 409,
  ERR_EM_BOUNDARY_OPEN: 422,
  ERR_EM_CANON_UNSUPPORTED: 400,
  ERR_EM_INPUT_INVALID: 400,
  ERR_EM_LICENSE_REFUSED: 422,
  ERR_EM_MANIFEST_INVALID: 400,
  ERR_EM_NOT_FOUND: 404,
  ERR_EM_OPERATION_FAILED: 422,
  ERR_EM_OUTCOME_IMPOSSIBLE: 422,
  ERR_EM_PLAN_SUPERSEDED: 409,
  ERR_EM_RATE_LIMITED: 429,
  ERR_EM_RECORD_INVALID: 400,
  ERR_EM_RECORD_TOO_LARGE: 413,
  ERR_EM_REHEARSAL_REFUSED: 422,
  ERR_EM_REQUEST_CLOSED: 409,
  ERR_EM_RESOLUTION_REFUSED: 422,
  ERR_EM_SIGNATURE_INVALID: 422,
  ERR_EM_STORE_BUSY: 503,
  ERR_EM_STORE_UNAVAILABLE: 503,
  ERR_EM_USAGE: 400,
};
const MAX_DETAIL = 4000;

/** The problem document for an error. An error without one of our codes is not described. */
export function problemOf(error: unknown, call: string): ProblemDocument {
  const known = error instanceof EffectMatchError ? error : undefined;
  const code: ErrorCode = known?.code ?? 'ERR_EM_INVARIANT';
  const status: RefusalStatus =
    error instanceof ApiRefusal ? error.status : (STATUSES[code] ?? 500);
  const isOurs = status >= 500;
  const detail = isOurs ? "See the server's log." : (known?.message ?? '');
  const retry = status === 503 || status === 429 || code === 'ERR_EM_ATTEMPT_OPEN';
  return {
    type: `urn:effectmatch:error:${code}`,
    title: TITLES[status],
    status,
    code,
    call,
    detail: detail.slice(0, MAX_DETAIL).toWellFormed(),
    ...(retry && { retry }),
  };
}
