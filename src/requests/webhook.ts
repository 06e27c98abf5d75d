import { createHmac } from 'node:crypto';
import type { RequestEvent } from './request.ts';
import type { RequestStore } from './store.ts';

/** Where to report what happens to requests. */
export interface Webhook {
  readonly url: string;
  /** Signs every message, so that the receiver knows who sent it. */
  readonly secret: string;
}

const TIMEOUT_MS = 10_000;
const PAGE = 100;

/** The value of the header `effectmatch-signature`: HMAC-SHA256 of `<time>.<body>`. */
export function signWebhook(secret: string, at: string, body: string): string {
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`;
}

/**
 * Sends what happened since the last message that the receiver confirmed, in order, and stops at
 * the first that it does not take: that one is sent again later. A message may arrive twice; `seq`
 * tells.
 */
export async function deliverEvents(
  store: RequestStore,
  { url, secret }: Webhook,
  link: (id: string) => string | undefined,
): Promise<void> {
  for (const event of await store.events(await store.delivered(url), PAGE)) {
    if (!(await send(url, secret, { ...event, link: link(event.id) }))) return;
    await store.confirm(url, event.seq);
  }
}

async function send(
  url: string,
  secret: string,
  event: RequestEvent & { readonly link: string | undefined },
): Promise<boolean> {
  const body = JSON.stringify(event);
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        'content-type': 'application/json',
        'effectmatch-signature': signWebhook(secret, String(Date.now()), body),
      },
      body,
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
