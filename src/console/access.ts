import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../contract/clock.ts';
import type { Sight } from './visible.ts';

/** A person, and what they may do in the console. Only a signature approves anything. */
export interface Person {
  readonly name: string;
  readonly canAnswer: boolean;
  readonly canOperate: boolean;
  /** The issuers whose keys this person holds; any issuer if undefined. */
  readonly issuers?: readonly string[] | undefined;
  readonly sight: Sight;
}

/** What was done or refused, and what changed if a request was proposed again. */
export interface Said {
  readonly notice: { readonly tone: 'good' | 'bad'; readonly text: string };
  /** Lines of the proposal: `-` of the earlier one, `+` of the new one. */
  readonly difference?: readonly string[];
}

/** A person who is signed in to the console. */
export interface ConsoleSession {
  readonly person: Person;
  /** Proves that a form comes from a page of this session. */
  readonly formToken: string;
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
const MAX_SECRETS = 1000;

/** Values that a secret gives access to until they expire. If there are many, the oldest goes. */
export class Secrets<T> {
  readonly #clock: Clock;
  readonly #kept = new Map<string, { readonly value: T; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Stores a value and returns the secret under which it can be taken out again. */
  keep(value: T, lifetimeMs: number): string {
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= MAX_SECRETS && oldest !== undefined) this.#kept.delete(oldest);
    const secret = randomWord();
    this.#kept.set(secret, { value, untilMs: this.#clock.now() + lifetimeMs });
    return secret;
  }

  find(secret = ''): T | undefined {
    const kept = this.#kept.get(secret);
    return kept !== undefined && kept.untilMs > this.#clock.now() ? kept.value : undefined;
  }

  /** Returns and forgets a value, so that its secret can be used only once. */
  take(secret?: string): T | undefined {
    const found = this.find(secret);
    this.#kept.delete(secret ?? '');
    return found;
  }

  forget(isOver: (value: T) => boolean): void {
    for (const [secret, { value }] of this.#kept) if (isOver(value)) this.#kept.delete(secret);
  }
}

/**
 * Tracks who is signed in. A link opens one session for the user of this machine. People who log in
 * get a shorter session. Sessions live in memory, so a restart signs everyone out.
 */
export class ConsoleSessions {
  readonly #clock: Clock;
  readonly #user: Person;
  readonly #entries: Secrets<Person>;
  readonly #sessions: Secrets<ConsoleSession>;

  constructor(user: string, clock: Clock) {
    this.#user = { name: user, canAnswer: true, canOperate: true, sight: {} };
    this.#clock = clock;
    this.#entries = new Secrets(clock);
    this.#sessions = new Secrets(clock);
  }

  /** Returns a secret for a link that opens one session within the next hour. */
  createEntry(): string {
    return this.#entries.keep(this.#user, ENTRY_MS);
  }

  /** Opens a session and returns its secret; undefined if the link was used or has expired. */
  enter(entry: string): string | undefined {
    const user = this.#entries.take(entry);
    return user && this.#open(user, LINK_SESSION_MS, LINK_SESSION_MS);
  }

  /** Opens a session for a person who has logged in, and returns its secret. */
  open(person: Person): string {
    return this.#open(person, LOGIN_SESSION_MS, LOGIN_IDLE_MS);
  }

  #open(person: Person, lifetimeMs: number, idleMs: number): string {
    const session = { person, formToken: randomWord(), idleMs, usedMs: this.#clock.now() };
    return this.#sessions.keep(session, lifetimeMs);
  }

  find(secret: string | undefined): ConsoleSession | undefined {
    const session = this.#sessions.find(secret);
    const now = this.#clock.now();
    if (session === undefined || session.usedMs + session.idleMs <= now) return undefined;
    session.usedMs = now;
    return session;
  }

  /** Ends one session, or every session of its person. */
  close(secret: string | undefined, everywhere: boolean): void {
    const name = this.#sessions.take(secret)?.person.name;
    if (everywhere) this.#sessions.forget(({ person }) => person.name === name);
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
