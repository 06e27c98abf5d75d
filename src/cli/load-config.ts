import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { EffectMatchError } from '../errors.ts';
import { checkConfiguration } from '../runtime/configuration.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import type { Arguments } from './arguments.ts';
import { CONFIG_NAMES, configNameIn } from './config-name.ts';
import { GuidedError } from './guided-error.ts';
import { CONFIG_EXAMPLE } from './help.ts';

const AS_MODULE =
  'rename it to effectmatch.config.mts, or write "type": "module" into package.json';

/**
 * The deployment that `--config` names, or the one of the current folder. From here on the process
 * works in the folder of that file, so that every relative path in it (of the store, of the
 * keyring, inside an adapter) counts from there, wherever the command was called.
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
      throw new GuidedError('ERR_EM_CONFIG_INVALID', message, `${AS_MODULE}; nothing was done`, {
        cause,
      });
    }
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', message, { cause });
  }
  const config = module.default;
  if (config === undefined) {
    const what = 'it has no default export; write `export default defineConfig({ … })`';
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', `${file}: ${what}`);
  }
  checkConfiguration(config, file);
  return config;
}

function notInstalled(
  file: string,
  name: string,
  cause: unknown,
): GuidedError<'ERR_EM_CONFIG_INVALID'> {
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
  const found = names
    .map((name) => resolve(name))
    .find((file) => existsSync(file) && statSync(file).isFile());
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
