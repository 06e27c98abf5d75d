// Bundles the part of the console that signs in the browser, into the folder that is named. It is
// the protocol of src; only SHA-256 comes from a library, because browsers have none that answers
// at once.
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const [folder = 'src/console/assets'] = process.argv.slice(2);
await build({
  entryPoints: ['src/console/browser/signer.ts'],
  outfile: join(folder, 'signer.js'),
  bundle: true,
  format: 'esm',
  target: 'es2024',
  platform: 'browser',
  minify: true,
  legalComments: 'none',
  alias: { 'node:crypto': resolve('src/console/browser/sha256.ts') },
});
