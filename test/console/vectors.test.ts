// Goal: a browser arrives at the same bytes as Node, so a license that is signed there is the one that
// was shown. Method: the golden vectors of every record kind, computed in Chromium by the modules of
// the protocol themselves.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import { build } from 'esbuild';
import { openChromium, skipWithoutChromium } from '../chromium.ts';
import { vectors } from '../vectors/load.ts';

/** A script that computes text and digest of records by their kind. */
async function bundle(): Promise<string> {
  const modules = globSync('src/protocol/*.ts').filter((file) =>
    readFileSync(file, 'utf8').includes(' defineRecord('),
  );
  const contents = `
    import { digestRecord } from './src/crypto/digest.ts';
    ${modules.map((file, index) => `import * as m${index} from './${file}';`).join('\n')}
    const found = [${modules.map((_, index) => `m${index}`).join(', ')}].flatMap(Object.values);
    const kinds = new Map(found.filter((value) => value?.kind && value.domain).map((k) => [k.kind, k]));
    globalThis.compute = (vectors) => vectors.map(({ kind: name, record }) => {
      const kind = kinds.get(name);
      return { text: kind.text(kind.parse(record)), digest: digestRecord(kind, record) };
    });`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: process.cwd() },
    bundle: true,
    format: 'iife',
    platform: 'browser',
    write: false,
    alias: { 'node:crypto': resolve('src/console/browser/sha256.ts') },
  });
  return outputFiles[0]?.text ?? '';
}

describe('the protocol in a browser', { skip: skipWithoutChromium() }, () => {
  test('text and digest of every vector are those of the file', async () => {
    await using browser = await openChromium();
    const page = await browser.newPage();
    await page.addScriptTag({ content: await bundle() });
    const records = JSON.stringify(vectors.map(({ kind, record }) => ({ kind, record })));
    const computed = await page.evaluate(`compute(${records})`);
    const expected = vectors.map(({ text, digest }) => ({ text, digest }));
    assert.deepEqual(computed, expected);
    assert.ok(expected.length > 20);
  });
});
