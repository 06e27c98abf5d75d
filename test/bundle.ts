import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const CACHE = fileURLToPath(new URL('../node_modules/.cache/', import.meta.url));

/** What a module asks about itself is answered as if it were not bundled. */
const OWN_PLACE: Plugin = {
  name: 'own place',
  setup({ onLoad, onResolve }) {
    // The text of a function in an adapter's options is part of the adapter's identity, and bundling
    // prints it differently.
    onResolve({ filter: /\/examples\// }, ({ path, resolveDir }) => {
      return { path: join(resolveDir, path), external: true };
    });
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path) };
      const contents = readFileSync(path, 'utf8').replace(
        /import\.meta\.(url|filename|dirname)\b/g,
        (_, name: keyof typeof place) => JSON.stringify(place[name]),
      );
      return { contents, loader: 'ts' };
    });
  },
};

/**
 * A program of the tests with all modules of this project that it loads, in one file and one more
 * for each dynamic import; removed when this process ends. For programs that start hundreds of
 * times: loading 200 modules takes longer than most of what such a process does.
 */
export async function bundleProgram(program: URL): Promise<string> {
  mkdirSync(CACHE, { recursive: true });
  // Below node_modules, so that packages are found from there.
  const outdir = mkdtempSync(join(CACHE, 'program-'));
  process.on('exit', () => rmSync(outdir, { recursive: true, force: true }));
  await build({
    entryPoints: { program: fileURLToPath(program) },
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    packages: 'external',
    plugins: [OWN_PLACE],
  });
  return join(outdir, 'program.mjs');
}
