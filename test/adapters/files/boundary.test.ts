// Goal: nothing that an action can say, and nothing that lies in a folder, leads out of the
// protected root. Method: every known escape as an action or as a folder to adopt, on a real file
// system; the outside is looked at.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAction } from '../../../src/adapters/files/action.ts';
import { findLinkProblem, foldName } from '../../../src/adapters/files/paths.ts';
import { listFolder } from '../files-kit.ts';
import { Site, write } from './site.ts';

const LONG = 'n'.repeat(256);

const INVALID: Readonly<Record<string, unknown>> = {
  'a path with ..': write('../outside', 'x'),
  'a path with .. in the middle': write('a/../../outside', 'x'),
  'an absolute path': write('/etc/passwd', 'x'),
  'a path that is not in its only form': write('a//b', 'x'),
  'a path with a dot': write('./a', 'x'),
  'an empty path': write('', 'x'),
  'a NUL in a path': write('a\0b', 'x'),
  'a lone surrogate in a path': write('\ud800', 'x'),
  'a name of 256 bytes': write(LONG, 'x'),
  'a name of 86 characters and 258 bytes': write('€'.repeat(86), 'x'),
  'a path of more than 1024 bytes': write(Array(6).fill('n'.repeat(200)).join('/'), 'x'),
  'a reserved name': write('.effectmatch-probe-1', 'x'),
  'a reserved name in capitals': write('.EffectMatch-probe-1', 'x'),
  'a link to an absolute path': { symlink: { path: 'l', target: '/etc/passwd' } },
  'a link out of the root': { symlink: { path: 'a/l', target: '../../outside' } },
  'a link that goes up after a name': { symlink: { path: 'l', target: 'a/../b' } },
  'a rename out of the root': { rename: { path: 'a', to: '../b' } },
  'a set-user-id bit': write('a', 'x', '4755'),
  'a mode that keeps the owner from reading': write('a', 'x', '0244'),
  'a folder that its owner cannot enter': { mkdir: { path: 'd', mode: 0o600 } },
  'text and base64 at once': { write: { path: 'a', text: 'x', base64: 'eA==' } },
  'base64 in a loose form': { write: { path: 'a', base64: 'eA' } },
  'two operations in one': { ...write('a', 'x'), remove: { path: 'a' } },
};

for (const [name, operation] of Object.entries(INVALID)) {
  test(`${name} is refused before anything runs`, () => {
    assert.throws(() => parseAction({ operations: [operation] }), {
      code: 'ERR_EM_ACTION_INVALID',
    });
  });
}

test('a name of 255 bytes and a path of 1024 bytes are written and read back', async () => {
  await using site = new Site();
  const adapter = await site.open();
  const folders = [...Array(4).keys()].map((depth) =>
    Array(depth + 1)
      .fill('d'.repeat(199))
      .join('/'),
  );
  const deep = `${folders.at(-1)}/${'f'.repeat(224)}`;
  assert.equal(deep.length, 1024);
  await site.change(
    adapter,
    write('n'.repeat(255), 'wide'),
    ...folders.map((path) => ({ mkdir: { path } })),
    write(deep, 'deep'),
  );
  assert.equal(readFileSync(join(site.root, deep), 'utf8'), 'deep');
  assert.equal(readFileSync(join(site.root, 'n'.repeat(255)), 'utf8'), 'wide');
});

/** Sequences that are fine one by one and lead out, or become ambiguous, together. */
const DENIED: Readonly<Record<string, readonly unknown[]>> = {
  'a write through a symbolic link to a folder': [
    { symlink: { path: 'l', target: 'docs' } },
    write('l/x', 'x'),
  ],
  'a link that is moved to where it leads out': [
    { symlink: { path: 'docs/up', target: '../a' } },
    { rename: { path: 'docs/up', to: 'up' } },
  ],
  'a folder with a link that is moved up': [
    { mkdir: { path: 'docs/deep' } },
    { symlink: { path: 'docs/deep/up', target: '../../a' } },
    { rename: { path: 'docs/deep', to: 'deep' } },
  ],
  'a folder that is moved into itself': [{ rename: { path: 'docs', to: 'docs/docs' } }],
  'a name that differs only in case': [write('A', 'x')],
  'a folder name that differs only in case': [{ mkdir: { path: 'Docs' } }],
  'a name that differs only in Unicode form': [write('caf\u00e9', 'x'), write('cafe\u0301', 'y')],
  'a write over a folder': [write('docs', 'x')],
  'a write over a link': [{ symlink: { path: 'l', target: 'a' } }, write('l', 'x')],
  'a file in a folder that does not exist': [write('nowhere/x', 'x')],
  'a path through a file': [write('a/x', 'x')],
  'a rename over something': [{ rename: { path: 'a', to: 'docs/x' } }],
  'a removal of a folder that is not empty': [{ remove: { path: 'docs' } }],
  'permissions of a link': [
    { symlink: { path: 'l', target: 'a' } },
    { chmod: { path: 'l', mode: '0600' } },
  ],
};

for (const [name, operations] of Object.entries(DENIED)) {
  test(`${name} fails the stage and leaves nothing`, async () => {
    await using site = new Site({ a: 'a', 'docs/x': 'x' });
    const adapter = await site.open();
    const before = listFolder(site.home);
    const { staged } = await site.stage(adapter, ...operations);
    assert.ok(staged.kind === 'failed', 'it was held');
    assert.match(staged.reason, /^(action-failed|outlet-denied)$/);
    assert.deepEqual(withoutControl(listFolder(site.home)), withoutControl(before));
  });
}

test('a chain of links inside the root never resolves outside, whatever the links say', () => {
  // a/b/back leads to the root; a further link through it that goes up would leave it.
  assert.equal(findLinkProblem('a/b/back', '../..'), undefined);
  assert.notEqual(findLinkProblem('c', 'a/b/back/../x'), undefined);
  assert.equal(findLinkProblem('c', './a/b/back'), undefined);
  assert.notEqual(findLinkProblem('c', './..'), undefined);
});

test('names fold as file systems without case or with normal forms take them', () => {
  for (const [one, other] of [
    ['Straße', 'STRASSE'],
    ['É', 'e\u0301'],
    ['ſ', 's'],
    ['K', '\u212a'],
  ] as const) {
    assert.equal(foldName(one), foldName(other), `${one} ${other}`);
  }
  assert.notEqual(foldName('a'), foldName('b'));
});

/** Folders that cannot be protected, and what the refusal says. */
const UNFIT: readonly (readonly [string, RegExp, (root: string) => void])[] = [
  ['a link to an absolute path', /absolute/, (root) => symlinkSync('/etc/passwd', join(root, 'l'))],
  ['a link out of the folder', /outside the root/, (root) => symlinkSync('../x', join(root, 'l'))],
  [
    'a hard link to a file outside',
    /hard link/,
    (root) => {
      writeFileSync(join(root, '..', 'outside'), 'x');
      linkSync(join(root, '..', 'outside'), join(root, 'inside'));
    },
  ],
  ['a pipe', /device, pipe or socket/, (root) => execFileSync('mkfifo', [join(root, 'pipe')])],
  [
    'names that differ only in case',
    /case/,
    (root) =>
      ['a', 'A'].forEach((name) => {
        writeFileSync(join(root, name), '');
      }),
  ],
  [
    'a name that is not UTF-8',
    /UTF-8/,
    (root) => writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), ''),
  ],
  [
    'a link whose target is not UTF-8',
    /target is not valid UTF-8/,
    (root) => symlinkSync(Buffer.from([0x61, 0xff]), join(root, 'l')),
  ],
  [
    'a set-user-id file',
    /set-user-id/,
    (root) => {
      writeFileSync(join(root, 'tool'), '');
      chmodSync(join(root, 'tool'), 0o4755);
    },
  ],
];

for (const [name, message, make] of UNFIT) {
  test(`a folder with ${name} is not adopted and stays a plain folder`, async () => {
    await using site = new Site();
    make(site.root);
    await assert.rejects(site.open(), { code: 'ERR_EM_ADAPTER_REFUSED', message });
    assert.ok(
      readdirSync(site.home, { withFileTypes: true }).some(
        (entry) => entry.name === 'site' && entry.isDirectory(),
      ),
    );
  });
}

test('a file that cannot be read is not adopted', async (context) => {
  if (process.getuid?.() === 0) return context.skip('root reads every file');
  await using site = new Site({ secret: 'x' });
  chmodSync(join(site.root, 'secret'), 0o000);
  await assert.rejects(site.open(), { code: 'ERR_EM_ADAPTER_REFUSED', message: /cannot be read/ });
  chmodSync(join(site.root, 'secret'), 0o600);
});

test('a plain folder is adopted only when that is agreed to, and nothing is written before', async () => {
  await using site = new Site({ a: 'a' });
  await assert.rejects(site.open({ adopt: false }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
    message: /adopt: true/,
  });
  assert.deepEqual(readdirSync(site.home), ['site']);
  await (await site.open()).close();
  await site.open({ adopt: false });
});

test('a control folder inside the root, and a root that is no folder, are refused', async () => {
  await using site = new Site({ a: 'a' });
  await assert.rejects(site.open({ control: join(site.root, 'control') }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
  });
  await assert.rejects(site.open({ root: join(site.root, 'a') }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
  });
  await assert.rejects(site.open({ root: join(site.home, 'nowhere') }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
  });
  assert.ok(!existsSync(join(site.root, 'control')));
});

test('a link whose target became one that is not UTF-8 fails the stage, and its bytes stay', async () => {
  await using site = new Site({ a: 'a' });
  // The one text that a lossy reading of the other target gives.
  symlinkSync('a\ufffd', join(site.root, 'l'));
  const adapter = await site.open();
  rmSync(join(site.root, 'l'));
  symlinkSync(Buffer.from([0x61, 0xff]), join(site.root, 'l'));
  const { staged } = await site.stage(adapter, write('b', 'b'));
  assert.ok(staged.kind === 'failed', staged.kind);
  assert.equal(staged.reason, 'base-changed');
  assert.match(staged.detail, /"l", its target is not valid UTF-8/);
  assert.deepEqual(readlinkSync(join(site.root, 'l'), 'buffer'), Buffer.from([0x61, 0xff]));
});

test('a link whose target is not UTF-8, put into a held candidate, leaves the outcome incomplete', async () => {
  await using site = new Site({ a: 'a' });
  const adapter = await site.open();
  const { stage } = await site.hold(adapter, { symlink: { path: 'l', target: 'a\ufffd' } });
  const tree = join(site.versions, stage.candidate.split(':').at(-1) ?? '', 'tree');
  const { evidence } = await stage.observe();
  rmSync(join(tree, 'l'));
  symlinkSync(Buffer.from([0x61, 0xff]), join(tree, 'l'));
  assert.notEqual((await stage.recheck()).evidence, evidence);
  const { channels } = await stage.observe();
  assert.deepEqual(
    channels.find(({ channel }) => channel === 'links'),
    {
      channel: 'links',
      kind: 'stable',
      before: '',
      after: 'an entry whose target is not valid UTF-8',
    },
  );
});

test('a hard link or a pipe that somebody puts into a held candidate leaves the outcome incomplete', async () => {
  await using site = new Site({ a: 'a' });
  const adapter = await site.open();
  const { stage } = await site.hold(adapter, write('b', 'b'));
  const tree = join(site.versions, stage.candidate.split(':').at(-1) ?? '', 'tree');
  linkSync(join(tree, 'b'), join(site.home, 'outside'));
  mkdirSync(join(tree, 'd'));
  execFileSync('mkfifo', [join(tree, 'd', 'pipe')]);
  const { channels, unattributed } = await stage.observe();
  const links = channels.find(({ channel }) => channel === 'links');
  assert.deepEqual(links, {
    channel: 'links',
    kind: 'stable',
    before: '',
    after: 'a changed file with 2 links, a special file',
  });
  assert.equal(unattributed, 1, 'no operation explains the folder');
});

/** The registered folder and its surroundings, without the control file, which counts attempts. */
function withoutControl(
  listed: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(listed).filter(([path]) => !/control\.db|^\.site\.effectmatch$/.test(path)),
  );
}
