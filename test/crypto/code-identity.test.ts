// Goal: code that differs in any module has another identity, and the same release has the same one
// everywhere. Method: small packages written into a temporary folder, compared with digests
// computed here from the rule.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { codeIdentity, digestFolders } from '../../src/crypto/code-identity.ts';
import { assertRefuses } from './mutants.ts';

const root = fs.mkdtempSync(join(tmpdir(), 'effectmatch-code-'));
after(() => fs.rmSync(root, { recursive: true }));

let counter = 0;
/** A package with these files; returns the URL of its `lib` folder. */
function packageWith(
  files: Readonly<Record<string, string>>,
  manifest: object = { version: '1.2.3' },
  at = '',
): URL {
  counter += 1;
  const home = join(root, `package ${counter} #%`, at);
  for (const [name, text] of Object.entries({
    ...files,
    '../package.json': JSON.stringify(manifest),
  })) {
    const file = join(home, 'lib', name);
    fs.mkdirSync(join(file, '..'), { recursive: true });
    fs.writeFileSync(file, text);
  }
  return pathToFileURL(`${join(home, 'lib')}/`);
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

test('the identity is the package version and a digest over sorted names and bytes', () => {
  const folder = packageWith({ 'b.js': 'two', 'a.ts': 'one', 'deep/c.js': 'three' });
  const lines = [
    JSON.stringify(['a.ts', sha256('one')]),
    JSON.stringify(['b.js', sha256('two')]),
    JSON.stringify(['deep/c.js', sha256('three')]),
  ];
  assert.equal(codeIdentity(folder), `1.2.3:${sha256(`effectmatch/code/v1\n${lines.join('\n')}`)}`);
});

test('the same files give the same identity in every place, also inside node_modules', () => {
  const files = { 'a.js': 'one', 'deep/b.js': 'two' };
  const here = codeIdentity(packageWith(files));
  assert.equal(codeIdentity(packageWith(files)), here);
  assert.equal(
    codeIdentity(packageWith(files, { version: '1.2.3' }, 'node_modules/effectmatch')),
    here,
  );
  const linked = join(root, 'linked');
  fs.symlinkSync(join(root, `package ${counter - 1} #%`), linked);
  assert.equal(
    codeIdentity(pathToFileURL(join(linked, 'lib'))),
    here,
    'a package reached through a link',
  );
});

test('a folder is the same with and without a slash at its end', () => {
  const folder = packageWith({ 'a.js': 'one' });
  assert.equal(codeIdentity(new URL(folder.href.slice(0, -1))), codeIdentity(folder));
});

test('a changed byte, name, place, version or number of modules is another identity', () => {
  const identities = [
    packageWith({ 'a.js': 'one', 'b.js': 'two' }),
    packageWith({ 'a.js': 'one', 'b.js': 'twO' }),
    packageWith({ 'a.js': 'one', 'c.js': 'two' }),
    packageWith({ 'a.js': 'two', 'b.js': 'one' }),
    packageWith({ 'a.js': 'one', 'deep/b.js': 'two' }),
    packageWith({ 'a.js': 'one' }),
    packageWith({ 'a.js': 'one', 'b.js': 'two', 'c.js': '' }),
    packageWith({ 'a.js': 'one', 'b.ts': 'two' }),
    packageWith({ 'a.js': 'one', 'b.sql': 'two' }),
    packageWith({ 'a.js': 'one', 'b.sql': 'twO' }),
    packageWith({ 'a.js': 'one', 'b.js': 'two' }, { version: '1.2.4' }),
  ].map(codeIdentity);
  assert.equal(new Set(identities).size, identities.length);
});

test('declarations, maps, other files and dependencies do not count', () => {
  const plain = codeIdentity(packageWith({ 'a.js': 'one' }));
  const noise = {
    'a.d.ts': 'x',
    'a.js.map': 'x',
    'a.d.ts.map': 'x',
    'a.d.mts': 'x',
    'notes.md': 'x',
    'data.json': '{}',
  };
  assert.equal(
    codeIdentity(packageWith({ 'a.js': 'one', ...noise, 'node_modules/x/index.js': 'x' })),
    plain,
  );
  for (const name of ['b.mjs', 'b.cjs', 'b.mts', 'b.cts', 'd.ts']) {
    assert.notEqual(codeIdentity(packageWith({ 'a.js': 'one', [name]: 'x' })), plain, name);
  }
});

test('a package.json without a version, as beside a build, is passed over for the one above', () => {
  const folder = packageWith(
    { 'a.js': 'one', 'package.json': '{"type":"module"}' },
    { version: '7.0.0' },
  );
  assert.match(codeIdentity(folder), /^7\.0\.0:[0-9a-f]{64}$/);
});

test('code that cannot be identified is refused: no modules, or a module that is a link', () => {
  assertRefuses(
    'ERR_EM_CONFIG_INVALID',
    () => codeIdentity(packageWith({ 'notes.md': 'x' })),
    'no modules',
  );
  const folder = packageWith({ 'a.js': 'one' });
  fs.symlinkSync('a.js', new URL('b.js', folder));
  assertRefuses('ERR_EM_CONFIG_INVALID', () => codeIdentity(folder), 'a link');
});

test('the answer is kept for the life of the process, as the loaded code is', () => {
  const folder = packageWith({ 'a.js': 'one' });
  const before = codeIdentity(folder);
  fs.writeFileSync(new URL('a.js', folder), 'changed');
  assert.equal(codeIdentity(folder), before);
});

test('names with characters that mean something in a URL are read as they are', () => {
  const one = codeIdentity(packageWith({ 'a#b.js': 'one', 'c%20d.js': 'two', 'e?.js': 'three' }));
  const two = codeIdentity(packageWith({ 'a#b.js': 'one', 'c%20d.js': 'two', 'e?.js': 'four' }));
  assert.notEqual(one, two);
});

test('the digest of several folders depends on each of them and on their order', () => {
  const a = packageWith({ 'a.js': 'one' });
  const b = packageWith({ 'b.js': 'two' });
  const digests = [
    digestFolders([a]),
    digestFolders([b]),
    digestFolders([a, b]),
    digestFolders([b, a]),
  ];
  assert.equal(new Set(digests).size, 4);
  assert.match(digests[0] ?? '', /^[0-9a-f]{64}$/);
  assert.equal(digestFolders([a, b]), digests[2]);
});

test('our own source folders have an identity', () => {
  const { version } = JSON.parse(
    fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  const identity = codeIdentity(new URL('../../src/crypto/', import.meta.url));
  assert.ok(identity.startsWith(`${version}:`), identity);
});
