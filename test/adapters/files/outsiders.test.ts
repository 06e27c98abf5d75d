// Goal: what others do to the folder while a candidate is held is never overwritten, and what is
// made anew stays theirs. Method: real runtimes over real folders; somebody writes past EffectMatch
// at each step between staging and commit.
import assert from 'node:assert/strict';
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { files } from '../../../src/adapters/files/index.ts';
import { foldName } from '../../../src/adapters/files/paths.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { remove, update } from '../../../src/protocol/draft.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { listFolder } from '../files-kit.ts';
import { Site, write } from './site.ts';

const LARGE = 'x'.repeat(5000);
const replaced = {
  effects: [
    update('file', { path: 'd/large' }, { content: [LARGE, 'short'] }),
    update('file', { path: 'd/small' }, { content: ['x', 'y'] }),
    remove('file', { path: 'd/gone' }),
  ],
  operations: [write('d/large', 'short'), write('d/small', 'y'), { remove: { path: 'd/gone' } }],
};

const OUTSIDERS: Readonly<Record<string, (root: string) => void>> = {
  'a large file that the candidate replaces': (root) =>
    writeFileSync(join(root, 'd/large'), 'z'.repeat(5000)),
  'a small file that the candidate replaces': (root) => writeFileSync(join(root, 'd/small'), 'z'),
  'a file that the candidate removes': (root) =>
    writeFileSync(join(root, 'd/gone'), 'z'.repeat(5000)),
  'the permissions of a file that the candidate replaces': (root) =>
    chmodSync(join(root, 'd/small'), 0o600),
  'the permissions of a folder': (root) => chmodSync(join(root, 'd'), 0o700),
  'a file that nobody else touches': (root) => writeFileSync(join(root, 'other'), 'z'),
};

for (const [name, change] of Object.entries(OUTSIDERS)) {
  test(`somebody who changes ${name} while it is held keeps the change, and the attempt is rejected`, async () => {
    const steps: readonly Step[] = ['adapter:action-done', 'path:observed'];
    for (const step of [
      ...steps,
      ...(name.includes('nobody') ? [] : (['path:gate-passed'] as const)),
    ]) {
      await using site = new Site({
        'd/large': LARGE,
        'd/small': 'x',
        'd/gone': LARGE,
        other: 'o',
      });
      let armed = false;
      let after = {};
      const key = generateApprover('editor');
      await using runtime = await createRuntime(
        {
          store: join(site.home, 'ledger.db'),
          keyring: join(site.home, 'keys.json'),
          issuers: { editor: { key: key.publicKey, may: ['site'] } },
          adapters: { site: files({ root: site.root, adopt: true }) },
        },
        {
          reached: (reached) => {
            if (!armed || reached !== step) return;
            armed = false;
            change(site.root);
            after = listFolder(site.root);
          },
        },
      );
      const draft = { adapter: 'site', task: 'task', planRevision: 1, effects: replaced.effects };
      const license = approver(key).sign(await runtime.prepare(draft), { expiresIn: '10m' });
      armed = true;
      const terminal = await runtime.execute(license, { operations: replaced.operations });
      assert.equal(armed, false, 'somebody was there');
      assert.equal(terminal.kind, 'rejected', step);
      assert.deepEqual(listFolder(site.root), after, step);
    }
  });
}

test('folders, links and replaced files stay with their owner', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can give files to others');
  await using site = new Site({ 'd/a': 'a', b: 'b', c: 'c' });
  symlinkSync('b', join(site.root, 'link'));
  const paths = ['', 'd', 'd/a', 'b', 'c', 'link'];
  for (const path of paths) lchownSync(join(site.root, path), 1234, 5678);
  const adapter = await site.open();
  await site.change(
    adapter,
    write('b', 'B'),
    { chmod: { path: 'c', mode: '0600' } },
    write('new', 'n'),
  );
  for (const path of paths) {
    const { uid, gid } = lstatSync(`${site.root}/${path}`);
    assert.deepEqual({ path, uid, gid }, { path, uid: 1234, gid: 5678 });
  }
  assert.equal(readFileSync(join(site.root, 'b'), 'utf8'), 'B');
  assert.equal(statSync(join(site.root, 'new')).uid, 0);
});

test('a control folder serves one root: another one is refused and stays as it is', async () => {
  await using site = new Site({ a: 'a' });
  const control = join(site.home, 'control');
  await site.open({ control });
  const other = join(site.home, 'other');
  const refusal = { code: 'ERR_EM_ADAPTER_REFUSED', message: /serves the root/ };
  await assert.rejects(site.open({ control, root: other }), refusal);
  assert.equal(lstatSync(other, { throwIfNoEntry: false }), undefined);
  mkdirSync(other);
  await assert.rejects(site.open({ control, root: other }), refusal);
  assert.ok(lstatSync(other).isDirectory());
  await site.open({ control });
});

test('names fold where lower case alone, or characters without a glyph, would tell them apart', () => {
  assert.equal(foldName('STRA\u1e9eE'), foldName('stra\u00dfe'));
  assert.equal(foldName('a\u200db'), foldName('ab'));
  assert.equal(foldName('a\u00adb\ufeff'), foldName('AB'));
});

test('a tree that moves make too deep for the system to name fails the stage and is removed', async () => {
  await using site = new Site({ a: 'a' });
  const adapter = await site.open();
  const operations: unknown[] = [{ mkdir: { path: 'n0' } }, write('n0/f', 'x')];
  for (let level = 1; level <= 8; level += 1) {
    let path = `n${level}`;
    operations.push({ mkdir: { path } });
    while (path.length < 800) {
      path += `/${'d'.repeat(200)}`;
      operations.push({ mkdir: { path } });
    }
    operations.push({ rename: { path: `n${level - 1}`, to: `${path}/n${level - 1}` } });
  }
  const before = listFolder(site.versions);
  const { staged } = await site.stage(adapter, ...operations);
  assert.equal(staged.kind, 'failed');
  assert.deepEqual(listFolder(site.versions), before);
});
