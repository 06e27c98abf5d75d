import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { EffectMatchError } from '../errors.ts';
import { choice, closed, list, readOnce, text } from '../protocol/schema.ts';
import { decodeBase64url } from './base64url.ts';
import { createSecretFile, readSecretFile, reviseSecretFile } from './secret-file.ts';

/**
 * One root secret. Everything the runtime seals uses keys derived from it, never the secret itself.
 */
export interface Generation {
  /** Stands beside every seal, so that a verifier finds the secret again after a rotation. */
  readonly id: string;
  /** Exactly 32 bytes. */
  readonly secret: Uint8Array;
}

/** Ids are short and safe in a file, an environment variable and a database column. */
const GENERATION_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const SECRET_BYTES = 32;
const MAX_GENERATIONS = 64;
const SALT = 'effectmatch/keyring/v1';
const fileSchema = closed({
  version: choice(1),
  keys: list(closed({ id: text(), secret: text() })),
});

/**
 * The root secrets of a deployment, newest first: the first seals, all verify. The secrets live in
 * private fields, so neither `util.inspect` nor `JSON.stringify` nor an error that carries a
 * keyring can print them.
 */
export class Keyring {
  readonly #secrets = new Map<string, Buffer>();
  readonly #derived = new Map<string, Map<string, KeyObject>>();
  /** The generation that seals. */
  readonly current: string;

  readonly #reread: (() => readonly Generation[]) | undefined;

  /**
   * `reread` is asked for the generations again when an unknown id turns up; those found then only
   * verify.
   */
  constructor(generations: readonly Generation[], reread?: () => readonly Generation[]) {
    const first = generations[0];
    if (first === undefined) throw invalidKeyring('it holds no key');
    if (generations.length > MAX_GENERATIONS)
      throw invalidKeyring(`it holds more than ${MAX_GENERATIONS} keys`);
    for (const { id, secret } of generations) {
      if (!GENERATION_ID.test(id))
        throw invalidKeyring('a key id has characters or a length that are not allowed');
      if (secret.length !== SECRET_BYTES)
        throw invalidKeyring(`key ${id} is not ${SECRET_BYTES} bytes long`);
      if (this.#secrets.has(id)) throw invalidKeyring(`key id ${id} occurs twice`);
      this.#secrets.set(id, Buffer.from(secret));
    }
    this.current = first.id;
    this.#reread = reread;
  }

  /** Ids of all generations, newest first. */
  get ids(): readonly string[] {
    return [...this.#secrets.keys()];
  }

  /**
   * The key of one purpose (a record kind, or `value`), derived by HKDF-SHA-256 and kept; undefined
   * for an id that is not in the ring. Separate keys mean that a seal of one kind says nothing
   * about any other kind.
   */
  derive(id: string, purpose: string): KeyObject | undefined {
    const secret = this.#secrets.get(id) ?? this.#find(id);
    if (secret === undefined) return undefined;
    const known = this.#derived.get(id)?.get(purpose);
    if (known !== undefined) return known;
    const key = createSecretKey(Buffer.from(hkdfSync('sha256', secret, SALT, purpose, 32)));
    this.#derived.set(id, (this.#derived.get(id) ?? new Map()).set(purpose, key));
    return key;
  }

  /** A source that can no longer be read leaves the id unknown, which refuses the record. */
  #find(id: string): Buffer | undefined {
    if (this.#reread === undefined || !GENERATION_ID.test(id)) return undefined;
    let found: Generation | undefined;
    try {
      found = this.#reread().find((generation) => generation.id === id);
    } catch (error) {
      if (!(error instanceof EffectMatchError)) throw error;
    }
    if (found === undefined) return undefined;
    const secret = Buffer.from(found.secret);
    this.#secrets.set(id, secret);
    return secret;
  }
}

/**
 * Where the keys come from: the path of a keyring file, the name of an environment variable, or a
 * ring at hand.
 */
export type KeyringSource = string | { readonly env: string } | Keyring;

/** The keyring of a deployment. A file that does not exist yet is created in a folder that does. */
export function openKeyring(source: KeyringSource): Keyring {
  if (source instanceof Keyring) return source;
  if (typeof source === 'string') return openOrCreate(source);
  const value = process.env[source.env];
  if (value === undefined || value === '')
    throw invalidKeyring(`the environment variable ${source.env} is not set`);
  return keyringFromEnv(value);
}

/**
 * Writes a new keyring with one fresh key, mode 0600, flushed. Never overwrites: a lost key cannot
 * be made again.
 */
export function createKeyring(file: string): Keyring {
  const generations = [freshGeneration()];
  if (!createSecretFile(file, formatFile(generations))) {
    throw invalidKeyring(`${file} exists already and is never overwritten`);
  }
  return keyringOfFile(file, generations);
}

/**
 * Reads a keyring file. A ring that comes from a file looks there again when it meets an id that it
 * does not know, so a running process can read what a process started after a rotation has sealed.
 */
export function loadKeyring(file: string): Keyring {
  return keyringOfFile(file, parseFile(readSecretFile(file)));
}

/**
 * Puts a fresh key first and keeps the old ones for reading. Processes seal with it once they are
 * restarted.
 */
export function rotateKeyring(file: string): Keyring {
  reviseSecretFile(file, (text) => {
    const generations = [freshGeneration(), ...parseFile(text)];
    new Keyring(generations);
    return formatFile(generations);
  });
  return loadKeyring(file);
}

/** Reads `id:base64url,id2:base64url`, newest first, as an environment variable carries it. */
export function keyringFromEnv(value: string): Keyring {
  return new Keyring(
    value.split(',').map((entry) => {
      const [id, secret, ...rest] = entry.trim().split(':');
      if (id === undefined || rest.length > 0)
        throw invalidKeyring('an entry is not of the form id:secret');
      return { id, secret: decodeSecret(secret) };
    }),
  );
}

function openOrCreate(file: string): Keyring {
  try {
    return loadKeyring(file);
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_NOT_FOUND') throw error;
  }
  // Another process may create it at the same moment: the keys of the first one are the ones to
  // use.
  createSecretFile(file, formatFile([freshGeneration()]));
  return loadKeyring(file);
}

function keyringOfFile(file: string, generations: readonly Generation[]): Keyring {
  return new Keyring(generations, () => parseFile(readSecretFile(file)));
}

/**
 * Parser messages quote their input, and the input is secret: they are dropped, not kept as the
 * cause.
 */
function parseFile(text: string): readonly Generation[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw invalidKeyring('it is not JSON');
  }
  const found = readOnce(fileSchema, content, MAX_GENERATIONS * 4);
  if (!('copy' in found))
    throw invalidKeyring('it is not of the form {"version":1,"keys":[{"id","secret"}]}');
  return found.copy.keys.map(({ id, secret }) => ({ id, secret: decodeSecret(secret) }));
}

function formatFile(generations: readonly Generation[]): string {
  const keys = generations.map(({ id, secret }) => ({
    id,
    secret: Buffer.from(secret).toString('base64url'),
  }));
  return `${JSON.stringify({ version: 1, keys }, null, 2)}\n`;
}

function freshGeneration(): Generation {
  return { id: `k${randomBytes(6).toString('hex')}`, secret: randomBytes(SECRET_BYTES) };
}

function decodeSecret(text: string | undefined): Buffer {
  const secret = decodeBase64url(text, SECRET_BYTES);
  if (secret === undefined)
    throw invalidKeyring(`a secret is not ${SECRET_BYTES} bytes in base64url without padding`);
  return secret;
}

/**
 * A keyring that cannot be used, and what to do about it. The message never contains any part of
 * the content.
 */
function invalidKeyring(why: string): EffectMatchError<'ERR_EM_KEYRING_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_KEYRING_INVALID',
    `the keyring is not usable: ${why}; restore it from a backup, or create a new one if nothing was sealed with it`,
  );
}
