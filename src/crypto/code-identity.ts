import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EffectMatchError } from '../errors.ts';
import type { Digest } from '../protocol/record.ts';
import { digestText } from './digest.ts';

const MODULE = /\.(?:[cm]?[jt]s|sql)$/;
const DECLARATION = /\.d\.[cm]?ts$/;
const identities = new Map<string, string>();

/**
 * Identifies the code in a folder: the package version, a colon, and a digest of the names and
 * bytes of its modules and `.sql` files. A release has the same identity on every machine. Source
 * and build have different identities because their bytes differ. The result is cached for the life
 * of the process, because the loaded code does not change either.
 */
export function codeIdentity(folder: URL): string {
  const root = folder.href.endsWith('/') ? folder : new URL(`${folder.href}/`);
  const known = identities.get(root.href);
  if (known !== undefined) return known;
  const modules = listModules(root, '').sort((a, b) => (a < b ? -1 : 1));
  if (modules.length === 0) throw unidentified(root, 'it contains no modules');
  const lines = modules.map((name) =>
    JSON.stringify([name, hash('sha256', readFileSync(moduleUrl(root, name)), 'hex')]),
  );
  const identity = `${packageVersion(root)}:${digestText('effectmatch/code/v1', lines.join('\n'))}`;
  identities.set(root.href, identity);
  return identity;
}

/** One digest for code in several folders, in the order given. */
export function digestFolders(folders: readonly URL[]): Digest {
  return digestText('effectmatch/folders/v1', folders.map(codeIdentity).join('\n'));
}

/**
 * Relative names with forward slashes. Skips `node_modules`: dependencies are separate packages.
 */
function listModules(root: URL, prefix: string): string[] {
  return readdirSync(moduleUrl(root, prefix), { withFileTypes: true }).flatMap((entry) => {
    const name = `${prefix}${entry.name}`;
    if (entry.isDirectory())
      return entry.name === 'node_modules' ? [] : listModules(root, `${name}/`);
    if (!MODULE.test(entry.name) || DECLARATION.test(entry.name)) return [];
    if (!entry.isFile()) throw unidentified(root, `${name} is not a regular file`);
    return [name];
  });
}

/** Escapes names in the URL, so that a `#` or `%` in a file name cannot select a different file. */
function moduleUrl(root: URL, name: string): URL {
  return new URL(name.split('/').map(encodeURIComponent).join('/'), root);
}

/**
 * The version in the nearest package.json that has one. Skips a bare `{"type": "module"}` next to a
 * build.
 */
function packageVersion(root: URL): string {
  for (let at = root; ; at = new URL('..', at)) {
    const file = new URL('package.json', at);
    if (existsSync(file)) {
      const { version } = JSON.parse(readFileSync(file, 'utf8')) as { readonly version?: unknown };
      if (typeof version === 'string') return version;
    }
    if (at.pathname === '/' || new URL('..', at).href === at.href) {
      throw unidentified(root, 'no package.json above it names a version');
    }
  }
}

function unidentified(root: URL, why: string): EffectMatchError<'ERR_EM_CONFIG_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_CONFIG_INVALID',
    `the code in ${fileURLToPath(root)} cannot be identified: ${why}; install the package with its own files`,
  );
}
