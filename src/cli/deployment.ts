import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Ledgers } from '../contract/ledgers.ts';
import type { Sealer } from '../contract/seal.ts';
import { digestText } from '../crypto/digest.ts';
import { type Keyring, loadKeyring, openKeyring } from '../crypto/keyring.ts';
import { createSealer } from '../crypto/seal.ts';
import { EffectMatchError, messageOf } from '../errors.ts';
import { ledgersOf } from '../ledger/configured.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { checkConfiguration } from '../runtime/configuration.ts';
import { createRuntime, type Runtime, type RuntimeConfig } from '../runtime/runtime.ts';
import type { Arguments } from './command.ts';
import { CONFIG_EXAMPLE } from './config.ts';
import { GuidedError, sayUnchanged } from './fault.ts';

/** The file names that verbs look for, in this order. */
const CONFIG_NAMES = ['ts', 'mts', 'js', 'mjs'].map((ending) => `effectmatch.config.${ending}`);

/**
 * The name of a folder's configuration file: the existing one, or else a name that Node loads as an
 * ES module. In a package without "type": "module", Node loads `.ts` as CommonJS.
 */
export function configNameIn(folder: string): string {
  const existing = CONFIG_NAMES.find((name) => existsSync(join(folder, name)));
  return existing ?? `effectmatch.config.${isForModules(folder) ? 'ts' : 'mts'}`;
}

/** Node's rule: the nearest package.json decides. If there is none, the file's syntax does. */
function isForModules(folder: string): boolean {
  const file = join(folder, 'package.json');
  if (!existsSync(file)) return dirname(folder) === folder || isForModules(dirname(folder));
  try {
    const content = JSON.parse(readFileSync(file, 'utf8')) as { readonly type?: unknown } | null;
    return content?.type === 'module';
  } catch {
    return false; // Node itself reports an invalid file
  }
}

/**
 * Loads the configuration that `--config` names, or the one in the current folder. Changes the
 * working directory to the folder of that file, so that relative paths in it (store, keyring,
 * adapters) are relative to that folder.
 */
export async function loadConfig(args: Arguments): Promise<RuntimeConfig> {
  const file = findConfig(args.value('config'));
  process.chdir(dirname(file));
  return await readConfig(file);
}

/** Loads the configuration from a file. */
export async function readConfig(file: string): Promise<RuntimeConfig> {
  const { default: config } = await importConfig(file);
  if (config === undefined) {
    const what = 'it has no default export; write `export default defineConfig({ … })`';
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', `${file}: ${what}`);
  }
  checkConfiguration(config, file);
  return config;
}

async function importConfig(file: string): Promise<{ readonly default?: unknown }> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (cause) {
    const words = messageOf(cause);
    const refuse = (why: string, next: string) => {
      const message = `${file} cannot be loaded: ${why}`;
      return new GuidedError('ERR_EM_CONFIG_INVALID', message, `${next}; nothing was done`, cause);
    };
    const [, missing] = /^Cannot find package '([^']+)'/.exec(words) ?? [];
    if (missing !== undefined) {
      const wanted = missing === 'pg' ? 'pg libpg-query' : missing;
      const why = `the package "${missing}" is not installed in its folder`;
      throw refuse(why, `run \`npm install ${wanted}\` in ${dirname(file)}`);
    }
    if (/import statement outside a module|Unexpected token 'export'/.test(words)) {
      const rename = 'rename it to effectmatch.config.mts';
      throw refuse(words, `${rename}, or write "type": "module" into package.json`);
    }
    const message = `${file} cannot be loaded: ${words}`;
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', message, { cause });
  }
}

/** Whether `--config` names a file, or the current folder has a configuration. */
export function hasConfig(args: Arguments): boolean {
  return args.has('config') || lookForConfig(undefined) !== undefined;
}

function lookForConfig(named: string | undefined): string | undefined {
  const names = named === undefined ? CONFIG_NAMES : [named];
  const found = names.find((file) => existsSync(file) && statSync(file).isFile());
  return found && resolve(found);
}

function findConfig(named: string | undefined): string {
  const found = lookForConfig(named);
  if (found !== undefined) return found;
  const folder = process.cwd();
  const message =
    named === undefined
      ? `no configuration in ${folder}: none of ${CONFIG_NAMES.join(', ')} is there`
      : `no configuration at ${resolve(named)}`;
  const name = named === undefined ? configNameIn(folder) : basename(named);
  const ways = 'write one with `effectmatch init DATABASE`, name the file with --config FILE';
  const next = `${ways}, or create ${name}:\n\n${CONFIG_EXAMPLE}`;
  throw new GuidedError('ERR_EM_CONFIG_INVALID', message, next);
}

/** A deployment's records, without its backends. */
export interface DeploymentRecords extends AsyncDisposable {
  readonly config: RuntimeConfig;
  readonly ledgers: Ledgers;
  readonly sealer: Sealer;
  readonly keyring: Keyring;
}

/** Opens the configured keyring and store, but no adapter. */
export async function openRecords(args: Arguments): Promise<DeploymentRecords> {
  const config = await loadConfig(args);
  assertPresent(config);
  return await openOrCreateRecords(config);
}

/** Like {@link openRecords}, for verbs that may run first. Creates the store, not the keyring. */
export async function openOrCreateRecords(config: RuntimeConfig): Promise<DeploymentRecords> {
  const { keyring, context } = openKeys(config);
  const ledgers = await ledgersOf(config.store).open(context);
  const { sealer } = context;
  return { config, ledgers, sealer, keyring, [Symbol.asyncDispose]: () => ledgers.close() };
}

/** Opens the keyring and derives from it what a ledger needs. */
export function openKeys(config: RuntimeConfig) {
  assertKeyring(config);
  const keyring =
    typeof config.keyring === 'string' ? loadKeyring(config.keyring) : openKeyring(config.keyring);
  return { keyring, context: { sealer: createSealer(keyring), digest: digestText } };
}

/** Opens a runtime for one verb. If that fails, the error says that nothing was changed. */
export function openRuntime(config: RuntimeConfig): Promise<Runtime> {
  assertKeyring(config);
  return sayUnchanged(() => createRuntime(config));
}

/** Throws if the keyring or store is missing: a path is wrong, or nothing has run yet. */
export function assertPresent(config: RuntimeConfig): void {
  assertKeyring(config);
  const { file } = ledgersOf(config.store);
  if (file !== undefined && !existsSync(file))
    throw missing('store', file, '`effectmatch plan` and `run` create it');
}

/** No verb creates a keyring silently: a new keyring could not read the records of the old one. */
export function assertKeyring({ keyring }: RuntimeConfig): void {
  if (typeof keyring === 'string' && !existsSync(keyring))
    throw missing('keyring', keyring, '`effectmatch init` makes one');
}

function missing(what: string, path: string, maker: string): GuidedError<'ERR_EM_NOT_FOUND'> {
  return new GuidedError(
    'ERR_EM_NOT_FOUND',
    `there is no ${what} at ${resolve(path)}, and this verb does not create one; nothing was done`,
    `check \`${what}\` in the configuration; ${maker}, and so does an application the first time it calls createRuntime`,
  );
}

/** The adapter named with --adapter, or the only one. */
export function chooseAdapterName(adapters: RuntimeConfig['adapters'], args: Arguments): string {
  return chooseName(args, 'adapter', Object.keys(adapters));
}

/** The name that the flag gives, which must be one of these, or the only one. */
export function chooseName(args: Arguments, flag: string, names: readonly string[]): string {
  const wanted = args.value(flag);
  const [only, second] = wanted === undefined ? names : names.filter((name) => name === wanted);
  if (only !== undefined && second === undefined) return only;
  const known = names.join(', ');
  throw args.wrong(
    wanted === undefined
      ? `name the ${flag} with --${flag}: ${known}`
      : `unknown ${flag} "${wanted}"; the configuration has ${known}`,
  );
}

/** Parses the start of an occurrence id, with or without `occ_`. */
export function readPrefix(text: string): string {
  const hex = text.startsWith('occ_') ? text.slice(4) : text;
  if (/^[0-9a-f]{1,40}$/.test(hex)) return `occ_${hex}`;
  throw new GuidedError(
    'ERR_EM_USAGE',
    `"${text}" is not an occurrence: it is occ_ followed by 0-9 and a-f`,
    'if it is a task, `effectmatch journal --task NAME` lists its occurrences; nothing was done',
  );
}

/** The only occurrence with this prefix. Throws if there is none, or lists them if several. */
export async function findOccurrence(ledgers: Ledgers, prefix: string): Promise<OccurrenceId> {
  const candidates = await ledgers.search(prefix);
  const [only, second] = candidates;
  if (only === undefined) {
    const next = 'look for it with `effectmatch journal`, or it is in another store';
    throw new GuidedError('ERR_EM_NOT_FOUND', `no occurrence begins with ${prefix}`, next);
  }
  if (second === undefined) return only;
  const list = candidates.map((candidate) => `\n  ${candidate}`).join('');
  const many = candidates.length >= 10 ? 'at least 10' : candidates.length;
  const message = `${many} occurrences begin with ${prefix}:${list}`;
  throw new GuidedError('ERR_EM_NOT_FOUND', message, 'give more of the id');
}
