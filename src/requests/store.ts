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
  /** The state that was last known. What the journal says comes first. */
  readonly state: RequestState;
  /** The signed license, as JSON, and the occurrence that it buys. */
  readonly license: string | null;
  readonly occurrence: string | null;
  readonly answeredBy: string | null;
  /** The signed decline, as JSON, if there is one. */
  readonly decline: string | null;
  readonly detail: string | null;
  /** Rows of a committed action, as JSON. */
  readonly results: string | null;
}

/** What may be said about a request after it was asked. */
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

/** A token as a store keeps it: its digest, and never the token. */
export interface StoredToken {
  /** For people; it opens nothing. */
  readonly id: string;
  readonly digest: string;
  readonly kind: 'agent' | 'operator';
  readonly holder: string;
  readonly scopes: readonly string[];
  readonly createdMs: number;
  readonly expiresMs: number;
}

/** Keeps the tokens of agents and operators. */
export interface TokenStore {
  addToken(token: StoredToken): Promise<void>;
  findToken(digest: string): Promise<StoredToken | undefined>;
  /** Newest first, at most a thousand. */
  tokens(): Promise<readonly StoredToken[]>;
  /** Lets it expire then, unless it does before; false if there is no such token. */
  endToken(id: string, atMs: number): Promise<boolean>;
}

/** One try at delivering an event to a webhook. */
export interface Delivery {
  readonly receiver: string;
  /** The event. */
  readonly seq: number;
  /** Which try it was, counted from 1. */
  readonly attempt: number;
  readonly atMs: number;
  readonly delivered: boolean;
  /** What the receiver answered, or why it did not; never its words. */
  readonly result: string;
}

/** A delivery with its place in the log. */
export interface LoggedDelivery extends Delivery {
  readonly number: number;
}

/** Keeps requests. Every change is one transaction that is on disk when it returns. */
export interface RequestStore extends TokenStore {
  /** Inserts it if there is none with its id; returns the one that is there then. */
  insert(request: StoredRequest): Promise<StoredRequest>;
  find(id: string): Promise<StoredRequest | undefined>;
  /** How many are in this state; a thousand also where there are more. */
  count(state: RequestState): Promise<number>;
  /** The ids that begin so, at most two. */
  search(beginning: string): Promise<readonly string[]>;
  /**
   * Changes it if it is in one of these states and of this generation, and says whether it was.
   * Adds an event if the state changes, a license arrives or what was asked is added to.
   */
  change(
    id: string,
    only: {
      readonly from: readonly RequestState[];
      readonly generation: number;
      /** Only if no license was kept for it yet. */
      readonly unsigned?: boolean;
      /** Only if what was asked is still this. */
      readonly asked?: string;
    },
    change: RequestChange,
    atMs: number,
  ): Promise<boolean>;
  /** Replaces what was asked, as the next generation, and makes it pending again. */
  renew(
    id: string,
    only: { readonly from: readonly RequestState[]; readonly generation: number },
    renewed: Pick<StoredRequest, 'asked' | 'expiresMs'>,
    atMs: number,
  ): Promise<boolean>;
  list(query: StoredQuery): Promise<readonly StoredRequest[]>;
  events(afterSeq: number, limit: number): Promise<readonly RequestEvent[]>;
  /** The last event that a receiver has confirmed. */
  delivered(receiver: string): Promise<number>;
  /** Adds a try to the log. One that succeeded also confirms its event. */
  logDelivery(delivery: Delivery): Promise<void>;
  /** The log after this number, oldest first; of one receiver its last try. */
  deliveries(after: number, limit: number): Promise<readonly LoggedDelivery[]>;
  lastDelivery(receiver: string): Promise<LoggedDelivery | undefined>;
  close(): Promise<void>;
}
