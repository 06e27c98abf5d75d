import { type Clock, systemClock } from '../contract/clock.ts';
import { EffectMatchError, errorsOf } from '../errors.ts';
import { isName } from '../protocol/record.ts';
import type { StoredToken, TokenStore } from '../requests/store.ts';
import type { Agent } from './agents.ts';
import { Pace } from './pace.ts';
import { digestOfHeader, newToken } from './token.ts';

/** What a token may be used for. */
export const SCOPES = ['ask', 'read', 'answer', 'execute', 'audit', 'operate'] as const;
/** One of {@link SCOPES}. */
export type Scope = (typeof SCOPES)[number];

/** The kind of caller that holds a token. */
type CallerKind = StoredToken['kind'];

/** The scopes that each kind may hold, and the defaults. An agent can never answer. */
const ALLOWED: Readonly<Record<CallerKind, readonly Scope[]>> = {
  agent: ['ask', 'read', 'execute'],
  operator: ['read', 'answer', 'execute', 'audit', 'operate'],
};
const USUAL: Readonly<Record<CallerKind, readonly Scope[]>> = {
  agent: ['ask', 'read'],
  operator: ['read', 'answer'],
};
const OPERATOR_CALLS = 600;
const DAY_MS = 86_400_000;
/** The longest lifetime that `effectmatch token` accepts. */
export const MAX_TOKEN_MS = 366 * DAY_MS;
const TOKEN_MS = 90 * DAY_MS;

/** A caller, identified by its token alone. */
export interface Caller {
  readonly kind: CallerKind;
  readonly name: string;
  /** The token's id. It grants no access. */
  readonly token: string;
  readonly scopes: ReadonlySet<string>;
  /** The agent's permissions in the configuration; undefined for operators. */
  readonly agent?: Agent;
  readonly pace: Pace;
}

/** Identifies callers. Tokens may come from the configuration or from the store. */
export class Callers {
  readonly #agents: ReadonlyMap<string, Agent>;
  readonly #byDigest = new Map<string, Agent>();
  readonly #store: TokenStore;
  readonly #clock: Clock;
  readonly #paces = new Map<string, Pace>();

  constructor(agents: ReadonlyMap<string, Agent>, store: TokenStore, clock = systemClock) {
    this.#agents = agents;
    this.#store = store;
    this.#clock = clock;
    for (const agent of agents.values())
      for (const digest of agent.digests) this.#byDigest.set(digest, agent);
  }

  /** The caller with the token in this `Authorization` header; undefined if it is not valid. */
  async find(header: string | undefined): Promise<Caller | undefined> {
    const digest = digestOfHeader(header);
    if (digest === undefined) return undefined;
    const configured = this.#byDigest.get(digest);
    if (configured !== undefined) return callerOf(configured, idOf(digest), USUAL.agent);
    const token = await this.#store.findToken(digest);
    if (token === undefined || token.expiresMs <= this.#clock.now()) return undefined;
    const { kind, holder: name, scopes, id } = token;
    if (kind === 'operator')
      return { kind, name, token: id, scopes: new Set(scopes), pace: this.#paceOf(name) };
    // An agent that was removed from the configuration loses its access.
    const agent = this.#agents.get(name);
    return agent && callerOf(agent, id, scopes);
  }

  #paceOf(operator: string): Pace {
    const pace = this.#paces.get(operator) ?? new Pace(OPERATOR_CALLS);
    this.#paces.set(operator, pace);
    return pace;
  }
}

function callerOf(agent: Agent, token: string, scopes: readonly string[]): Caller {
  const { name, pace } = agent;
  return { kind: 'agent', name, token, agent, pace, scopes: new Set(scopes) };
}

/** The start of a digest. It identifies the token and grants no access. */
function idOf(digest: string): string {
  return `tok_${digest.slice(7, 23)}`;
}

/** The token to create. */
interface TokenWish {
  readonly kind: CallerKind;
  readonly holder: string;
  /** Defaults to the usual scopes of its kind. */
  readonly scopes?: readonly string[];
  /** Defaults to 90 days. */
  readonly lifetimeMs?: number;
}

/** A new token. It is shown once; only its digest is stored. */
export interface IssuedToken {
  readonly token: string;
  readonly stored: StoredToken;
}

/** Creates a token and stores its digest. */
export async function issueToken(
  store: TokenStore,
  wish: TokenWish,
  clock = systemClock,
): Promise<IssuedToken> {
  const { kind, holder, scopes = USUAL[kind], lifetimeMs = TOKEN_MS } = wish;
  if (!isName(holder)) throw invalid('its holder must be named by letters, digits and . _ : / @ -');
  const stray = scopes.find((scope) => !ALLOWED[kind].some((allowed) => allowed === scope));
  if (stray !== undefined || scopes.length === 0)
    throw invalid(`an ${kind} may have ${ALLOWED[kind].join(', ')}, not "${stray ?? ''}"`);
  const { token, digest } = newToken();
  const createdMs = clock.now();
  const stored: StoredToken = {
    id: idOf(digest),
    digest,
    kind,
    holder,
    createdMs,
    scopes: [...new Set(scopes)],
    expiresMs: createdMs + lifetimeMs,
  };
  await store.addToken(stored);
  return { token, stored };
}

/** Creates a token with the same holder and scopes. The earlier one expires after the overlap. */
export async function rotateToken(
  store: TokenStore,
  id: string,
  { overlapMs, lifetimeMs }: { readonly overlapMs: number; readonly lifetimeMs?: number },
  clock = systemClock,
): Promise<IssuedToken> {
  const now = clock.now();
  const earlier = (await store.tokens()).find((token) => token.id === id);
  if (earlier === undefined || earlier.expiresMs <= now) throw unknown(id);
  const { kind, holder, scopes } = earlier;
  const wish = { kind, holder, scopes, ...(lifetimeMs !== undefined && { lifetimeMs }) };
  const issued = await issueToken(store, wish, clock);
  await store.endToken(id, now + overlapMs);
  return issued;
}

/** Ends a token immediately. */
export async function revokeToken(
  store: TokenStore,
  id: string,
  clock = systemClock,
): Promise<void> {
  if (!(await store.endToken(id, clock.now()))) throw unknown(id);
}

function unknown(id: string): EffectMatchError<'ERR_EM_NOT_FOUND'> {
  const message = `token ${id.slice(0, 80)} does not exist or has expired`;
  return new EffectMatchError('ERR_EM_NOT_FOUND', message);
}

const invalid = errorsOf('ERR_EM_USAGE', 'no token was made: ');
