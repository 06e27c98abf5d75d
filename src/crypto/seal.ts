import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Sealer } from '../contract/seal.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Digest } from '../protocol/record.ts';
import type { Value } from '../protocol/value.ts';
import type { Keyring } from './keyring.ts';

const MAC = /^[0-9a-f]{64}$/;

/**
 * Seals with HMAC-SHA-256 over `domain + "\n" + text`, under a key that belongs to one record kind. Opening checks
 * the seal before anything is parsed, so the parser only ever sees text that this deployment wrote.
 */
export function createSealer(keyring: Keyring): Sealer {
  // What was sealed here, with its kind. Record, text and seal are frozen, so they still fit each other.
  const made = new WeakMap<object, object>();
  const open: Sealer['open'] = (kind, text, seal) => {
    const key = knownKey(keyring, seal.key, kind.kind);
    if (!holds(key, kind.domain, text, seal.mac)) {
      throw new EffectMatchError(
        'ERR_EM_SEAL_INVALID',
        `${kind.kind}: the seal does not fit the text; the record was altered or belongs to another deployment`,
      );
    }
    return { record: kind.parseText(text), text, seal: { key: seal.key, mac: seal.mac } };
  };
  return {
    seal(kind, record) {
      const copy = kind.parse(record);
      const text = kind.text(copy);
      const mac = computeMac(knownKey(keyring, keyring.current, kind.kind), kind.domain, text);
      const seal = Object.freeze({ key: keyring.current, mac });
      const sealed = Object.freeze({ record: copy, text, seal });
      made.set(sealed, kind);
      return sealed;
    },
    open,
    check: (kind, sealed) => (made.get(sealed) === kind ? sealed : open(kind, sealed.text, sealed.seal)),
    mac: (key, domain, text) => computeMac(knownKey(keyring, key, 'journal'), domain, text.toWellFormed()) as Digest,
  };
}

function knownKey(keyring: Keyring, id: string, purpose: string): KeyObject {
  const key = keyring.derive(id, purpose);
  if (key !== undefined) return key;
  throw new EffectMatchError(
    'ERR_EM_KEY_UNKNOWN',
    `${purpose}: sealed with a key that is not in the keyring; add that generation again to read old records`,
  );
}

/**
 * Stands for values that must not be stored: equal values of one column have equal digests, and without the key
 * nobody can find a value by trying candidates. Target and column are part of it, so equal values in different
 * columns do not show that they are equal. Digests of different key generations cannot be compared.
 */
export function keyedDigest(keyring: Keyring): (target: string, column: string, value: Value) => string {
  const key = knownKey(keyring, keyring.current, 'value');
  return (target, column, value) => computeMac(key, 'effectmatch/value/v1', canonical([target, column, value]));
}

/** The same for a whole text, such as the observed outcome of a deployment that does not store values. */
export function keyedTextDigest(keyring: Keyring): (domain: string, text: string) => Digest {
  const key = knownKey(keyring, keyring.current, 'value');
  return (domain, text) => computeMac(key, domain, text) as Digest;
}

function computeMac(key: KeyObject, domain: string, text: string): string {
  return createHmac('sha256', key).update(`${domain}\n${text}`).digest('hex');
}

/** Stored text and MAC may be anything after a damage; whatever is not a well-formed pair simply does not hold. */
function holds(key: KeyObject, domain: string, text: unknown, mac: unknown): text is string {
  if (typeof text !== 'string' || !text.isWellFormed()) return false;
  if (typeof mac !== 'string' || !MAC.test(mac)) return false;
  return timingSafeEqual(Buffer.from(computeMac(key, domain, text)), Buffer.from(mac));
}
