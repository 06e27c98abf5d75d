import { hash, randomBytes } from 'node:crypto';
import type { AdapterContext } from '../contract/adapter.ts';
import { type Deadline, isOver } from '../contract/clock.ts';
import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { EffectMatchError } from '../errors.ts';
import type { Value } from '../protocol/value.ts';
import { bodyText, type Content } from './content.ts';
import { type Exchanged, exchange, nameOf } from './exchange.ts';
import { parseJson } from './json.ts';
import type { ServiceOptions } from './options.ts';

/** What a request that only reads came back with. */
export type Answer =
  | {
      readonly kind: 'found';
      readonly body: Value;
      readonly headers: Readonly<Record<string, string>>;
    }
  /** 404 or 410: there is no such thing at the moment. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'silent'; readonly why: string };

/** Salts what is said about the credential, so that nothing stored lets anybody try guesses. */
const SALT = randomBytes(32).toString('hex');
const SECRET_MIN = 4;
/** A timer that is set to more goes off at once. */
const LIMIT_MAX = 2 ** 31 - 1;

/** For one request, unless said otherwise. */
const TIMEOUT_MS = 10_000;

const SERVICE: OptionNames<ServiceOptions> = {
  ...{ url: true, backend: true, credential: true, ca: true, timeoutMs: true, maxBytes: true },
};

/** What the gateway needs of the adapter that it is opened for. */
export type GatewayContext = Pick<AdapterContext, 'clock' | 'reached' | 'leaseMs'>;

/** Under which conditions a request of one attempt may leave: permits and certificates are such. */
export interface Warrant {
  /** The fingerprint of the credential, as the attempt's own survey gave it. */
  readonly credentials: string;
  readonly deadline?: Deadline;
}

/** The only way to the service: it holds the credential, knows one host, and hands out neither. */
export class Gateway {
  readonly host: string;
  readonly #base: URL;
  readonly #service: ServiceOptions;
  readonly #context: GatewayContext;

  constructor(service: ServiceOptions, context: GatewayContext) {
    const misnamed = misnamedOption(service, SERVICE);
    if (misnamed !== undefined) throw refused(`service: ${misnamed}`);
    this.#base = readBase(service.url);
    this.host = this.#base.origin;
    this.#service = service;
    this.#context = context;
    const { header } = service.credential ?? {};
    if (typeof header !== 'string' || !/^[A-Za-z0-9-]+$/.test(header)) {
      throw refused('credential.header must be the name of a header');
    }
    this.#credential();
    for (const [name, value] of Object.entries({
      timeoutMs: service.timeoutMs,
      maxBytes: service.maxBytes,
    })) {
      if (
        value !== undefined &&
        !(Number.isSafeInteger(value) && value > 0 && value <= LIMIT_MAX)
      ) {
        throw refused(`${name} must be a whole number above 0 and at most ${LIMIT_MAX}`);
      }
    }
    checkLease(service.timeoutMs ?? TIMEOUT_MS, context.leaseMs);
  }

  /** The header that carries the credential, lower case: no operation may set it. */
  get credentialHeader(): string {
    return this.#service.credential.header.toLowerCase();
  }

  /** Changes when the credential does, and says nothing else about it. */
  fingerprint(): string {
    return this.#fingerprintOf(this.#credential());
  }

  /** The same under a digest that other processes share, with the service that it is for. */
  keyedFingerprint(digest: (secret: string) => string): string {
    return `${this.#base.href} ${this.credentialHeader} ${digest(this.#credential())}`;
  }

  /**
   * Sends an effectful request once. `key` goes where the operation says. `warrant`: only with the
   * credential that the attempt was certified with, because another one may be that of another
   * account, and only while its lease lasts.
   */
  async send(
    content: Content,
    key: string,
    options: { readonly bare?: boolean; readonly warrant?: Warrant } = {},
  ): Promise<Exchanged> {
    const body = bodyText(content);
    const headers = {
      ...content.headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(content.idempotency !== null && { [content.idempotency]: key }),
    };
    const { method, path } = content;
    const { bare = false, warrant } = options;
    const exchanged = await this.#exchange(method, path, headers, { body, bare, warrant });
    if (exchanged.kind !== 'not-sent' && options.bare !== true)
      this.#context.reached('adapter:response-read');
    return exchanged;
  }

  /** Sends a GET over a new connection; with a warrant, only with the credential that it names. */
  async get(path: string, warrant?: Warrant): Promise<Answer> {
    const exchanged = await this.#exchange('GET', path, {}, { bare: false, warrant });
    if (exchanged.kind !== 'response') return { kind: 'silent', why: exchanged.why };
    const { status, headers, body } = exchanged;
    if (status === 404 || status === 410) return { kind: 'absent' };
    if (status !== 200) return { kind: 'silent', why: `the service answered ${status}` };
    const value = parseJson(body);
    return value === undefined
      ? { kind: 'silent', why: 'the service answered with something that is not JSON' }
      : { kind: 'found', body: value, headers };
  }

  async #exchange(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    {
      body,
      bare,
      warrant,
    }: {
      readonly body?: string | undefined;
      readonly bare: boolean;
      readonly warrant?: Warrant | undefined;
    },
  ): Promise<Exchanged> {
    const url = this.#locate(path);
    const credential = warrant === undefined ? this.#credential() : this.#tryCredential();
    if (typeof credential !== 'string') return { kind: 'not-sent', why: credential.why };
    if (warrant !== undefined && warrant.credentials !== this.#fingerprintOf(credential)) {
      return { kind: 'not-sent', why: 'the credential is not the one that was certified' };
    }
    const { timeoutMs = TIMEOUT_MS, maxBytes = 1 << 20, ca } = this.#service;
    const effectful = method !== 'GET' && !bare;
    const outgoing = {
      method,
      url,
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'effectmatch',
        ...headers,
        ...(!bare && { [this.credentialHeader]: credential }),
      },
      ...(body !== undefined && { body }),
    };
    const connected = effectful
      ? () => {
          this.#context.reached('adapter:connected');
          const late =
            warrant?.deadline !== undefined && isOver(this.#context.clock, warrant.deadline);
          return late
            ? 'the lease of the attempt had run out before anything was written'
            : undefined;
        }
      : undefined;
    return withhold(await exchange(outgoing, { timeoutMs, maxBytes, ca, connected }), credential);
  }

  /** Whatever a path contains, it stays under the registered URL. */
  #locate(path: string): URL {
    const root = this.#base.pathname.replace(/\/$/, '');
    const url = new URL(`${root}${path}`, this.#base.origin);
    const under = url.pathname.startsWith(`${root}/`) || url.pathname === root;
    if (
      !path.startsWith('/') ||
      url.origin !== this.#base.origin ||
      !under ||
      url.username !== ''
    ) {
      throw refused('a path leads away from the registered service');
    }
    return url;
  }

  #fingerprintOf(credential: string): string {
    return `${this.credentialHeader} ${hash('sha256', `${SALT}${credential}`, 'hex').slice(0, 32)}`;
  }

  /**
   * Without a credential nothing of an attempt's request leaves, which is worth more than an error.
   */
  #tryCredential(): string | { readonly why: string } {
    try {
      return this.#credential();
    } catch (error) {
      return { why: (error as Error).message };
    }
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

/** What the function throws is not passed on: it may quote what it was about to return. */
function askFor(credential: () => string): string {
  try {
    return credential();
  } catch (error) {
    throw refused(`the function that returns the credential threw (${nameOf(error)})`);
  }
}

/**
 * A response that repeats the credential is not used: what is read from it could end in the
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

/** The credential without the name of its scheme, which is no secret. */
function secretOf(credential: string): string {
  return credential.replace(/^[A-Za-z][A-Za-z0-9-]* +/, '');
}

/**
 * A JSON text with its escapes resolved: `\/` and `\u0070` are how some services write plain
 * characters.
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
    `http: timeoutMs (${timeoutMs}) must be below leaseMs (${leaseMs}): a request must not be sent after the lease of its ` +
      'attempt has run out',
  );
}

function readBase(text: string): URL {
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    throw refused('service.url must be http or https');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw refused('service.url must be without user, query and fragment');
  }
  const loopback = ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  if (url.protocol === 'http:' && !loopback)
    throw refused('service.url must be https, except on this machine');
  return url;
}

/** Says why an adapter cannot be used as it is configured. */
export function refused(why: string, cause?: unknown): EffectMatchError<'ERR_EM_ADAPTER_REFUSED'> {
  return new EffectMatchError(
    'ERR_EM_ADAPTER_REFUSED',
    `http: ${why}`,
    cause === undefined ? {} : { cause },
  );
}
