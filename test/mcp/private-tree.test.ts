// Goal: a private copy shares nothing with the folder that it was made from, and what was changed in
// it becomes operations. Method: real folders with links; the copy is written to.
import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PrivateTree } from '../../src/mcp/private-tree.ts';

function freshFolder(): { readonly root: string } & Disposable {
  const home = mkdtempSync(join(tmpdir(), 'private-tree-'));
  const root = join(home, 'docs');
  mkdirSync(join(root, 'a/b'), { recursive: true });
  writeFileSync(join(root, 'plan.txt'), 'first');
  return { root, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) };
}

test('a link by which a copy would reach beyond itself is refused', () => {
  const links = [
    ['up', '..'],
    ['up', 'a/b/../../../x'],
    ['a/up', '../..'],
    ['a/up', '../../x'],
    ['a/up', 'b/../b'],
    ['a/up', '/etc'],
  ] as const;
  for (const [path, target] of links) {
    using place = freshFolder();
    symlinkSync(target, join(place.root, path));
    const refused = { code: 'ERR_EM_CONFIG_INVALID', message: /leads out/ };
    assert.throws(() => new PrivateTree(place.root), refused, `${path} ${target}`);
  }
});

test('links inside are kept, writing to a copy leaves the folder, and changes become operations', () => {
  using place = freshFolder();
  const { root } = place;
  symlinkSync('../../plan.txt', join(root, 'a/b/link'));
  const tree = new PrivateTree(root);
  try {
    writeFileSync(join(tree.folder, 'a/b/link'), 'second');
    chmodSync(join(tree.folder, 'a'), 0o700);
    assert.equal(readFileSync(join(root, 'plan.txt'), 'utf8'), 'first');
    const operations = tree.operations();
    const written = Buffer.from('second').toString('base64');
    const mode = 0o644;
    assert.deepEqual(operations, [
      { chmod: { path: 'a', mode: 0o700 } },
      { write: { path: 'plan.txt', base64: written, mode } },
    ]);
  } finally {
    tree.remove();
  }
});
