/**
 * The durable list of what agents ask for and people answer.
 *
 * @module
 */
import '../node-version.ts';

export {
  type ApprovalRequest,
  type Ask,
  type DraftAsk,
  isFinal,
  type RequestEvent,
  type RequestQuery,
  type RequestState,
  type RunMode,
  type WantedChange,
} from './request.ts';
export {
  type AgentRequests,
  type ApprovalRule,
  openRequests,
  type Renewed,
  type Requests,
  type RequestsOptions,
  type WaitOptions,
} from './requests.ts';
export { openSqliteRequests } from './sqlite-store.ts';
export type { RequestChange, RequestStore, StoredQuery, StoredRequest } from './store.ts';
export { signWebhook, type Webhook } from './webhook.ts';
