import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import type { WallClock } from '../contract/clock.ts';
import { EffectMatchError, errorsOf } from '../errors.ts';
import { isSameWord, randomWord } from './access.ts';
import type { OidcConfig } from './configuration.ts';

/** What the server remembers while a person signs in at the provider. */
export interface OidcAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The fields of the discovery document that we use. */
interface Provider {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly jwks_uri: string;
  readonly userinfo_endpoint?: string;
}

/** What the provider returns for an authorization code. */
interface Tokens {
  readonly idToken: string;
  readonly accessToken: string;
}

interface Jwk extends JsonWebKey {
  readonly kid?: string;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER = 1_000_000;
const SKEW_MS = 60_000;
/** The accepted token signatures. `none` and shared secrets (HS256) are not accepted. */
const ALGORITHMS: Readonly<Record<string, { readonly kty: string; readonly hash: string | null }>> =
  {
    RS256: { kty: 'RSA', hash: 'sha256' },
    ES256: { kty: 'EC', hash: 'sha256' },
    EdDSA: { kty: 'OKP', hash: null },
  };

/** Signs people in with the authorization code flow and PKCE (RFC 7636). */
export class OidcClient {
  readonly #config: OidcConfig;
  readonly #redirectUri: string;
  readonly #clock: WallClock;
  #provider: Promise<Provider> | undefined;

  constructor(config: OidcConfig, redirectUri: string, clock: WallClock) {
    checkAddress(config.issuer);
    this.#config = config;
    this.#redirectUri = redirectUri;
    this.#clock = clock;
  }

  /** Returns the address to redirect to, and the attempt to pass to {@link finish}. */
  async begin(): Promise<{ readonly url: string; readonly attempt: OidcAttempt }> {
    const { authorization_endpoint: place } = await this.#discover();
    const attempt = { state: randomWord(), nonce: randomWord(), verifier: randomWord() };
    const url = new URL(place);
    const challenge = createHash('sha256').update(attempt.verifier).digest('base64url');
    const asked = {
      response_type: 'code',
      client_id: this.#config.clientId,
      redirect_uri: this.#redirectUri,
      scope: 'openid email',
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
    return { url: url.href, attempt };
  }

  /** Checks the callback's query and returns the name that the provider vouches for. */
  async finish(query: URLSearchParams, attempt: OidcAttempt): Promise<string> {
    if (!isSameWord(query.get('state') ?? '', attempt.state))
      throw refused('the answer does not belong to this sign-in; start again');
    const provider = await this.#discover();
    const sender = query.get('iss');
    if (sender !== null && sender !== provider.issuer)
      throw refused('another provider answered; start again');
    const code = query.get('code');
    if (code === null) throw refused(`the provider refused: ${query.get('error') ?? 'no code'}`);
    const { idToken, accessToken } = await this.#redeem(provider, code, attempt.verifier);
    const claims = await this.#verify(provider, idToken);
    if (!isSameWord(String(claims.nonce ?? ''), attempt.nonce))
      throw refused('the token is for another sign-in');
    const { claim = 'email' } = this.#config;
    if (Object.hasOwn(claims, claim)) return this.#nameIn(claims);
    return this.#nameIn(await readUserInfo(provider, accessToken, claims.sub));
  }

  async #discover(): Promise<Provider> {
    this.#provider ??= this.#readProvider().catch((error) => {
      this.#provider = undefined;
      throw error;
    });
    return await this.#provider;
  }

  async #readProvider(): Promise<Provider> {
    const { issuer } = this.#config;
    const place = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const found = (await readJson(place)) as unknown as Provider;
    if (found.issuer !== issuer) throw refused(`${place} is the document of another issuer`);
    const { authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint } = found;
    for (const address of [authorization_endpoint, token_endpoint, jwks_uri]) checkAddress(address);
    if (userinfo_endpoint !== undefined) checkAddress(userinfo_endpoint);
    return found;
  }

  async #redeem(
    { token_endpoint: place }: Provider,
    code: string,
    verifier: string,
  ): Promise<Tokens> {
    const { clientId, clientSecret } = this.#config;
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.#redirectUri,
      code_verifier: verifier,
      client_id: clientId,
    });
    const pair = [clientId, clientSecret ?? ''].map(encodeURIComponent).join(':');
    const authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
    const headers: Record<string, string> = clientSecret === undefined ? {} : { authorization };
    const answer = await readJson(place, { method: 'POST', body, headers });
    if (typeof answer.id_token !== 'string') throw refused('the provider sent no id token');
    return { idToken: answer.id_token, accessToken: String(answer.access_token ?? '') };
  }

  /** Validates the id token as in OpenID Connect Core, section 3.1.3.7. */
  async #verify(provider: Provider, token: string): Promise<Record<string, unknown>> {
    const [head = '', payload = '', signature = '', ...rest] = token.split('.');
    const [{ alg, kid }, claims] = [readPart(head), readPart(payload)];
    const algorithm = Object.hasOwn(ALGORITHMS, String(alg)) ? ALGORITHMS[String(alg)] : undefined;
    if (algorithm === undefined || rest.length > 0) throw refused('the token is malformed');
    const { keys = [] } = (await readJson(provider.jwks_uri)) as { keys?: readonly Jwk[] };
    const fitting = keys.filter(
      (key) => key.kty === algorithm.kty && (kid === undefined || key.kid === kid),
    );
    const data = Buffer.from(`${head}.${payload}`);
    const bytes = Buffer.from(signature, 'base64url');
    const isSigned = fitting.some((jwk) => {
      const key = createPublicKey({ key: jwk, format: 'jwk' });
      const { namedCurve = 'prime256v1' } = key.asymmetricKeyDetails ?? {};
      const isRight = algorithm.kty !== 'EC' || namedCurve === 'prime256v1';
      return isRight && verify(algorithm.hash, data, { key, dsaEncoding: 'ieee-p1363' }, bytes);
    });
    if (!isSigned) throw refused('the token is not signed by the provider');
    const { clientId } = this.#config;
    const isMine = [claims.aud].flat().includes(clientId);
    const isParty = claims.azp === undefined || claims.azp === clientId;
    if (claims.iss !== provider.issuer || !isMine || !isParty)
      throw refused('the token is for another client');
    if (!(Number(claims.exp) * 1000 > this.#clock.now() - SKEW_MS))
      throw refused('the token has expired; compare the clocks');
    return claims;
  }

  #nameIn(claims: Record<string, unknown>): string {
    const { claim = 'email' } = this.#config;
    const name = claims[claim];
    if (typeof name !== 'string' || name === '')
      throw refused(`the provider did not state "${claim}"`);
    if (claim === 'email' && claims.email_verified !== true)
      throw refused('the provider has not verified this email address');
    return name;
  }
}

/** Requires https, except on this machine: a token is only as trustworthy as its channel. */
function checkAddress(address: unknown): void {
  const url = URL.canParse(String(address)) ? new URL(String(address)) : undefined;
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(url?.hostname ?? '');
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal)) return;
  const message = `an identity provider needs an https address, not ${String(address)}`;
  throw new EffectMatchError('ERR_EM_CONFIG_INVALID', message);
}

/** Reads the userinfo endpoint. Its answer must be about the same person as the token. */
async function readUserInfo(
  { userinfo_endpoint: place }: Provider,
  accessToken: string,
  subject: unknown,
): Promise<Record<string, unknown>> {
  if (place === undefined) return {};
  const headers = { authorization: `Bearer ${accessToken}` };
  const found = await readJson(place, { headers });
  if (found.sub !== subject) throw refused('the provider answered about another person');
  return found;
}

async function readJson(place: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const answer = await fetch(place, { ...init, redirect: 'error', signal });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    if (text.length > MAX_ANSWER) throw new Error('the answer is too long');
    return Object(JSON.parse(text));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `the identity provider did not answer at ${place}: ${why}`;
    throw new EffectMatchError('ERR_EM_ACCESS_REFUSED', message, { cause });
  }
}

function readPart(part: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(Buffer.from(part, 'base64url').toString('utf8')));
  } catch {
    throw refused('the token is malformed');
  }
}

const refused = errorsOf('ERR_EM_ACCESS_REFUSED', 'not signed in: ');
