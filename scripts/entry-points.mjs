// Lets a program say `effectmatch` as an application does and run on the sources, without a build:
//   node --import ./scripts/entry-points.mjs program.ts
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const root = new URL('../', import.meta.url);
const { name, exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

/**
 * The source of an entry point, if the specifier is one: `./dist/index.js` is built from
 * `src/index.ts`.
 */
function sourceOf(specifier) {
  const entry = specifier === name ? '.' : specifier.replace(`${name}/`, './');
  if (entry === specifier || !Object.hasOwn(exports, entry)) return undefined;
  const built = exports[entry].default;
  return built && new URL(built.replace('./dist/', 'src/').replace(/\.js$/, '.ts'), root).href;
}

registerHooks({
  resolve: (specifier, context, next) => next(sourceOf(specifier) ?? specifier, context),
});
