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
  readonly detail: string | null;
  /** Rows of a committed action, as JSON. */
  readonly results: string | null;
}

/** What may be said about a request after it was asked. */
export type RequestChange = Pick<StoredRequest, 'state'> &
  Partial<
    Pick<StoredRequest, 'asked' | 'license' | 'occurrence' | 'answeredBy' | 'detail' | 'results'>
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

/** Keeps requests. Every change is one transaction that is on disk when it returns. */
export interface RequestStore {
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
  /** The last event that a receiver has confirmed, and setting it. */
  delivered(receiver: string): Promise<number>;
  confirm(receiver: string, seq: number): Promise<void>;
  close(): Promise<void>;
}
