import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The names under which commands look for a configuration, in this order. */
export const CONFIG_NAMES = ['ts', 'mts', 'js', 'mjs'].map(
  (ending) => `effectmatch.config.${ending}`,
);

/**
 * What a configuration is called in a folder: as the one that is there, or else so that Node takes
 * it for the ES module it is. In a package that does not say "type": "module", Node takes `.ts` for
 * CommonJS, or warns at every command.
 */
export function configNameIn(folder: string): string {
  const existing = CONFIG_NAMES.find((name) => existsSync(join(folder, name)));
  return existing ?? `effectmatch.config.${isForModules(folder) ? 'ts' : 'mts'}`;
}

/** Node's own rule: the nearest package.json decides; without any, the text of the file does. */
function isForModules(folder: string): boolean {
  const file = join(folder, 'package.json');
  if (existsSync(file)) return typeOf(file) === 'module';
  return dirname(folder) === folder || isForModules(dirname(folder));
}

function typeOf(file: string): unknown {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { readonly type?: unknown } | null)?.type;
  } catch {
    return undefined; // Node complains about such a file by itself
  }
}
