import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { EffectMatchError } from '../errors.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import type { Arguments } from './arguments.ts';
import { CONFIG_NAMES, configNameIn } from './config-name.ts';
import { GuidedError } from './guided-error.ts';
import { CONFIG_EXAMPLE } from './help.ts';

const AS_MODULE = 'rename it to effectmatch.config.mts, or write "type": "module" into package.json';

/**
 * The deployment that `--config` names, or the one of the current folder. From here on the process works in the
 * folder of that file, so that every relative path in it (of the store, of the keyring, inside an adapter) counts
 * from there, wherever the command was called.
 */
export async function loadConfig(args: Arguments): Promise<RuntimeConfig> {
  const file = findConfig(args.value('config'));
  process.chdir(dirname(file));
  let module: { readonly default?: unknown };
  try {
    module = await import(pathToFileURL(file).href);
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    const [, missing] = /^Cannot find package '([^']+)'/.exec(words) ?? [];
    if (missing !== undefined) throw notInstalled(file, missing, cause);
    const message = `${file} cannot be loaded: ${words}`;
    if (/import statement outside a module|Unexpected token 'export'/.test(words)) {
      throw new GuidedError('ERR_EM_CONFIG_INVALID', message, `${AS_MODULE}; nothing was done`, { cause });
    }
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', message, { cause });
  }
  return checkConfig(file, module.default);
}

function notInstalled(file: string, name: string, cause: unknown): GuidedError<'ERR_EM_CONFIG_INVALID'> {
  const wanted = name === 'effectmatch' ? name : 'pg libpg-query';
  return new GuidedError(
    'ERR_EM_CONFIG_INVALID',
    `${file} cannot be loaded: the package "${name}" is not installed beside it`,
    `run \`npm install ${wanted}\` in ${dirname(file)}; nothing was done`,
    { cause },
  );
}

function findConfig(named: string | undefined): string {
  const names = named === undefined ? CONFIG_NAMES : [named];
  const found = names.map((name) => resolve(name)).find((file) => existsSync(file) && statSync(file).isFile());
  if (found !== undefined) return found;
  const message =
    named === undefined
      ? `no configuration in ${process.cwd()}: none of ${CONFIG_NAMES.join(', ')} is there`
      : `no configuration at ${resolve(named)}`;
  const next =
    'write one with `effectmatch init DATABASE`, name the file with --config FILE, or create ' +
    `${named === undefined ? configNameIn(process.cwd()) : basename(named)}:\n\n${CONFIG_EXAMPLE}`;
  throw new GuidedError('ERR_EM_CONFIG_INVALID', message, next);
}

/** Names the first part that is missing or of the wrong kind. What the parts say is checked where they are used. */
function checkConfig(file: string, value: unknown): RuntimeConfig {
  const wrong = (what: string) => new EffectMatchError('ERR_EM_CONFIG_INVALID', `${file}: ${what}`);
  if (!isObject(value)) throw wrong('it has no default export; write `export default defineConfig({ … })`');
  const { store, keyring, issuers, adapters } = value;
  if (!isText(store) && !(isObject(store) && typeof store.open === 'function')) {
    throw wrong('`store` is missing; give the path of the ledger file, for example "effectmatch.db"');
  }
  if (!isText(keyring) && !isObject(keyring)) {
    throw wrong('`keyring` is missing; give the path of the keyring file, or { env: "EFFECTMATCH_KEYS" }');
  }
  if (!isObject(issuers)) throw wrong('`issuers` is missing; name who may approve, with a public key for each');
  if (!isObject(adapters)) throw wrong('`adapters` is missing; name at least one backend');
  for (const [name, adapter] of Object.entries(adapters)) {
    if (!isObject(adapter) || typeof adapter.open !== 'function') {
      throw wrong(`adapter "${name}" is not an adapter; use a factory such as sqlite({ file, relations })`);
    }
  }
  return value as unknown as RuntimeConfig;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
