import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../contract/clock.ts';
import type { Said } from './said.ts';
import type { Sight } from './sight.ts';

/** A person, and what they may do in the console. Only a signature approves anything. */
export interface Person {
  readonly name: string;
  readonly canAnswer: boolean;
  readonly canOperate: boolean;
  /** The issuers whose keys this person holds; any issuer if undefined. */
  readonly issuers?: readonly string[] | undefined;
  readonly sight: Sight;
}

/** A person who is signed in to the console. */
export interface ConsoleSession {
  readonly person: Person;
  /** Proves that a form comes from a page of this session. */
  readonly formToken: string;
  readonly untilMs: number;
  /** The session ends after this long without a request. */
  readonly idleMs: number;
  usedMs: number;
  /** The notice that the next page shows once, after a form was submitted. */
  said?: Said | undefined;
}

const LINK_SESSION_MS = 12 * 3_600_000;
const LOGIN_SESSION_MS = 8 * 3_600_000;
const LOGIN_IDLE_MS = 3_600_000;
const ENTRY_MS = 3_600_000;
const MAX_SESSIONS = 1000;

/**
 * Tracks who is signed in. A link opens one session for the user of this machine. People who log in
 * get a shorter session. Sessions live in memory, so a restart signs everyone out.
 */
export class ConsoleSessions {
  readonly #clock: Clock;
  readonly #user: Person;
  readonly #entries = new Map<string, number>();
  readonly #sessions = new Map<string, ConsoleSession>();

  constructor(user: string, clock: Clock) {
    this.#user = { name: user, canAnswer: true, canOperate: true, sight: {} };
    this.#clock = clock;
  }

  /** Returns a secret for a link that opens one session within the next hour. */
  createEntry(): string {
    const entry = randomWord();
    this.#entries.set(entry, this.#clock.now() + ENTRY_MS);
    return entry;
  }

  /** Opens a session and returns its secret; undefined if the link was used or has expired. */
  enter(entry: string): string | undefined {
    const untilMs = this.#entries.get(entry);
    this.#entries.delete(entry);
    if (untilMs === undefined || untilMs < this.#clock.now()) return undefined;
    return this.#open(this.#user, LINK_SESSION_MS, LINK_SESSION_MS);
  }

  /** Opens a session for a person who has logged in, and returns its secret. */
  open(person: Person): string {
    return this.#open(person, LOGIN_SESSION_MS, LOGIN_IDLE_MS);
  }

  #open(person: Person, lifetimeMs: number, idleMs: number): string {
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size >= MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
    const [secret, usedMs] = [randomWord(), this.#clock.now()];
    const session: ConsoleSession = {
      person,
      formToken: randomWord(),
      untilMs: usedMs + lifetimeMs,
      idleMs,
      usedMs,
    };
    this.#sessions.set(secret, session);
    return secret;
  }

  find(secret: string | undefined): ConsoleSession | undefined {
    const session = secret === undefined ? undefined : this.#sessions.get(secret);
    const now = this.#clock.now();
    if (session === undefined || session.untilMs <= now) return undefined;
    if (session.usedMs + session.idleMs <= now) return undefined;
    session.usedMs = now;
    return session;
  }

  /** Ends one session, or every session of its person. */
  close(secret: string | undefined, everywhere: boolean): void {
    const name = this.#sessions.get(secret ?? '')?.person.name;
    this.#sessions.delete(secret ?? '');
    if (!everywhere) return;
    for (const [other, { person }] of this.#sessions)
      if (person.name === name) this.#sessions.delete(other);
  }
}

/** A secret that cannot be guessed. */
export function randomWord(): string {
  return randomBytes(32).toString('base64url');
}

/** Compares two secrets in constant time. */
export function isSameWord(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Sent with every response. Pages load nothing from other origins and cannot be framed. */
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
