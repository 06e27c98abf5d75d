import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../contract/clock.ts';

/** A person who is signed in to the console. */
export interface ConsoleSession {
  readonly user: string;
  /** Proves that a form comes from a page of this session. */
  readonly formToken: string;
  readonly untilMs: number;
  /** What the next page says once, after a form was sent. */
  said?: Said | undefined;
}

/** What was done or refused, and what is different after a request was proposed again. */
export interface Said {
  readonly notice: { readonly tone: 'good' | 'bad'; readonly text: string };
  readonly difference?: readonly string[];
}

const SESSION_MS = 12 * 3_600_000;
const ENTRY_MS = 3_600_000;
const MAX_SESSIONS = 100;

/**
 * Sessions of one user on this machine. The link that opens one works once. All of it is in memory:
 * a restart signs everyone out.
 */
export class LocalSessions {
  readonly #clock: Clock;
  readonly #user: string;
  readonly #entries = new Map<string, number>();
  readonly #sessions = new Map<string, ConsoleSession>();

  constructor(user: string, clock: Clock) {
    this.#user = user;
    this.#clock = clock;
  }

  /** A word for a link that opens one session within the hour. */
  createEntry(): string {
    const entry = randomWord();
    this.#entries.set(entry, this.#clock.now() + ENTRY_MS);
    return entry;
  }

  /** Opens a session and returns its secret; undefined if the word was used or is too old. */
  enter(entry: string): string | undefined {
    const untilMs = this.#entries.get(entry);
    this.#entries.delete(entry);
    const now = this.#clock.now();
    if (untilMs === undefined || untilMs < now) return undefined;
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size >= MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
    const secret = randomWord();
    const session: ConsoleSession = {
      user: this.#user,
      formToken: randomWord(),
      untilMs: now + SESSION_MS,
    };
    this.#sessions.set(secret, session);
    return secret;
  }

  find(secret: string | undefined): ConsoleSession | undefined {
    const session = secret === undefined ? undefined : this.#sessions.get(secret);
    return session !== undefined && session.untilMs > this.#clock.now() ? session : undefined;
  }
}

function randomWord(): string {
  return randomBytes(32).toString('base64url');
}

/** Whether two words are equal; how long it takes does not tell where they differ. */
export function isSameWord(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Sent with every answer: nothing from elsewhere is loaded, and no other page may frame this one. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
};
