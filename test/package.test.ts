// Goal: the package as it is built says which Node it needs when an older one imports it, and its
// pages lead nowhere outside of it. Method: a build in a temporary folder, every entry point
// imported by an older Node where there is one; the list of files that npm would pack.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix, resolve } from 'node:path';
import { test } from 'node:test';
import { linksOf, parsePage } from './docs/page.ts';
import { findOlderNode } from './older-node.ts';

const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  exports: Record<string, string | { readonly default: string }>;
};
const entries = Object.entries(exports).flatMap(([name, target]) =>
  typeof target === 'string' ? [] : [{ name: `effectmatch${name.slice(1)}`, file: target.default }],
);

test('every entry point looks at the version of Node before it imports anything', () => {
  assert.ok(entries.length > 10);
  for (const { file } of entries) {
    const source = file.replace('./dist/', 'src/').replace(/js$/, 'ts');
    const [first] = readFileSync(source, 'utf8').match(/^(?:import|export)\b.*$/m) ?? [];
    assert.match(first ?? '', /^import '(?:\.\.?\/)+node-version\.ts';$/, source);
  }
});

test('an older Node that imports the package is told which one it needs, at every entry point', (t) => {
  const older = findOlderNode();
  if (older === undefined) return t.skip('no Node older than 24.12 is installed on this machine');
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-older-'));
  try {
    const home = join(folder, 'node_modules/effectmatch');
    mkdirSync(home, { recursive: true });
    for (const peer of [
      'pg',
      'libpg-query',
      'mysql2',
      'hono',
      '@opentelemetry',
      '@modelcontextprotocol',
    ])
      symlinkSync(resolve('node_modules', peer), join(folder, 'node_modules', peer));
    copyFileSync('package.json', join(home, 'package.json'));
    execFileSync(process.execPath, ['scripts/build.mjs', join(home, 'dist')]);
    const call = (command: string, ...words: string[]) =>
      spawnSync(command, words, { cwd: folder, encoding: 'utf8' });
    const told = /^error ERR_EM_NODE_VERSION: EffectMatch needs Node 24\.12 or newer, and this is/;
    for (const { name } of entries) {
      const code = `import('${name}').catch((e) => console.log('error ' + e.code + ': ' + e.message))`;
      const { stdout, stderr } = call(older, '--input-type=module', '--eval', code);
      assert.match(stdout, told, `${name}: ${stderr}`);
      assert.equal(stdout.trimEnd().split('\n').length, 1);
    }
    assert.match(call(older, join(home, 'dist/cli/main.js'), 'demo').stderr, told);
    const own = call(process.execPath, '--input-type=module', '--eval', "import 'effectmatch'");
    assert.deepEqual([own.status, own.stderr], [0, '']);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('every link of a page in the package leads to a file in the package', () => {
  const words = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const printed = execFileSync('npm', words, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(printed) as { files: { path: string }[] }[];
  const names = packed?.files.map(({ path }) => path) ?? [];
  const isThere = (file: string) =>
    names.includes(file) || names.some((name) => name.startsWith(`${file}/`));
  let links = 0;
  for (const name of names.filter((path) => path.endsWith('.md'))) {
    for (const { file } of linksOf(parsePage(name, readFileSync(name, 'utf8')))) {
      links += 1;
      const target = posix.normalize(file).replace(/\/$/, '');
      assert.ok(
        existsSync(target) && isThere(target),
        `${name} leads to ${file}, which is not packed`,
      );
    }
  }
  assert.ok(links > 100, `only ${links} links seen`);
});
