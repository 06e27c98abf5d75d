import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, instant } from '../contract/clock.ts';
import type { RequestEvent } from './request.ts';
import type { LoggedDelivery, RequestStore } from './store.ts';

/** Where to report what happens to requests. */
export interface Webhook {
  readonly url: string;
  /** The key that signs every message, so that the receiver can verify the sender. */
  readonly secret: string;
  /** Its name in the delivery log. Defaults to its URL. Names must be unique. */
  readonly name?: string;
  /** The event as JSON, or a message for Slack and compatible services. Defaults to `json`. */
  readonly format?: 'json' | 'slack';
}

/** One attempt to deliver an event, as the delivery log shows it. */
export interface WebhookDelivery {
  readonly number: number;
  /** The webhook's name, or the origin of its URL. The rest of a URL may be secret. */
  readonly receiver: string;
  /** The number of the event. */
  readonly seq: number;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  readonly at: string;
  readonly delivered: boolean;
  /** The status of the response, or why there was none. */
  readonly result: string;
}

/** What delivering needs besides the webhook. */
interface DeliveryContext {
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

/** Delivers to one webhook until `signal` aborts. */
export async function keepDelivering(context: DeliveryContext, webhook: Webhook): Promise<void> {
  const { signal } = context;
  while (!signal.aborted) {
    await deliverEvents(context, webhook).catch(() => {});
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
}

/**
 * Sends the events since the last one that the receiver confirmed, in order. Stops at the first
 * failure and sends that event again later, with a pause that doubles each time. The pause is
 * computed from the log, so a restart does not shorten it. A message may arrive twice; receivers
 * can tell by `seq`.
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
    // An attempt that we aborted says nothing about the receiver.
    if (signal.aborted && !delivered) return;
    await store.logDelivery({ receiver, seq, attempt, atMs: clock.now(), delivered, result });
    if (!delivered) return;
  }
}

/** The earliest time of the next attempt, in milliseconds since the epoch. */
function dueAfter({ delivered, attempt, atMs }: LoggedDelivery): number {
  if (delivered) return atMs;
  return atMs + Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
}

function bodyFor(webhook: Webhook, event: RequestEvent, link: string | undefined): string {
  if (webhook.format !== 'slack') return JSON.stringify({ ...event, link });
  const { by, state, operation, adapter } = event;
  const what = `${escapeSlack(by)}: ${escapeSlack(operation ?? adapter)} is ${state}`;
  // A link and never a button: a click in a chat does not prove who clicked.
  return JSON.stringify({ text: link === undefined ? what : `${what} <${link}|open>` });
}

/** Escapes the characters that Slack reads as markup. */
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

/** A row of the delivery log, without the parts of a URL that may be secret. */
export function showDelivery(logged: LoggedDelivery): WebhookDelivery {
  const { atMs, receiver, ...rest } = logged;
  const shown = URL.canParse(receiver) ? new URL(receiver).origin : receiver;
  return { ...rest, receiver: shown, at: instant(atMs) };
}
