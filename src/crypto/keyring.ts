import { hkdfSync } from 'node:crypto';
import { EffectMatchError } from '../errors.ts';

/** One root secret. Everything the runtime seals uses keys derived from it, never the secret itself. */
export interface Generation {
  /** Stands beside every seal, so that a verifier finds the secret again after a rotation. */
  readonly id: string;
  /** Exactly 32 bytes. */
  readonly secret: Uint8Array;
}

/** Ids are short and safe in a file, an environment variable and a database column. */
export const GENERATION_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
export const SECRET_BYTES = 32;
const MAX_GENERATIONS = 64;
const SALT = 'effectmatch/keyring/v1';

/**
 * The root secrets of a deployment, newest first: the first seals, all verify. The secrets live in private fields,
 * so neither `util.inspect` nor `JSON.stringify` nor an error that carries a keyring can print them.
 */
export class Keyring {
  readonly #secrets = new Map<string, Buffer>();
  readonly #derived = new Map<string, Buffer>();
  /** The generation that seals. */
  readonly current: string;

  constructor(generations: readonly Generation[]) {
    const first = generations[0];
    if (first === undefined) throw invalidKeyring('it holds no key');
    if (generations.length > MAX_GENERATIONS) throw invalidKeyring(`it holds more than ${MAX_GENERATIONS} keys`);
    for (const { id, secret } of generations) {
      if (!GENERATION_ID.test(id)) throw invalidKeyring('a key id has characters or a length that are not allowed');
      if (secret.length !== SECRET_BYTES) throw invalidKeyring(`key ${id} is not ${SECRET_BYTES} bytes long`);
      if (this.#secrets.has(id)) throw invalidKeyring(`key id ${id} occurs twice`);
      this.#secrets.set(id, Buffer.from(secret));
    }
    this.current = first.id;
  }

  /** Ids of all generations, newest first. */
  get ids(): readonly string[] {
    return [...this.#secrets.keys()];
  }

  /**
   * The key of one purpose (a record kind, or `value`), derived by HKDF-SHA-256 and kept; undefined for an id that
   * is not in the ring. Separate keys mean that a seal of one kind says nothing about any other kind.
   */
  derive(id: string, purpose: string): Buffer | undefined {
    const secret = this.#secrets.get(id);
    if (secret === undefined) return undefined;
    const slot = `${id}\n${purpose}`;
    let key = this.#derived.get(slot);
    if (key === undefined) {
      key = Buffer.from(hkdfSync('sha256', secret, SALT, purpose, 32));
      this.#derived.set(slot, key);
    }
    return key;
  }
}

/** A keyring that cannot be used. The message never contains any part of the content. */
export function invalidKeyring(why: string): EffectMatchError<'ERR_EM_KEYRING_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_KEYRING_INVALID',
    `the keyring is not usable: ${why}; restore it from a backup, or create a new one if nothing was sealed with it`,
  );
}
