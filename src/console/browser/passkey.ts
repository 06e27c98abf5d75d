import { type PasskeyText, writeAssertion, writePasskeyText } from '../../crypto/passkey-text.ts';
import type { Digest } from '../../protocol/record.ts';
import { base64url, bytesOf } from './key.ts';

/** The algorithms that may sign licenses, by COSE number. */
const ALGORITHMS: Readonly<Record<number, PasskeyText['algorithm']>> = {
  [-7]: 'es256',
  [-8]: 'eddsa',
};
/** The length of the key at the end of an SPKI. */
const POINT_BYTES: Readonly<Record<PasskeyText['algorithm'], number>> = { es256: 64, eddsa: 32 };

/** Whether this page can use passkeys. They are bound to a host name and not to an IP address. */
export function canUsePasskeys(): boolean {
  const isNumber = /^[\d.]+$|^\[/.test(location.hostname);
  return !isNumber && 'credentials' in navigator && 'PublicKeyCredential' in globalThis;
}

/** Creates a passkey and returns its public key in the form that configurations use. */
export async function registerPasskey(user: string): Promise<string> {
  const created = (await navigator.credentials.create({
    publicKey: {
      rp: { id: location.hostname, name: 'EffectMatch' },
      user: { id: crypto.getRandomValues(new Uint8Array(16)), name: user, displayName: user },
      challenge: crypto.getRandomValues(new Uint8Array(32)),
      pubKeyCredParams: Object.keys(ALGORITHMS).map((alg) => ({ type: 'public-key', alg: +alg })),
      authenticatorSelection: { userVerification: 'required', residentKey: 'preferred' },
      attestation: 'none',
    },
  })) as PublicKeyCredential;
  const response = created.response as AuthenticatorAttestationResponse;
  const algorithm = ALGORITHMS[response.getPublicKeyAlgorithm()];
  const spki = response.getPublicKey();
  if (algorithm === undefined || spki === null)
    throw new Error('the authenticator made a key with an unsupported algorithm');
  const point = base64url(spki.slice(-POINT_BYTES[algorithm]));
  const credential = base64url(created.rawId);
  return writePasskeyText({ algorithm, point, credential, origin: location.origin });
}

/** Asks the authenticator to verify the user and sign a digest. */
export async function signWithPasskey(credentials: readonly string[], digest: Digest) {
  const asserted = (await navigator.credentials.get({
    publicKey: {
      rpId: location.hostname,
      challenge: bytesOfHex(digest),
      allowCredentials: credentials.map((id) => ({ type: 'public-key', id: bytesOf(id) })),
      userVerification: 'required',
    },
  })) as PublicKeyCredential;
  const response = asserted.response as AuthenticatorAssertionResponse;
  return {
    credential: base64url(asserted.rawId),
    signature: writeAssertion({
      authenticatorData: base64url(response.authenticatorData),
      clientData: base64url(response.clientDataJSON),
      signature: base64url(response.signature),
    }),
  };
}

function bytesOfHex(digest: Digest): Uint8Array<ArrayBuffer> {
  const pairs = digest.match(/../g) ?? [];
  return Uint8Array.from(pairs, (pair) => Number.parseInt(pair, 16));
}
