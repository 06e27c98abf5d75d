/** The text form of a passkey's public half, and the pages it may be used on. */
export interface PasskeyText {
  readonly algorithm: 'es256' | 'eddsa';
  /** The public key: x and y of P-256, or a point of Ed25519, in base64url. */
  readonly point: string;
  /** The authenticator's id for the key, in base64url. */
  readonly credential: string;
  /** The only origin whose pages it signs for. */
  readonly origin: string;
  /** The relying party: the host of that origin. */
  readonly host: string;
}

const FORM = /^passkey:(es256|eddsa):([\w-]+):([\w-]{1,1364})@(https?:\/\/[^/?#@]+)$/;

/** Whether a public key is written as a passkey. */
export function isPasskeyText(text: string): boolean {
  return text.startsWith('passkey:');
}

/**
 * Parses `passkey:ALGORITHM:KEY:CREDENTIAL@ORIGIN`; undefined for any other form. Authenticators
 * sign only for https and for pages on localhost.
 */
export function readPasskeyText(text: string): PasskeyText | undefined {
  const [, algorithm, point, credential, origin = ''] = FORM.exec(text) ?? [];
  if (point === undefined || credential === undefined || !URL.canParse(origin)) return undefined;
  const url = new URL(origin);
  const isLocal = url.hostname === 'localhost' || url.hostname.endsWith('.localhost');
  if (url.origin !== origin || (url.protocol !== 'https:' && !isLocal)) return undefined;
  const named = algorithm as PasskeyText['algorithm'];
  return { algorithm: named, point, credential, origin, host: url.hostname };
}

/** The one-line form used in configurations. */
export function writePasskeyText(parts: Omit<PasskeyText, 'host'>): string {
  const { algorithm, point, credential, origin } = parts;
  return `passkey:${algorithm}:${point}:${credential}@${origin}`;
}

/** The parts of a passkey's signature, as a license carries them. */
interface AssertionText {
  readonly authenticatorData: string;
  readonly clientData: string;
  readonly signature: string;
}

/** The three parts on one line, each in base64url. */
export function writeAssertion(parts: AssertionText): string {
  const { authenticatorData, clientData, signature } = parts;
  return ['passkey', authenticatorData, clientData, signature].join('.');
}
