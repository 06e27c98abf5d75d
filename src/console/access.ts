import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../contract/clock.ts';
import type { Said } from './said.ts';
import type { Sight } from './sight.ts';

/** A person, and what they may do in the console. Only a signature approves anything. */
export interface Person {
  readonly name: string;
  readonly canAnswer: boolean;
  readonly canOperate: boolean;
  /** The issuers whose keys they have; any of them if it does not say. */
  readonly issuers?: readonly string[] | undefined;
  /** What they may see. */
  readonly sight: Sight;
}

/** A person who is signed in to the console. */
export interface ConsoleSession {
  readonly person: Person;
  /** Proves that a form comes from a page of this session. */
  readonly formToken: string;
  readonly untilMs: number;
  /** It ends if it is not used for so long. */
  readonly idleMs: number;
  usedMs: number;
  /** What the next page says once, after a form was sent. */
  said?: Said | undefined;
}

const LINK_SESSION_MS = 12 * 3_600_000;
const LOGIN_SESSION_MS = 8 * 3_600_000;
const LOGIN_IDLE_MS = 3_600_000;
const ENTRY_MS = 3_600_000;
const MAX_SESSIONS = 1000;

/**
 * Who is signed in. A link opens one session of the user of this machine; people who log in get a
 * shorter one. All of it is in memory: a restart signs everyone out.
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
      ...{ person, formToken: randomWord(), untilMs: usedMs + lifetimeMs, idleMs, usedMs },
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
