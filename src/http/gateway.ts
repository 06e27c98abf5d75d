import { hash, randomBytes } from 'node:crypto';
import { unavailable } from '../backend/setup.ts';
import type { AdapterContext } from '../contract/adapter.ts';
import { type Deadline, isOver } from '../contract/clock.ts';
import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Value } from '../protocol/value.ts';
import {
  buildContent,
  type Content,
  type FixedParts,
  isHeaderName,
  type RequestParts,
} from './content.ts';
import { refused } from './errors.ts';
import { type Exchanged, exchange, safeCodeOf } from './exchange.ts';
import { parseJson } from './json.ts';

/**
 * The one service that an adapter talks to. Nothing is sent to another host, whatever a response
 * says.
 */
export interface ServiceOptions {
  /** For example `https://pay.example`, with a path if the service has one. */
  readonly url: string;
  /**
   * The account or tenant, in your own words. A license for one backend is not valid for another.
   */
  readonly backend: string;
  /**
   * The credential that only the gateway has. A function is called for every request, so that the
   * credential can be rotated.
   */
  readonly credential: { readonly header: string; readonly value: string | (() => string) };
  /** Certificates to trust instead of those of Node.js, as PEM. */
  readonly ca?: string | undefined;
  /** The total time for one request. Default: 10 s. */
  readonly timeoutMs?: number | undefined;
  /** The maximum size of a response in bytes. Default: 1 MiB. */
  readonly maxBytes?: number | undefined;
}

const SERVICE: OptionNames<ServiceOptions> = {
  url: true,
  backend: true,
  credential: true,
  ca: true,
  timeoutMs: true,
  maxBytes: true,
};

/** The response of a service to a GET. */
interface ServiceDocument {
  readonly body: Value;
  readonly headers: Readonly<Record<string, string>>;
}

/** The result of a GET. `absent` is 404 or 410: nothing exists at the path now. */
type ReadAnswer =
  | ({ readonly kind: 'found' } & ServiceDocument)
  | { readonly kind: 'absent' }
  | { readonly kind: 'silent'; readonly why: string };

/** The conditions for sending a request of one attempt, such as a permit or certificate. */
export interface Warrant {
  /** The fingerprint of the credential from the attempt's own survey. */
  readonly credentials: string;
  readonly deadline?: Deadline;
}

/** One request of the gateway. `bare` sends it without the credential. */
interface GatewayRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly bare?: boolean;
  readonly warrant: Warrant | undefined;
}

/** Salts the fingerprint of the credential, so that it cannot be used to test guesses. */
const SALT = randomBytes(32).toString('hex');
const SECRET_MIN = 4;
/** A timer with a larger delay would fire at once. */
const LIMIT_MAX = 2 ** 31 - 1;

/** The only way to the service. It holds the credential, knows one host, and reveals neither. */
export class Gateway {
  readonly host: string;
  readonly #base: URL;
  readonly #service: ServiceOptions;
  readonly #limits: { readonly timeoutMs: number; readonly maxBytes: number };
  /** In lower case. Operations cannot set this header. */
  readonly #credentialHeader: string;
  readonly #context: Pick<AdapterContext, 'clock' | 'reached' | 'leaseMs'>;

  constructor(
    service: ServiceOptions,
    context: Pick<AdapterContext, 'clock' | 'reached' | 'leaseMs'>,
  ) {
    const misnamed = misnamedOption(service, SERVICE);
    if (misnamed !== undefined) throw refused(`service: ${misnamed}`);
    const { url, credential, timeoutMs = 10_000, maxBytes = 1 << 20 } = service;
    if (!isHeaderName(credential?.header))
      throw refused('credential.header must be the name of a header');
    this.#base = readBase(url);
    this.host = this.#base.origin;
    this.#service = service;
    this.#limits = { timeoutMs, maxBytes };
    this.#credentialHeader = credential.header.toLowerCase();
    this.#context = context;
    this.#credential();
    for (const [name, limit] of Object.entries(this.#limits)) {
      if (!Number.isSafeInteger(limit) || limit <= 0 || limit > LIMIT_MAX)
        throw refused(`${name} must be a whole number above 0 and at most ${LIMIT_MAX}`);
    }
    checkLease(timeoutMs, context.leaseMs);
  }

  /** Changes when the credential does, and reveals nothing else about it. */
  fingerprint(): string {
    return this.#fingerprintOf(this.#credential());
  }

  /** The same, with a digest that other processes share, and with the service's URL. */
  keyedFingerprint(digest: (secret: string) => string): string {
    return `${this.#base.href} ${this.#credentialHeader} ${digest(this.#credential())}`;
  }

  /** Builds a request for this gateway; see {@link buildContent}. */
  compose(fixed: FixedParts, parts: RequestParts): Content {
    return buildContent(fixed, parts, this.#credentialHeader);
  }

  /**
   * Sends an effectful request once. `key` goes into the operation's idempotency header. With a
   * warrant, the request is sent only with the certified credential, because a different one may
   * belong to another account, and only before its lease runs out.
   */
  async send(
    content: Content,
    key: string,
    {
      bare = false,
      warrant,
    }: { readonly bare?: boolean; readonly warrant?: Warrant | undefined } = {},
  ): Promise<Exchanged> {
    const { method, path, idempotency } = content;
    const body = content.body === null ? undefined : canonical(content.body);
    const headers = {
      ...content.headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(idempotency !== null && { [idempotency]: key }),
    };
    const exchanged = await this.#exchange({ method, path, headers, body, bare, warrant });
    if (exchanged.kind !== 'not-sent' && !bare) this.#context.reached('adapter:response-read');
    return exchanged;
  }

  /** Sends a GET over a new connection. With a warrant, only with the credential that it names. */
  async get(path: string, warrant?: Warrant): Promise<ReadAnswer> {
    const exchanged = await this.#exchange({ method: 'GET', path, warrant });
    if (exchanged.kind !== 'response') return { kind: 'silent', why: exchanged.why };
    const { status, headers } = exchanged;
    if (status === 404 || status === 410) return { kind: 'absent' };
    if (status !== 200) return { kind: 'silent', why: `the service answered ${status}` };
    const body = parseJson(exchanged.body);
    return body === undefined
      ? { kind: 'silent', why: 'the service answered with something that is not JSON' }
      : { kind: 'found', body, headers };
  }

  /** Like `get`, but throws if the service is silent, and returns undefined if absent. */
  async read(what: string, path: string, warrant?: Warrant): Promise<ServiceDocument | undefined> {
    const answer = await this.get(path, warrant);
    if (answer.kind === 'silent') throw unavailable(`${what} could not be read: ${answer.why}`);
    return answer.kind === 'found' ? answer : undefined;
  }

  async #exchange(request: GatewayRequest): Promise<Exchanged> {
    const { method, path, body, bare = false, warrant } = request;
    const url = this.#locate(path);
    let credential: string;
    try {
      credential = this.#credential();
    } catch (error) {
      // Proof that nothing was sent is worth more than an error.
      if (warrant !== undefined) return { kind: 'not-sent', why: (error as Error).message };
      throw error;
    }
    if (warrant !== undefined && warrant.credentials !== this.#fingerprintOf(credential)) {
      return { kind: 'not-sent', why: 'the credential is not the one that was certified' };
    }
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'effectmatch',
      ...request.headers,
      ...(!bare && { [this.#credentialHeader]: credential }),
    };
    const isEffectful = method !== 'GET' && !bare;
    const exchanged = await exchange(
      { method, url, headers, body },
      {
        ...this.#limits,
        ca: this.#service.ca,
        connected: isEffectful ? () => this.#connected(warrant?.deadline) : undefined,
      },
    );
    return withhold(exchanged, credential);
  }

  /** The last check before the first byte: why an effectful request must not be written. */
  #connected(deadline: Deadline | undefined): string | undefined {
    const { clock, reached } = this.#context;
    reached('adapter:connected');
    const isLate = deadline !== undefined && isOver(clock, deadline);
    return isLate ? 'the lease of the attempt had run out before anything was written' : undefined;
  }

  /** The URL of a path. It always stays under the registered URL. */
  #locate(path: string): URL {
    const root = this.#base.pathname.replace(/\/$/, '');
    const url = new URL(`${root}${path}`, this.#base.origin);
    const under = url.pathname.startsWith(`${root}/`) || url.pathname === root;
    const isSameHost = url.origin === this.#base.origin && url.username === '';
    if (path.startsWith('/') && isSameHost && under) return url;
    throw refused('a path leads away from the registered service');
  }

  #fingerprintOf(credential: string): string {
    const salted = hash('sha256', `${SALT}${credential}`, 'hex');
    return `${this.#credentialHeader} ${salted.slice(0, 32)}`;
  }

  #credential(): string {
    const { value } = this.#service.credential;
    const credential = typeof value === 'function' ? askFor(value) : value;
    if (
      typeof credential !== 'string' ||
      secretOf(credential).length < SECRET_MIN ||
      !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(credential)
    ) {
      throw refused('the credential must be printable text of at least 4 characters');
    }
    return credential;
  }
}

/** Does not pass on the function's error, which may quote the credential. */
function askFor(credential: () => string): string {
  try {
    return credential();
  } catch (error) {
    throw refused(`the function that returns the credential threw (${safeCodeOf(error)})`);
  }
}

/**
 * Does not use a response that repeats the credential, because parts of it could end up in the
 * journal.
 */
function withhold(exchanged: Exchanged, credential: string): Exchanged {
  if (exchanged.kind !== 'response') return exchanged;
  const secret = secretOf(credential);
  const body = exchanged.body.toString('latin1');
  const texts = [body, unescapeJson(body), ...Object.values(exchanged.headers)];
  const repeats = texts.some((text) => text.includes(secret));
  return repeats
    ? { kind: 'lost', why: 'the response repeats the credential and is not used' }
    : exchanged;
}

/** The credential without the name of its scheme, which is public. */
function secretOf(credential: string): string {
  return credential.replace(/^[A-Za-z][A-Za-z0-9-]* +/, '');
}

/**
 * Resolves the escapes of a JSON text. Some services write plain characters as `\/` or `\u0070`.
 */
function unescapeJson(text: string): string {
  return text.replace(
    /\\(?:u([0-9a-fA-F]{4})|(["\\/]))/g,
    (_, code: string | undefined, plain: string | undefined) =>
      code === undefined ? (plain ?? '') : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

/**
 * A request that may take longer than the lease could still be sent after recovery or an operator
 * closed the attempt.
 */
function checkLease(timeoutMs: number, leaseMs: number | undefined): void {
  if (leaseMs === undefined || timeoutMs < leaseMs) return;
  throw new EffectMatchError(
    'ERR_EM_CONFIG_INVALID',
    `http: timeoutMs (${timeoutMs}) must be below leaseMs (${leaseMs}): a request must not be ` +
      'sent after the lease of its attempt has run out',
  );
}

function readBase(text: string): URL {
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    throw refused('service.url must be http or https');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw refused('service.url must not have a user, a query or a fragment');
  }
  const loopback = ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  if (url.protocol === 'http:' && !loopback)
    throw refused('service.url must be https, except on this machine');
  return url;
}
