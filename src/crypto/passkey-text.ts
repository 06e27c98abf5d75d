/** How the public half of a passkey is written, and where it may be used. */
export interface PasskeyText {
  readonly algorithm: 'es256' | 'eddsa';
  /** The public key: x and y of P-256, or a point of Ed25519, in base64url. */
  readonly point: string;
  /** What the authenticator knows the key by, in base64url. */
  readonly credential: string;
  /** The only pages that it signs for. */
  readonly origin: string;
  /** The relying party: the host of these pages. */
  readonly host: string;
}

const FORM = /^passkey:(es256|eddsa):([\w-]+):([\w-]{1,1364})@(https?:\/\/[^/?#@]+)$/;

/** Whether a public key is meant to be one of a passkey. */
export function isPasskeyText(text: string): boolean {
  return text.startsWith('passkey:');
}

/**
 * Reads `passkey:ALGORITHM:KEY:CREDENTIAL@ORIGIN`; undefined if it has another form. Authenticators
 * sign for https, and for pages of this machine.
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

/** The one-line form that configurations carry. */
export function writePasskeyText(parts: Omit<PasskeyText, 'host'>): string {
  const { algorithm, point, credential, origin } = parts;
  return `passkey:${algorithm}:${point}:${credential}@${origin}`;
}

/** A passkey's signature as a license carries it: what the authenticator said, and what it signed. */
export interface AssertionText {
  readonly authenticatorData: string;
  readonly clientData: string;
  readonly signature: string;
}

/** The three parts in one line, each in base64url. */
export function writeAssertion(parts: AssertionText): string {
  const { authenticatorData, clientData, signature } = parts;
  return ['passkey', authenticatorData, clientData, signature].join('.');
}
