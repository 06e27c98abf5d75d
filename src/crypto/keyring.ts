import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { EffectMatchError } from '../errors.ts';
import { choice, closed, copyOnce, list, text } from '../protocol/schema.ts';
import { decodeBase64url } from './base64url.ts';
import { createSecretFile, readSecretFile, reviseSecretFile } from './secret-file.ts';

/** One root secret. The runtime seals with keys derived from it, never with the secret itself. */
export interface Generation {
  /** Stored with every seal, so that a verifier can find the secret after a rotation. */
  readonly id: string;
  /** Exactly 32 bytes. */
  readonly secret: Uint8Array;
}

/** Ids are short, and safe in a file, an environment variable and a database column. */
const GENERATION_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const SECRET_BYTES = 32;
const MAX_GENERATIONS = 64;
const SALT = 'effectmatch/keyring/v1';
const fileSchema = closed({
  version: choice(1),
  keys: list(closed({ id: text(), secret: text() })),
});

/**
 * The root secrets of a deployment, newest first: the first seals, all verify. The secrets are in
 * private fields, so `util.inspect`, `JSON.stringify` and errors that carry a keyring cannot print
 * them.
 */
export class Keyring {
  readonly #secrets = new Map<string, Buffer>();
  readonly #derived = new Map<string, Map<string, KeyObject>>();
  /** The generation that seals. */
  readonly current: string;

  readonly #reread: (() => readonly Generation[]) | undefined;

  /**
   * `reread` loads the generations again if an id is unknown. Generations found that way only
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
   * The key for one purpose (a record kind, or `value`), derived by HKDF-SHA-256 and cached;
   * undefined if the id is not in the ring. Because keys are separate, a seal of one kind says
   * nothing about another kind.
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

  /** If the source can no longer be read, the id stays unknown and the record is refused. */
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
 * keyring object.
 */
export type KeyringSource = string | { readonly env: string } | Keyring;

/**
 * Opens the keyring of a deployment. Creates the file if it does not exist; its folder must exist.
 */
export function openKeyring(source: KeyringSource): Keyring {
  if (source instanceof Keyring) return source;
  if (typeof source === 'string') return openOrCreate(source);
  const value = process.env[source.env];
  if (value === undefined || value === '')
    throw invalidKeyring(`the environment variable ${source.env} is not set`);
  return keyringFromEnv(value);
}

/**
 * Writes a new keyring with one new key, mode 0600, and flushes it. Never overwrites a file: a lost
 * key cannot be recreated.
 */
export function createKeyring(file: string): Keyring {
  const generations = [freshGeneration()];
  if (!createSecretFile(file, formatFile(generations))) {
    throw invalidKeyring(`${file} exists already and is never overwritten`);
  }
  return keyringOfFile(file, generations);
}

/**
 * Reads a keyring file. The ring reads the file again when it meets an unknown id, so a running
 * process can read records sealed by a process that started after a rotation.
 */
export function loadKeyring(file: string): Keyring {
  return keyringOfFile(file, parseFile(readSecretFile(file)));
}

/**
 * Puts a new key first and keeps the old ones for reading. Processes seal with the new key after a
 * restart.
 */
export function rotateKeyring(file: string): Keyring {
  reviseSecretFile(file, (text) => {
    const generations = [freshGeneration(), ...parseFile(text)];
    new Keyring(generations);
    return formatFile(generations);
  });
  return loadKeyring(file);
}

/** Parses `id:base64url,id2:base64url`, newest first, from an environment variable. */
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
  // Another process may create the file at the same moment. Both then use the keys of the first.
  createSecretFile(file, formatFile([freshGeneration()]));
  return loadKeyring(file);
}

function keyringOfFile(file: string, generations: readonly Generation[]): Keyring {
  return new Keyring(generations, () => parseFile(readSecretFile(file)));
}

/** Parser messages quote their input, which is secret, so they are not kept as the cause. */
function parseFile(text: string): readonly Generation[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw invalidKeyring('it is not JSON');
  }
  const found = copyOnce(fileSchema, content, MAX_GENERATIONS * 4);
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

/** The error for an unusable keyring. Its message never contains any of the content. */
function invalidKeyring(why: string): EffectMatchError<'ERR_EM_KEYRING_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_KEYRING_INVALID',
    `the keyring is not usable: ${why}; restore it from a backup, or create a new one if nothing was sealed with it`,
  );
}
