import { type KeyObject, sign, verify } from 'node:crypto';
import { EffectMatchError, errorsOf } from '../errors.ts';
import { STATEMENT_PAYLOAD_TYPE, statementRecord } from '../protocol/receipt.ts';
import { readFields } from './handover.ts';
import type { ReceiptKey } from './receipt-key.ts';

const MAX_SIGNATURES = 16;
const MAX_KEYID = 256;
const MAX_PAYLOAD_BYTES = statementRecord.maxBytes;

/** The maximum size of an envelope as JSON text: the payload in base64, and sixteen signatures. */
export const MAX_ENVELOPE_BYTES = Math.ceil((MAX_PAYLOAD_BYTES * 4) / 3) + 16 * 1024;

/** A DSSE envelope: a payload, its type, and the signatures over both. */
export interface Envelope {
  readonly payloadType: string;
  /** Base64. */
  readonly payload: string;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/**
 * The bytes that are signed (DSSE v1, pre-authentication encoding). Type and payload are each
 * preceded by their length in bytes, so no two pairs of type and payload have the same encoding.
 */
export function encodePreAuthentication(payloadType: string, payload: Buffer): Buffer {
  const type = Buffer.from(payloadType);
  return Buffer.concat([Buffer.from('DSSEv1 '), sized(type), Buffer.from(' '), sized(payload)]);
}

/** Signs a payload with Ed25519. The same payload and key always give the same envelope. */
export function signEnvelope(
  { keyid, key }: { readonly keyid: string; readonly key: KeyObject },
  text: string,
): Envelope {
  const payload = Buffer.from(text);
  const sig = sign(null, encodePreAuthentication(STATEMENT_PAYLOAD_TYPE, payload), key);
  return {
    payloadType: STATEMENT_PAYLOAD_TYPE,
    payload: payload.toString('base64'),
    signatures: [{ keyid, sig: sig.toString('base64') }],
  };
}

/**
 * Returns the payload of an envelope that at least one of these keys signed. Ignores signatures by
 * other keys, but rejects the envelope if a signature that names one of these keys is invalid. The
 * payload is not parsed before that. Throws `ERR_EM_SIGNATURE_INVALID`, or `ERR_EM_RECORD_INVALID`
 * if the input is not an envelope of ours.
 */
export function openEnvelope(
  keys: readonly ReceiptKey[],
  input: unknown,
): { readonly text: string; readonly keyid: string } {
  const { payload, signatures } = parseEnvelope(input);
  const bytes = encodePreAuthentication(STATEMENT_PAYLOAD_TYPE, payload);
  const [keyid] = signatures.flatMap(({ keyid, sig }) => {
    const known = keys.find((key) => key.keyid === keyid);
    if (known === undefined) return [];
    if (!verify(null, bytes, known.key, sig)) {
      throw unsigned('a signature does not match: it or the signed content was altered');
    }
    return [keyid];
  });
  if (keyid === undefined) throw unsigned('none of its signatures is by a key that you trust');
  return { text: decodeUtf8(payload), keyid };
}

interface Parsed {
  readonly payload: Buffer;
  readonly signatures: readonly { readonly keyid: string; readonly sig: Buffer }[];
}

/** Checks the form of an envelope, given as an object or as JSON text, but not who signed it. */
function parseEnvelope(input: unknown): Parsed {
  if (typeof input === 'string' && Buffer.byteLength(input) > MAX_ENVELOPE_BYTES) throw tooLarge();
  const fields = readFields('envelope', input, ['payloadType', 'payload', 'signatures']);
  if (fields.payloadType !== STATEMENT_PAYLOAD_TYPE) {
    throw invalid(`its payload type is not ${STATEMENT_PAYLOAD_TYPE}`);
  }
  if (typeof fields.payload === 'string' && fields.payload.length > MAX_ENVELOPE_BYTES)
    throw tooLarge();
  const payload = decodeBase64(fields.payload);
  if (payload === undefined || payload.length === 0) throw invalid('its payload is not base64');
  if (payload.length > MAX_PAYLOAD_BYTES) throw tooLarge();
  return { payload, signatures: parseSignatures(fields.signatures) };
}

function parseSignatures(input: unknown): Parsed['signatures'] {
  if (!Array.isArray(input) || input.length === 0 || input.length > MAX_SIGNATURES) {
    throw invalid(`it has 1 to ${MAX_SIGNATURES} signatures`);
  }
  const signatures = Array.from(input, (entry: unknown) => {
    if (typeof entry === 'string') throw invalid('a signature is an object');
    const { keyid, sig } = readFields('signature of an envelope', entry, ['keyid', 'sig']);
    const bytes = decodeBase64(sig);
    if (typeof keyid !== 'string' || keyid.length > MAX_KEYID)
      throw invalid('a key id is a short text');
    // Another tool may also have signed, with another algorithm, so check only that it is base64.
    if (bytes === undefined || bytes.length === 0) throw invalid('a signature is not base64');
    return { keyid, sig: bytes };
  });
  if (new Set(signatures.map(({ keyid }) => keyid)).size !== signatures.length) {
    throw invalid('two of its signatures name the same key');
  }
  return signatures;
}

/**
 * Decodes padded base64, in the standard or the URL-safe alphabet (DSSE allows both), without stray
 * bits.
 */
function decodeBase64(text: unknown): Buffer | undefined {
  if (typeof text !== 'string') return undefined;
  if (/[-_]/.test(text) && /[+/]/.test(text)) return undefined;
  const standard = text.replaceAll('-', '+').replaceAll('_', '/');
  const decoded = Buffer.from(standard, 'base64');
  return decoded.toString('base64') === standard ? decoded : undefined;
}

function decodeUtf8(payload: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload);
  } catch (cause) {
    throw invalid('its payload is not UTF-8', cause);
  }
}

const sized = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from(`${bytes.length} `), bytes]);

function tooLarge(): EffectMatchError<'ERR_EM_RECORD_TOO_LARGE'> {
  return new EffectMatchError(
    'ERR_EM_RECORD_TOO_LARGE',
    `envelope: more than ${MAX_ENVELOPE_BYTES} bytes`,
  );
}

const invalid = errorsOf('ERR_EM_RECORD_INVALID', 'envelope: ');

const unsigned = errorsOf('ERR_EM_SIGNATURE_INVALID', 'not verified: ');
