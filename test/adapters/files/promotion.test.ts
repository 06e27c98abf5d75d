// Goal: a folder changes by whole versions, each with its marker; nothing is lost, and what is
// untouched costs nothing. Method: real folders and candidates; races, outside writers, deaths
// between commit and switch, a full disk.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { listFolder } from '../files-kit.ts';
import { Site, write } from './site.ts';

test('two candidates of one version: the first is promoted, the second refused, and nothing is lost', async () => {
  await using site = new Site({ a: 'a', b: 'b' });
  const [one, other] = [await site.open(), await site.open()];
  const first = await site.hold(one, write('a', 'first'));
  const second = await site.hold(other, write('b', 'second'));
  const third = await site.hold(other, write('b', 'third'));
  const [facts, late] = [await first.stage.observe(), await second.stage.observe()];
  const seen = await third.stage.observe();
  assert.equal((await first.stage.promote(first.proofs.permit(facts))).kind, 'confirmed');
  assert.notEqual(
    (await third.stage.recheck()).evidence,
    seen.evidence,
    'the final gate sees it too',
  );
  const stale = await third.stage.promote(third.proofs.permit(seen));
  assert.equal(stale.kind === 'refused' && stale.reason, 'permit-mismatch');
  const promotion = await second.stage.promote(second.proofs.permit(late));
  assert.equal(promotion.kind === 'refused' && promotion.reason, 'base-changed');
  assert.equal(await other.markers.find(second.proofs.occurrence), undefined);
  assert.equal(readFileSync(join(site.root, 'a'), 'utf8'), 'first');
  assert.equal(readFileSync(join(site.root, 'b'), 'utf8'), 'b');
  await site.change(other, write('b', 'second'));
  assert.deepEqual(
    [...'ab'].map((name) => readFileSync(join(site.root, name), 'utf8')),
    ['first', 'second'],
  );
});

test('untouched files of 10,000 are the same inodes in the next version, and are not read', async (context) => {
  await using site = new Site();
  for (let folder = 0; folder < 100; folder += 1) {
    mkdirSync(join(site.root, `d${folder}`));
    for (let file = 0; file < 100; file += 1)
      writeFileSync(join(site.root, `d${folder}`, `f${file}`), 'same');
  }
  // Read before they were last written, as far as their times tell: whoever reads one of them moves
  // its access time.
  const sample = Array.from({ length: 100 }, (_, folder) => `d${folder}/f7`);
  const forgetReading = () => {
    for (const path of sample) utimesSync(join(site.root, path), 1, 1_000_000_000);
  };
  const findRead = () => sample.filter((path) => statSync(join(site.root, path)).atimeMs !== 1000);
  forgetReading();
  const adapter = await site.open();
  const adopted = findRead().length;
  const before = new Map(
    filesBelow(site.root).map((path) => [path, statSync(join(site.root, path)).ino]),
  );
  assert.equal(before.size, 10_000);
  forgetReading();
  const calls = countReads();
  await site.change(adapter, write('d7/f7', 'changed'));
  const made = (countReads() ?? 0) - (calls ?? 0);
  context.diagnostic(
    calls === undefined ? 'this system does not count reads' : `${made} reads for one changed file`,
  );
  assert.ok(made < 1000, `${made} reads`);
  const replaced = [...before].filter(
    ([path, inode]) => statSync(join(site.root, path)).ino !== inode,
  );
  assert.deepEqual(
    replaced.map(([path]) => path),
    ['d7/f7'],
  );
  if (adopted !== sample.length)
    return context.diagnostic('this file system keeps no access times, so reading cannot be seen');
  assert.deepEqual(findRead(), ['d7/f7']);
});

test('a process that dies between commit and switch is finished by whoever opens the folder or asks for the marker', async () => {
  for (const finish of ['open', 'find', 'void', 'read'] as const) {
    await using site = new Site({ a: 'old' });
    const bystander = await site.open();
    const dying = await site.open({}, (step) => {
      if (step === 'adapter:commit-returned') throw new Error('the process ends here');
    });
    const { stage, proofs } = await site.hold(dying, write('a', 'new'));
    const promotion = await stage.promote(proofs.permit(await stage.observe()));
    assert.equal(promotion.kind, 'unknown');
    assert.equal(readFileSync(join(site.root, 'a'), 'utf8'), 'old', 'it is not shown yet');
    if (finish === 'open') await site.open();
    if (finish === 'find')
      assert.equal((await bystander.markers.find(proofs.occurrence))?.disposition, 'committed');
    if (finish === 'void')
      assert.equal((await bystander.markers.void(proofs.voidMarker())).kind, 'conflict');
    if (finish === 'read') await bystander.read([{ target: 'file', key: { path: 'a' } }]);
    assert.equal(readFileSync(join(site.root, 'a'), 'utf8'), 'new', finish);
  }
});

test('what somebody changes past EffectMatch in the current version fails the next stage', async () => {
  const changes: Readonly<Record<string, (root: string) => void>> = {
    content: (root) => appendFileSync(join(root, 'a'), 'x'),
    'content of the same size': (root) => writeFileSync(join(root, 'a'), 'b'),
    permissions: (root) => chmodSync(join(root, 'a'), 0o600),
    'a new file': (root) => writeFileSync(join(root, 'd', 'new'), ''),
    'a missing file': (root) => rmSync(join(root, 'd', 'x')),
  };
  for (const [name, change] of Object.entries(changes)) {
    await using site = new Site({ a: 'a', 'd/x': 'x' });
    const adapter = await site.open();
    await site.change(adapter, write('a', 'c', '0644'));
    change(site.root);
    const { staged } = await site.stage(adapter, write('other', 'y'));
    assert.equal(staged.kind === 'failed' && staged.reason, 'base-changed', name);
    assert.equal(readdirSync(site.versions).length, 2, 'the candidate is gone');
  }
});

test('what somebody changes past EffectMatch while a candidate is held makes its evidence unusable', async () => {
  await using site = new Site({ a: 'a', 'd/x': 'x' });
  const adapter = await site.open();
  const { stage } = await site.hold(adapter, write('b', 'b'));
  const { evidence } = await stage.observe();
  appendFileSync(join(site.root, 'a'), 'x');
  const changed = await stage.observe();
  assert.equal(changed.unattributed, 1);
  assert.notEqual(changed.evidence, evidence);
  await stage.discard();
  writeFileSync(join(site.root, 'a'), 'a');
  const next = await site.hold(adapter, write('b', 'b'));
  writeFileSync(join(site.root, 'd', 'new'), '');
  const base = (await next.stage.observe()).channels.find(({ channel }) => channel === 'base');
  assert.ok(base?.kind === 'stable' && base.before !== base.after, JSON.stringify(base));
});

test('a copy of root and control folder works as it is, once its files were hashed again', async () => {
  await using site = new Site({ a: 'a' });
  await (await site.open()).close();
  await using copy = new Site();
  rmSync(copy.root, { recursive: true });
  for (const name of readdirSync(site.home)) {
    cpSync(join(site.home, name), join(copy.home, name), {
      recursive: true,
      verbatimSymlinks: true,
    });
  }
  await copy.change(await copy.open(), write('b', 'b'));
  assert.deepEqual(Object.keys(listFolder(copy.root)), ['a', 'b']);
  assert.deepEqual(Object.keys(listFolder(site.root)), ['a']);
});

test('permission bits are compared and kept, and no other version sees a change of them', async () => {
  await using site = new Site({ a: 'a', 'd/x': 'x' });
  const adapter = await site.open();
  const original = readlinkSync(site.root);
  const { records } = await site.change(
    adapter,
    { chmod: { path: 'a', mode: '0640' } },
    { chmod: { path: 'd', mode: 0o500 + 0o200 } },
    write('run', '#!/bin/sh\n', '0755'),
    { mkdir: { path: 'private', mode: '0700' } },
  );
  assert.deepEqual([...records].map(({ op, key, after }) => [op, key?.path, after?.mode]).sort(), [
    ['insert', 'private', '0700'],
    ['insert', 'run', '0755'],
    ['update', 'a', '0640'],
    ['update', 'd', '0700'],
  ]);
  const modeOf = (path: string) => lstatSync(path).mode & 0o7777;
  assert.equal(modeOf(join(site.root, 'a')), 0o640);
  assert.equal(modeOf(join(site.home, original, 'a')), 0o644);
  await site.change(adapter, write('run', 'again'));
  assert.equal(modeOf(join(site.root, 'run')), 0o755, 'a file that is replaced keeps its mode');
});

test('a rename is a removal and a new file, without a copy', async () => {
  await using site = new Site({ 'd/x': 'x' });
  const adapter = await site.open();
  const { ino } = statSync(join(site.root, 'd/x'));
  const { records, channels } = await site.change(adapter, { rename: { path: 'd', to: 'e' } });
  assert.deepEqual([...records].map(({ op, key }) => `${op} ${key?.path}`).sort(), [
    'delete d',
    'delete d/x',
    'insert e',
    'insert e/x',
  ]);
  assert.ok(channels.every((report) => report.kind !== 'stable' || report.before === report.after));
  assert.equal(statSync(join(site.root, 'e/x')).ino, ino);
});

test('small text is shown as text, everything else as digest and size', async () => {
  await using site = new Site();
  const adapter = await site.open();
  const bytes = Buffer.from([0xff, 0x00]);
  const { records } = await site.change(
    adapter,
    write('empty', ''),
    write('large', 'x'.repeat(4097)),
    {
      write: { path: 'bytes', base64: bytes.toString('base64') },
    },
  );
  // Digests from sha256sum.
  assert.deepEqual(
    Object.fromEntries([...records].map(({ key, after }) => [key?.path, after?.content])),
    {
      empty: '',
      large: { sha256: sha256sum(join(site.root, 'large')), size: 4097 },
      bytes: { sha256: sha256sum(join(site.root, 'bytes')), size: 2 },
    },
  );
});

test('old versions go, the newest three stay, and a candidate of a dead process is swept', async () => {
  await using site = new Site({ a: '0' });
  const adapter = await site.open();
  const { stage } = await site.hold(adapter, write('b', 'held'));
  mkdirSync(join(site.versions, 'unregistered', 'tree'), { recursive: true });
  mkdirSync(join(site.versions, 'orphan', 'tree'), { recursive: true });
  const dead = spawnSync('true').pid;
  using control = new DatabaseSync(join(site.versions, '..', 'control.db'), { timeout: 5000 });
  control
    .prepare('insert into stage values (?, ?, ?, ?)')
    .run('orphan', hostname(), dead, Date.now());
  for (const text of ['1', '2', '3', '4']) await site.change(adapter, write('a', text));
  assert.equal(
    readdirSync(site.versions).length,
    4,
    'three versions and the candidate that is held',
  );
  await stage.discard();
  assert.equal(readdirSync(site.versions).length, 3);
  assert.equal(readFileSync(join(site.root, 'a'), 'utf8'), '4');
});

test('a disk that is full in the middle of a write fails the stage, and nothing of it remains', async () => {
  await using site = new Site({ index: 'old' });
  await (await site.open()).close();
  const before = listFolder(site.root);
  const script = fileURLToPath(new URL('full-disk.ts', import.meta.url));
  // Files may grow to 1 MB; without ignoring the signal the process would be killed instead of
  // told.
  const shell = `trap '' XFSZ; ulimit -f 1024; exec '${process.execPath}' '${script}' '${site.root}'`;
  const child = spawnSync('bash', ['-c', shell], { encoding: 'utf8' });
  assert.equal(child.status, 0, child.stderr);
  assert.match(
    child.stdout,
    /^action-failed: operation 2 \(write "index"\): .*\((EFBIG|ENOSPC)\)$/,
  );
  assert.deepEqual(listFolder(site.root), before);
  assert.equal(readdirSync(site.versions).length, 1);
});

test('where values are not kept, no reason names a path', async () => {
  await using site = new Site({ a: 'a' });
  const adapter = await site.open({ values: 'digest' });
  for (const operation of [
    { remove: { path: 'secret-name' } },
    write('A', 'x'),
    write('secret-name/x', 'x'),
  ]) {
    const { staged } = await site.stage(adapter, operation);
    assert.ok(staged.kind === 'failed');
    assert.doesNotMatch(staged.detail, /secret-name|"A"/);
  }
});

test('a root that somebody replaced by a folder of its own is not certified', async () => {
  await using site = new Site({ a: 'a' });
  const adapter = await site.open();
  rmSync(site.root);
  mkdirSync(site.root);
  const { outlets } = await adapter.survey();
  assert.deepEqual(
    outlets.filter(({ disposition }) => disposition === 'unclassified').map(({ outlet }) => outlet),
    ['root'],
  );
  await assert.rejects(site.open(), { code: 'ERR_EM_ADAPTER_UNAVAILABLE' });
});

/** How many times this process has read from any file so far; only Linux tells. */
function countReads(): number | undefined {
  if (!existsSync('/proc/self/io')) return undefined;
  return Number(/^syscr: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

function filesBelow(root: string): readonly string[] {
  return readdirSync(`${root}/`, { recursive: true, encoding: 'utf8' }).filter((path) =>
    /\/f\d+$/.test(path),
  );
}

function sha256sum(file: string): string {
  return spawnSync('sha256sum', [file], { encoding: 'utf8' }).stdout.slice(0, 64);
}
