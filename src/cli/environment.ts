import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { readSecretFile } from '../crypto/secret-file.ts';
import { EffectMatchError } from '../errors.ts';

/**
 * A setting that does not belong into a configuration file, such as an address with a password:
 * from the environment, or else from a file of `NAME=value` lines that only its owner can read. A
 * missing one is named instead of being taken for nothing, because an empty address would quietly
 * lead to another server.
 */
export function fromEnvironment(name: string, { file }: { readonly file?: string } = {}): string {
  const given = process.env[name] ?? '';
  if (given !== '') return given;
  const kept =
    file === undefined || !existsSync(file) ? undefined : parseEnv(readSecretFile(file))[name];
  if (kept !== undefined && kept !== '') return kept;
  const place = file === undefined ? '' : ` and is not in ${resolve(file)}`;
  throw new EffectMatchError(
    'ERR_EM_CONFIG_INVALID',
    `the environment variable ${name} is not set${place}`,
  );
}
