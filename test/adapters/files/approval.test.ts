// Goal: what an approver states about files is what is compared, and a whole execution commits
// exactly that. Method: manifests against their canonical form, written by hand; real runtimes over
// real folders.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { files } from '../../../src/adapters/files/index.ts';
import { FilesSchema } from '../../../src/adapters/files/normalise.ts';
import { normaliseManifest } from '../../../src/backend/normalise.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import {
  absent,
  any,
  draftManifest,
  generated,
  insert,
  remove,
  row,
  update,
} from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { Site, write } from './site.ts';

const normalise = (...effects: readonly ApprovedEffect[]) =>
  normaliseManifest(
    new FilesSchema('plain'),
    draftManifest({ adapter: 'site', task: 't', planRevision: 1, effects }),
  ).effects;

test('a new file gets the mode that a write without one gives it, and no link', () => {
  const [effect] = normalise(insert('file', { path: 'a', content: 'text' }));
  assert.deepEqual(effect?.key, { path: { is: 'a' } });
  assert.deepEqual(effect?.after, {
    kind: { is: 'file' },
    mode: { is: '0644' },
    content: { is: 'text' },
    link: { is: null },
  });
});

test('folders and links are filled in by what they are', () => {
  const [folder, link] = normalise(
    insert('file', { path: 'd', kind: 'directory' }),
    insert('file', { path: 'l', link: 'd/x' }),
  );
  const none = { is: null };
  assert.deepEqual(folder?.after, {
    kind: { is: 'directory' },
    mode: { is: '0755' },
    content: none,
    link: none,
  });
  assert.deepEqual(link?.after, {
    kind: { is: 'symlink' },
    mode: none,
    content: none,
    link: { is: 'd/x' },
  });
});

test('content is text where it is small and readable, however it was stated', () => {
  const contents = [
    Buffer.from('abc'),
    'abc',
    // The digest of FIPS 180-2 for one million times "a".
    'a'.repeat(1_000_000),
    Buffer.from([0xff]),
  ].map((content) => normalise(insert('file', { path: 'a', content }))[0]?.after?.content);
  assert.deepEqual(contents.slice(0, 3), [
    { is: 'abc' },
    { is: 'abc' },
    {
      is: {
        sha256: 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0',
        size: 1_000_000,
      },
    },
  ]);
  assert.ok(JSON.stringify(contents[3]).includes('"size":1'));
});

test('an approval that no folder could match is refused with what to change', () => {
  const refused: readonly (readonly [ApprovedEffect, RegExp])[] = [
    [insert('file', { path: 'a' }), /state the content/],
    [insert('file', { path: '../a', content: '' }), /not a name/],
    [insert('file', { content: '' }), /path is missing/],
    [insert('file', { path: 'd', kind: 'directory', content: '' }), /has no content/],
    [insert('file', { path: 'a', content: '', mode: '4755' }), /permission bits/],
    [insert('file', { path: generated('name'), content: '' }), /assigns no values/],
    [insert('file', { path: 'a', content: '', owner: 'me' }), /no column "owner"/],
    [update('file', { path: 'a' }, { mode: ['0644', 0o644] }), /same before and after/],
    [update('file', { path: 'a' }, { path: 'b' }), /the key/],
    [remove('page', { path: 'a' }), /only the target "file"/],
  ];
  for (const [effect, message] of refused) {
    assert.throws(() => normalise(effect), { code: 'ERR_EM_MANIFEST_INVALID', message });
  }
  assert.equal(
    normalise(remove('file', { path: 'a' }), insert('file', { path: 'b', content: any() })).length,
    2,
  );
});

test('a runtime commits what was approved, rejects what is more, and refuses the second license of one version', async () => {
  await using site = new Site({ 'index.html': 'old', 'docs/x': 'x' });
  const key = generateApprover('editor');
  await using runtime = await createRuntime({
    store: join(site.home, 'ledger.db'),
    keyring: join(site.home, 'keys.json'),
    issuers: { editor: { key: key.publicKey, may: ['site'] } },
    adapters: { site: files({ root: site.root, adopt: true }) },
  });
  const approve = async (task: string, effects: readonly ApprovedEffect[]) => {
    const requires = [
      row('file', { path: 'index.html' }, { content: 'old' }),
      absent('file', { path: 'draft' }),
    ];
    const proposal = await runtime.prepare({
      adapter: 'site',
      task,
      planRevision: 1,
      effects,
      requires,
    });
    return approver(key).sign(proposal, { expiresIn: '10m' });
  };
  const page = update('file', { path: 'index.html' }, { content: ['old', 'new'] });
  const first = await approve('page', [page]);
  const second = await approve('docs', [remove('file', { path: 'docs/x' })]);
  const surprising = await approve('surprise', [page]);

  const operations = [write('index.html', 'new'), write('docs/spy', 'x')];
  const diverged = await runtime.execute(surprising, { operations });
  assert.ok(
    diverged.kind === 'rejected' && diverged.outcome?.kind === 'DIVERGED',
    JSON.stringify(diverged),
  );
  assert.equal(readFileSync(join(site.root, 'index.html'), 'utf8'), 'old');

  const committed = await runtime.execute(first, { operations: [write('index.html', 'new')] });
  assert.equal(committed.kind, 'committed', JSON.stringify(committed));
  const late = await runtime.execute(second, { operations: [{ remove: { path: 'docs/x' } }] });
  assert.equal(late.kind, 'rejected');
  assert.equal(readFileSync(join(site.root, 'index.html'), 'utf8'), 'new');
  assert.equal(readFileSync(join(site.root, 'docs/x'), 'utf8'), 'x');
});
