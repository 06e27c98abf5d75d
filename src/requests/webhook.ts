import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, instant } from '../contract/clock.ts';
import type { RequestEvent } from './request.ts';
import type { LoggedDelivery, RequestStore } from './store.ts';

/** Where to report what happens to requests. */
export interface Webhook {
  readonly url: string;
  /** Signs every message, so that the receiver knows who sent it. */
  readonly secret: string;
  /** What the delivery log calls it; its URL unless said otherwise. Two webhooks need two names. */
  readonly name?: string;
  /** The event as JSON, or a message for Slack and services that take the same; `json` unless said. */
  readonly format?: 'json' | 'slack';
}

/** One try at delivering an event, as the delivery log shows it. */
export interface WebhookDelivery {
  readonly number: number;
  /** The webhook's name, or the origin of its URL: the rest of it may be a secret. */
  readonly receiver: string;
  /** The event. */
  readonly seq: number;
  /** Which try it was, counted from 1. */
  readonly attempt: number;
  readonly at: string;
  readonly delivered: boolean;
  /** The status of the answer, or why there was none. */
  readonly result: string;
}

/** What delivering needs besides the webhook. */
export interface DeliveryContext {
  readonly store: RequestStore;
  readonly clock: Clock;
  readonly linkTo: (id: string) => string | undefined;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 10_000;
const PAGE = 100;
const POLL_MS = 500;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15 * 60_000;

/** The value of the header `effectmatch-signature`: HMAC-SHA256 of `<time>.<body>`. */
export function signWebhook(secret: string, at: string, body: string): string {
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`;
}

/** Delivers to one webhook until it is told to stop. */
export async function keepDelivering(context: DeliveryContext, webhook: Webhook): Promise<void> {
  const { signal } = context;
  while (!signal.aborted) {
    await deliverEvents(context, webhook).catch(() => {});
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
}

/**
 * Sends what happened since the last event that the receiver confirmed, in order, and stops at the
 * first that it does not take. That one is sent again, after a pause that doubles with every try.
 * The pause is read from the log, so a restart does not shorten it. A message may arrive twice;
 * `seq` tells.
 */
async function deliverEvents(context: DeliveryContext, webhook: Webhook): Promise<void> {
  const { store, clock, signal } = context;
  const receiver = webhook.name ?? webhook.url;
  const last = await store.lastDelivery(receiver);
  if (last !== undefined && clock.now() < dueAfter(last)) return;
  let failed = last?.delivered === false ? last : undefined;
  for (const event of await store.events(await store.delivered(receiver), PAGE)) {
    if (signal.aborted) return;
    const { seq } = event;
    const attempt = failed?.seq === seq ? failed.attempt + 1 : 1;
    failed = undefined;
    const body = bodyFor(webhook, event, context.linkTo(event.id));
    const { delivered, result } = await send(webhook, body, signal);
    // A try that was broken off says nothing about the receiver.
    if (signal.aborted && !delivered) return;
    await store.logDelivery({ receiver, seq, attempt, atMs: clock.now(), delivered, result });
    if (!delivered) return;
  }
}

/** When the next try may be made, in milliseconds since the epoch. */
function dueAfter({ delivered, attempt, atMs }: LoggedDelivery): number {
  if (delivered) return atMs;
  return atMs + Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
}

function bodyFor(webhook: Webhook, event: RequestEvent, link: string | undefined): string {
  if (webhook.format !== 'slack') return JSON.stringify({ ...event, link });
  const { by, state, operation, adapter } = event;
  const what = `${escapeSlack(by)}: ${escapeSlack(operation ?? adapter)} is ${state}`;
  // A link and never a button: pressing one in a chat does not prove who pressed it.
  return JSON.stringify({ text: link === undefined ? what : `${what} <${link}|open>` });
}

/** Slack reads these characters as markup. */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

async function send(
  { url, secret }: Webhook,
  body: string,
  stopping: AbortSignal,
): Promise<{ readonly delivered: boolean; readonly result: string }> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      signal: AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: {
        'content-type': 'application/json',
        'effectmatch-signature': signWebhook(secret, String(Date.now()), body),
      },
      body,
    });
    await response.body?.cancel();
    return { delivered: response.ok, result: String(response.status) };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    return { delivered: false, result: isLate ? 'timeout' : 'unreachable' };
  }
}

/** A row of the delivery log, without what may be secret in a URL. */
export function showDelivery(logged: LoggedDelivery): WebhookDelivery {
  const { atMs, receiver, ...rest } = logged;
  const shown = URL.canParse(receiver) ? new URL(receiver).origin : receiver;
  return { ...rest, receiver: shown, at: instant(atMs) };
}
