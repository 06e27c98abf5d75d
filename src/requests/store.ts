import type { RequestEvent, RequestState, RunMode } from './request.ts';

/** A request as a store keeps it. */
export interface StoredRequest {
  readonly id: string;
  readonly generation: number;
  readonly by: string;
  readonly run: string;
  readonly adapter: string;
  readonly operation: string | null;
  readonly mode: RunMode;
  readonly askedMs: number;
  readonly expiresMs: number;
  /** What was asked and proposed, as JSON. */
  readonly asked: string;
  /** The last known state. The journal takes precedence. */
  readonly state: RequestState;
  /** The signed license, as JSON, and its occurrence. */
  readonly license: string | null;
  readonly occurrence: string | null;
  readonly answeredBy: string | null;
  /** The signed decline, as JSON, if there is one. */
  readonly decline: string | null;
  readonly detail: string | null;
  /** Rows of a committed action, as JSON. */
  readonly results: string | null;
}

/** The fields of a request that may change later. */
export type RequestChange = Pick<StoredRequest, 'state'> &
  Partial<
    Pick<
      StoredRequest,
      'asked' | 'license' | 'occurrence' | 'answeredBy' | 'decline' | 'detail' | 'results'
    >
  >;

/** Which stored requests to list, newest first. */
export interface StoredQuery {
  readonly state?: RequestState;
  readonly by?: string;
  readonly adapter?: string;
  readonly askedBeforeMs?: number;
  readonly limit: number;
  readonly after?: string;
}

/** A token as a store keeps it: only its digest. */
export interface StoredToken {
  /** A public id. It grants no access. */
  readonly id: string;
  readonly digest: string;
  readonly kind: 'agent' | 'operator';
  readonly holder: string;
  readonly scopes: readonly string[];
  readonly createdMs: number;
  readonly expiresMs: number;
}

/** Stores the tokens of agents and operators. */
export interface TokenStore {
  addToken(token: StoredToken): Promise<void>;
  findToken(digest: string): Promise<StoredToken | undefined>;
  /** Newest first, at most a thousand. */
  tokens(): Promise<readonly StoredToken[]>;
  /** Makes a token expire at this time, if not earlier. Returns false if it does not exist. */
  endToken(id: string, atMs: number): Promise<boolean>;
}

/** One attempt to deliver an event to a webhook. */
export interface Delivery {
  readonly receiver: string;
  /** The number of the event. */
  readonly seq: number;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  readonly atMs: number;
  readonly delivered: boolean;
  /** The status of the response, or why there was none. Never the response's content. */
  readonly result: string;
}

/** A delivery with its number in the log. */
export interface LoggedDelivery extends Delivery {
  readonly number: number;
}

/** Stores requests. Every change is one transaction that is on disk when the call returns. */
export interface RequestStore extends TokenStore {
  /** Inserts a request unless its id exists. Returns the stored one. */
  insert(request: StoredRequest): Promise<StoredRequest>;
  find(id: string): Promise<StoredRequest | undefined>;
  /** How many requests are in this state. Stops counting at a thousand. */
  count(state: RequestState): Promise<number>;
  /** The ids that start with this text, at most two. */
  search(beginning: string): Promise<readonly string[]>;
  /**
   * Changes a request if it is in one of these states and of this generation. Returns whether it
   * did. Adds an event if the state changes, a license arrives, or `asked` changes.
   */
  change(
    id: string,
    only: {
      readonly from: readonly RequestState[];
      readonly generation: number;
      /** Only if it has no license yet. */
      readonly unsigned?: boolean;
      /** Only if `asked` still has this value. */
      readonly asked?: string;
    },
    change: RequestChange,
    atMs: number,
  ): Promise<boolean>;
  /** Replaces `asked` as the next generation, and makes the request pending again. */
  renew(
    id: string,
    only: { readonly from: readonly RequestState[]; readonly generation: number },
    renewed: Pick<StoredRequest, 'asked' | 'expiresMs'>,
    atMs: number,
  ): Promise<boolean>;
  list(query: StoredQuery): Promise<readonly StoredRequest[]>;
  events(afterSeq: number, limit: number): Promise<readonly RequestEvent[]>;
  /** The last event that a receiver confirmed. */
  delivered(receiver: string): Promise<number>;
  /** Logs an attempt. A successful one also confirms its event. */
  logDelivery(delivery: Delivery): Promise<void>;
  /** The log after this number, oldest first. */
  deliveries(after: number, limit: number): Promise<readonly LoggedDelivery[]>;
  /** A receiver's last attempt. */
  lastDelivery(receiver: string): Promise<LoggedDelivery | undefined>;
  close(): Promise<void>;
}
