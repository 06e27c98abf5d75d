import type { StatementResult } from '../contract/adapter.ts';
import type { SignedDecline } from '../protocol/decline.ts';
import type { ManifestDraft } from '../protocol/draft.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import type { Terminal } from '../protocol/terminal.ts';

/** What an agent asks to have done, in one of three ways. */
export type WantedChange =
  /** A registered operation: its contract computes what to approve. */
  | { readonly operation: string; readonly input: unknown }
  /** An action that is rehearsed to see what it would do. */
  | { readonly adapter: string; readonly action: unknown; readonly set?: SessionSettings }
  /**
   * An outcome that is stated, and the action that carries it out. Without an action the agent
   * carries it out itself, in a task that it opens once the outcome is approved.
   */
  | {
      readonly manifest: Omit<ManifestDraft, 'task' | 'planRevision'>;
      readonly action?: unknown;
    };

/** A question to the people who may approve. */
export type Ask = WantedChange & DraftAsk;

/** A question without what is wanted, which a draft has recorded. */
export interface DraftAsk {
  /** Who asks: the agent's name, given by the host and never by the model. */
  readonly by: string;
  /** The agent's conversation or job. The same question in one run is one request. */
  readonly run: string;
  /** Why, in the agent's words. Shown to the approver as unverified. */
  readonly reason?: string;
  /** Tells a deliberate repetition from a repeated call. */
  readonly key?: string;
}

/**
 * Where a request stands. From `running` on it is what the journal says. `declined`: a person said
 * no, and `detail` has the reason. `expired`: it was not answered, or its license not used, in time.
 * `withdrawn`: the agent took it back. `stale`: what it was proposed for has changed, and `renew`
 * proposes it again.
 */
export type RequestState = (typeof REQUEST_STATES)[number];

/** Every state, in the order in which a request can reach them. */
export const REQUEST_STATES = [
  'pending',
  'approved',
  'running',
  'committed',
  'rejected',
  'diverged',
  'indeterminate',
  'declined',
  'expired',
  'withdrawn',
  'stale',
] as const;

/** Whether a word is a state of requests. */
export function isRequestState(word: string): word is RequestState {
  return REQUEST_STATES.some((state) => state === word);
}

/** Whether nothing more happens to a request in this state unless it is renewed. */
export function isFinal(state: RequestState): boolean {
  return state !== 'pending' && state !== 'approved' && state !== 'running';
}

/**
 * When an approved request is executed: by the host at once, when the agent calls again, or by the
 * calls of a task that the agent opens.
 */
export type RunMode = 'on-approval' | 'on-call' | 'on-task';

/** What is stored of a question. Until it is renewed, only messages and whom it is for change. */
export interface AskedRecord {
  readonly wanted: WantedChange;
  readonly reason?: string;
  readonly proposal: Proposal;
  readonly messages?: readonly RequestMessage[];
  readonly assignedTo?: string;
}

/** What an approver asks back, and what the agent replies. Nothing verifies it. */
export interface RequestMessage {
  readonly from: 'approver' | 'agent';
  readonly by: string;
  readonly at: string;
  readonly text: string;
}

/** One request, as its host sees it. */
export interface ApprovalRequest {
  readonly id: string;
  readonly state: RequestState;
  readonly by: string;
  readonly run: string;
  readonly adapter: string;
  readonly operation?: string;
  /** The agent's words; nothing checks them. */
  readonly reason?: string;
  /** How often it was proposed. A renewed request is a later plan of the same task. */
  readonly generation: number;
  readonly askedAt: string;
  readonly expiresAt: string;
  readonly rendering: string;
  readonly proposal: Proposal;
  readonly mode: RunMode;
  /** Where a person can answer it, if the host has such a place. */
  readonly link?: string;
  /** Who answered it. */
  readonly answeredBy?: string;
  /** What was asked back and replied, oldest first. */
  readonly messages?: readonly RequestMessage[];
  /** Whom an approver handed it to. Others who may approve it still can. */
  readonly assignedTo?: string;
  /** The approver's signed "no", if it was declined with one. */
  readonly decline?: SignedDecline;
  /** What one person signed, while it waits for a second signature. */
  readonly first?: SignedLicense;
  /** Why it was declined, rejected, or is stale. */
  readonly detail?: string;
  readonly occurrence?: OccurrenceId;
  readonly terminal?: Terminal;
  /** What the statements of a committed action returned, where values are stored. */
  readonly results?: readonly StatementResult[];
}

/** What happened to a request, in order. */
export interface RequestEvent {
  readonly seq: number;
  readonly id: string;
  readonly at: string;
  readonly state: RequestState;
  readonly by: string;
  readonly adapter: string;
  readonly operation?: string;
}

/** Which requests to list. */
export interface RequestQuery {
  readonly state?: RequestState;
  readonly by?: string;
  readonly adapter?: string;
  /** Asked at least this long ago. */
  readonly olderThanMs?: number;
  /** At most so many; 50 unless said otherwise, 500 at most. */
  readonly limit?: number;
  /** The last one of the page before. */
  readonly after?: string;
}
