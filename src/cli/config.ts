import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { readSecretFile } from '../crypto/secret-file.ts';
import { EffectMatchError } from '../errors.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';

/** An example configuration, for error messages and help. */
export const CONFIG_EXAMPLE = `import { defineConfig } from 'effectmatch';
import { sqlite } from 'effectmatch/adapters/sqlite';

export default defineConfig({
  store: 'effectmatch.db',
  keyring: 'effectmatch.keys.json',
  issuers: {
    'ap-team': { key: 'ed25519:…', may: ['books'], sources: ['rehearsed'] },
  },
  adapters: {
    books: sqlite({ file: 'books.db', relations: ['invoice', 'vendor'] }),
  },
  requests: { store: 'effectmatch.requests.db' }, // what agents ask for
});`;

/** Returns the configuration unchanged. It lets editors complete and type-check the file. */
export function defineConfig(config: RuntimeConfig): RuntimeConfig {
  return config;
}

/**
 * Reads a setting that does not belong in a configuration file, such as an address with a password:
 * from the environment, or else from a file of `NAME=value` lines that only its owner can read.
 * Throws if it is missing, because an empty address would silently connect to a different server.
 */
export function fromEnvironment(name: string, { file }: { readonly file?: string } = {}): string {
  const given = process.env[name] ?? '';
  if (given !== '') return given;
  const hasFile = file !== undefined && existsSync(file);
  const kept = hasFile ? parseEnv(readSecretFile(file))[name] : undefined;
  if (kept !== undefined && kept !== '') return kept;
  const place = file === undefined ? '' : ` and is not in ${resolve(file)}`;
  const message = `the environment variable ${name} is not set${place}`;
  throw new EffectMatchError('ERR_EM_CONFIG_INVALID', message);
}
