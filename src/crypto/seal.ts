import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Sealed, Sealer } from '../contract/seal.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import { RecentMap } from '../protocol/recent-map.ts';
import type { Digest, RecordKind } from '../protocol/record.ts';
import type { Value } from '../protocol/value.ts';
import type { Keyring } from './keyring.ts';

const MAC = /^[0-9a-f]{64}$/;

/** Limits of the cache of sealed records: enough for one execution, and little memory. */
const RECENT = 256;
const RECENT_CHARACTERS_MAX = 16 * 1024;

/**
 * Seals with HMAC-SHA-256 over `domain + "\n" + text`, under a key for one record kind. Opening
 * checks the seal before parsing, so the parser only sees text that this deployment wrote.
 */
export function createSealer(keyring: Keyring): Sealer {
  // Recently sealed records by MAC. They are frozen, so record, text and seal still match. A MAC
  // depends only on kind, key and text: if these are equal, the seal is valid and the record is the
  // cached one.
  const recent = new RecentMap<
    string,
    { readonly kind: unknown; readonly sealed: Sealed<unknown> }
  >(RECENT);
  const open: Sealer['open'] = <T>(kind: RecordKind<T>, text: string, seal: Sealed<T>['seal']) => {
    const known = recent.get(seal.mac);
    const isKnown = known?.kind === kind && known.sealed.text === text;
    if (isKnown && known.sealed.seal.key === seal.key) return known.sealed as Sealed<T>;
    const key = knownKey(keyring, seal.key, kind.kind);
    if (!holds(key, kind.domain, text, seal.mac)) {
      throw new EffectMatchError(
        'ERR_EM_SEAL_INVALID',
        `${kind.kind}: the seal does not match the text; the record was altered or belongs to another deployment`,
      );
    }
    return { record: kind.parseText(text), text, seal: { key: seal.key, mac: seal.mac } };
  };
  return {
    seal(kind, record) {
      const { record: copy, text } = kind.read(record);
      const mac = computeMac(knownKey(keyring, keyring.current, kind.kind), kind.domain, text);
      const seal = Object.freeze({ key: keyring.current, mac });
      const sealed = Object.freeze({ record: copy, text, seal });
      if (text.length <= RECENT_CHARACTERS_MAX) recent.set(mac, { kind, sealed });
      return sealed;
    },
    open,
    check: (kind, sealed) => open(kind, sealed.text, sealed.seal),
    mac(key, domain, ...texts) {
      const secret = knownKey(keyring, key, 'journal');
      const length = texts.reduce((sum, text) => sum + text.length, 0);
      if (length <= PART)
        return computeMac(secret, domain, texts.join('').toWellFormed()) as Digest;
      const mac = createHmac('sha256', secret).update(`${domain}\n`);
      for (const text of texts) for (const part of partsOf(text.toWellFormed())) mac.update(part);
      return mac.digest('hex') as Digest;
    },
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
 * A digest for values that must not be stored. Equal values of one column have equal digests, and a
 * value cannot be guessed without the key. Target and column are included, so the digests do not
 * reveal equal values in different columns. Digests of different key generations cannot be
 * compared.
 */
export function keyedDigest(
  keyring: Keyring,
): (target: string, column: string, value: Value) => string {
  const key = knownKey(keyring, keyring.current, 'value');
  return (target, column, value) =>
    computeMac(key, 'effectmatch/value/v1', canonical([target, column, value]));
}

/**
 * The same for a text in pieces, such as the observed outcome if a deployment does not store
 * values.
 */
export function keyedTextDigest(
  keyring: Keyring,
): (domain: string, pieces: Iterable<string>) => Digest {
  const key = knownKey(keyring, keyring.current, 'value');
  return (domain, pieces) => {
    const mac = createHmac('sha256', key).update(`${domain}\n`);
    for (const piece of pieces) mac.update(piece);
    return mac.digest('hex') as Digest;
  };
}

function computeMac(key: KeyObject, domain: string, text: string): string {
  return createHmac('sha256', key).update(`${domain}\n${text}`).digest('hex');
}

const PART = 1 << 20;

/** Splits a long text, which is encoded as a whole otherwise, but never within a character. */
function* partsOf(text: string): Generator<string> {
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = Math.min(at + PART, text.length);
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1;
    yield text.slice(at, end);
  }
}

/** Damaged storage may return any text and MAC. Anything but a well-formed pair is not valid. */
function holds(key: KeyObject, domain: string, text: unknown, mac: unknown): text is string {
  if (typeof text !== 'string' || !text.isWellFormed()) return false;
  if (typeof mac !== 'string' || !MAC.test(mac)) return false;
  return timingSafeEqual(Buffer.from(computeMac(key, domain, text)), Buffer.from(mac));
}
