// Bundles the parts of the console that run in the browser, into the folder that is named: the one
// that signs, and pages in one file each that verify receipts and sign offline. They are the protocol of src; only
// SHA-256 comes from a library, because browsers have none that answers at once.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const [folder = 'src/console/assets'] = process.argv.slice(2);
const options = {
  bundle: true,
  format: 'esm',
  target: 'es2024',
  platform: 'browser',
  minify: true,
  legalComments: 'none',
  write: false,
  alias: { 'node:crypto': resolve('src/console/browser/sha256.ts') },
};

/** In one step: tests in other processes may read the file at the same time. */
function replace(name, content) {
  const file = join(folder, name);
  writeFileSync(`${file}.${process.pid}`, content);
  renameSync(`${file}.${process.pid}`, file);
}

async function bundle(entry) {
  const { outputFiles } = await build({
    ...options,
    entryPoints: [`src/console/browser/${entry}`],
  });
  return outputFiles[0].text;
}

replace('signer.js', await bundle('signer.ts'));
const style = readFileSync('src/console/assets/console.css', 'utf8');
// Pages that people save: everything is in the file.
for (const [name, entry] of [
  ['verifier.html', 'verifier'],
  ['signer.html', 'offline-signer'],
]) {
  const script = (await bundle(`${entry}.ts`)).replaceAll('</script', '<\\/script');
  const page = readFileSync(`src/console/browser/${entry}.html`, 'utf8')
    .replace('/*STYLE*/', () => style)
    .replace('/*SCRIPT*/', () => script);
  replace(name, page);
}
