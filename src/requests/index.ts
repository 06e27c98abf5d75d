/**
 * The durable list of changes that agents ask for and people approve or decline.
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
  type RequestPage,
  type Requests,
  type RequestsOptions,
  type WaitOptions,
} from './requests.ts';
export { openSqliteRequests } from './sqlite-store.ts';
export type {
  Delivery,
  LoggedDelivery,
  RequestChange,
  RequestStore,
  StoredQuery,
  StoredRequest,
  StoredToken,
  TokenStore,
} from './store.ts';
export { signWebhook, type Webhook, type WebhookDelivery } from './webhook.ts';
