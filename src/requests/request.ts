import type { StatementResult } from '../contract/adapter.ts';
import type { SignedDecline } from '../protocol/decline.ts';
import type { ManifestDraft } from '../protocol/draft.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import type { Terminal } from '../protocol/terminal.ts';

/** The change that an agent asks for, in one of three forms. */
export type WantedChange =
  /** A registered operation. Its contract computes what to approve. */
  | { readonly operation: string; readonly input: unknown }
  /** An action. It is rehearsed to find out what it would do. */
  | { readonly adapter: string; readonly action: unknown; readonly set?: SessionSettings }
  /**
   * A stated outcome, and the action that carries it out. Without an action, the agent carries it
   * out itself, in a task that it opens after the approval.
   */
  | {
      readonly manifest: Omit<ManifestDraft, 'task' | 'planRevision'>;
      readonly action?: unknown;
    };

/** A change that an agent asks for, and who asks. */
export type Ask = WantedChange & DraftAsk;

/** Who asks for a change, and why. A draft has recorded the change itself. */
export interface DraftAsk {
  /** The agent's name. It comes from the host, never from the model. */
  readonly by: string;
  /** The agent's conversation or job. Asking again in the same run finds the same request. */
  readonly run: string;
  /** The reason in the agent's words. The approver sees it marked as unverified. */
  readonly reason?: string;
  /** Distinguishes a deliberate repetition from a repeated call. */
  readonly key?: string;
}

/**
 * The state of a request. From `running` on, the journal determines it. `declined`: a person said
 * no, and `detail` has the reason. `expired`: it was not answered, or its license was not used, in
 * time. `withdrawn`: the agent took it back. `stale`: the state it was proposed for has changed;
 * `renew` proposes it again.
 */
export type RequestState = (typeof REQUEST_STATES)[number];

/** All states, in the order in which a request can reach them. */
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

/** Whether a word is the name of a state. */
export function isRequestState(word: string): word is RequestState {
  return REQUEST_STATES.some((state) => state === word);
}

/** Whether a request in this state can only change if it is renewed. */
export function isFinal(state: RequestState): boolean {
  return state !== 'pending' && state !== 'approved' && state !== 'running';
}

/**
 * What executes an approved request: the host at once, the agent's next call, or the calls of a
 * task that the agent opens.
 */
export type RunMode = 'on-approval' | 'on-call' | 'on-task';

/** The content of a request. Until it is renewed, only `messages` and `assignedTo` change. */
export interface AskedRecord {
  readonly wanted: WantedChange;
  readonly reason?: string;
  readonly proposal: Proposal;
  readonly messages?: readonly RequestMessage[];
  readonly assignedTo?: string;
}

/** A question from an approver, or the agent's reply. Nothing verifies the text. */
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
  /** The reason in the agent's words. Nothing verifies it. */
  readonly reason?: string;
  /** How often it was proposed. A renewed request is a later plan revision of the same task. */
  readonly generation: number;
  readonly askedAt: string;
  readonly expiresAt: string;
  readonly rendering: string;
  readonly proposal: Proposal;
  readonly mode: RunMode;
  /** Where a person can answer it, if the host has a page for that. */
  readonly link?: string;
  /** Who answered it. */
  readonly answeredBy?: string;
  /** Questions and replies, oldest first. */
  readonly messages?: readonly RequestMessage[];
  /** The approver it was assigned to. Others who may approve it still can. */
  readonly assignedTo?: string;
  /** The approver's signed decline, if there is one. */
  readonly decline?: SignedDecline;
  /** The license with one signature, while the request waits for a second. */
  readonly first?: SignedLicense;
  /** Why it was declined or rejected, or is stale. */
  readonly detail?: string;
  readonly occurrence?: OccurrenceId;
  readonly terminal?: Terminal;
  /** What the statements of a committed action returned, if the adapter stores plain values. */
  readonly results?: readonly StatementResult[];
}

/** Something that happened to a request. Events are numbered in order. */
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
  /** Only requests that were asked at least this long ago. */
  readonly olderThanMs?: number;
  /** The page size. Defaults to 50, at most 500. */
  readonly limit?: number;
  /** The last request of the previous page. */
  readonly after?: string;
}
