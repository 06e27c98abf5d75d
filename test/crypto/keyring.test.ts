// Goal: keys are readable by their owner alone, never overwritten, never printed, and survive a
// rotation. Method: real files in a temporary folder, damaged in every listed way; real processes
// that race for one file.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import {
  createKeyring,
  Keyring,
  keyringFromEnv,
  loadKeyring,
  openKeyring,
  rotateKeyring,
} from '../../src/crypto/keyring.ts';
import { createSealer } from '../../src/crypto/seal.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { checkpointRecord } from '../../src/protocol/checkpoint.ts';
import { vectors } from '../vectors/load.ts';
import { assertRefuses } from './mutants.ts';

const folder = fs.mkdtempSync(join(tmpdir(), 'effectmatch-keyring-'));
after(() => fs.rmSync(folder, { recursive: true }));

let counter = 0;
function fresh(): string {
  counter += 1;
  return join(folder, `keys-${counter}.json`);
}

const secretText = (byte: number) => Buffer.alloc(32, byte).toString('base64url');
const record = checkpointRecord.parse(vectors.find(({ kind }) => kind === 'checkpoint')?.record);

function write(content: string | object, mode = 0o600): string {
  const file = fresh();
  fs.writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content), { mode });
  fs.chmodSync(file, mode);
  return file;
}

test('a new keyring file has mode 0600 under any umask, and loads as the ring that was created', () => {
  for (const umask of [0o000, 0o022, 0o077, 0o777]) {
    const file = fresh();
    const before = process.umask(umask);
    let created: Keyring;
    try {
      created = createKeyring(file);
    } finally {
      process.umask(before);
    }
    assert.equal(fs.statSync(file).mode & 0o777, 0o600);
    const sealed = createSealer(created).seal(checkpointRecord, record);
    assert.deepEqual(
      createSealer(loadKeyring(file)).open(checkpointRecord, sealed.text, sealed.seal),
      sealed,
    );
  }
});

test('two keyrings never share a secret or an id', () => {
  const rings = [createKeyring(fresh()), createKeyring(fresh())];
  assert.equal(new Set(rings.map(({ current }) => current)).size, 2);
  assert.equal(
    new Set(rings.map((ring) => ring.derive(ring.current, 'claim')?.export().toString('hex'))).size,
    2,
  );
});

test('an existing file is never overwritten, whatever it holds', () => {
  for (const file of [write(''), write('precious'), write({ version: 1, keys: [] })]) {
    const before = fs.readFileSync(file);
    assertRefuses('ERR_EM_KEYRING_INVALID', () => createKeyring(file), file);
    assert.deepEqual(fs.readFileSync(file), before);
  }
  const target = fresh();
  const link = fresh();
  fs.symlinkSync(target, link);
  assertRefuses('ERR_EM_KEYRING_INVALID', () => createKeyring(link), 'a dangling link');
  assert.equal(fs.existsSync(target), false, 'nothing was created through the link');
});

test('creating and rotating leave no other file behind', () => {
  const place = fs.mkdtempSync(join(folder, 'alone-'));
  const file = join(place, 'keys.json');
  createKeyring(file);
  rotateKeyring(file);
  assertRefuses('ERR_EM_KEYRING_INVALID', () => createKeyring(file), 'again');
  assert.deepEqual(fs.readdirSync(place), ['keys.json']);
});

test('a file that group or others can touch is refused with the command that repairs it', () => {
  for (const mode of [0o640, 0o604, 0o660, 0o601, 0o610, 0o602, 0o666, 0o777]) {
    const file = fresh();
    createKeyring(file);
    fs.chmodSync(file, mode);
    assertRefuses('ERR_EM_KEYRING_PERMISSIONS', () => loadKeyring(file), mode.toString(8));
    assertRefuses('ERR_EM_KEYRING_PERMISSIONS', () => rotateKeyring(file), mode.toString(8));
    assertRefuses('ERR_EM_KEYRING_PERMISSIONS', () => openKeyring(file), mode.toString(8));
    assert.throws(() => loadKeyring(file), { message: new RegExp(`chmod 600 ${file}`) });
  }
  const spaced = join(folder, "it's a file.json");
  createKeyring(spaced);
  fs.chmodSync(spaced, 0o644);
  assert.throws(
    () => loadKeyring(spaced),
    (error: Error) => error.message.endsWith(`'${folder}/it'\\''s a file.json'`),
  );
});

test('symbolic links, folders, devices and oversized files are refused', () => {
  const file = fresh();
  createKeyring(file);
  const link = fresh();
  fs.symlinkSync(file, link);
  assertRefuses('ERR_EM_KEYRING_INVALID', () => loadKeyring(link), 'a link');
  assertRefuses('ERR_EM_KEYRING_INVALID', () => openKeyring(link), 'a link');
  assertRefuses('ERR_EM_KEYRING_INVALID', () => rotateKeyring(link), 'a link');
  assertRefuses('ERR_EM_KEYRING_INVALID', () => loadKeyring(folder), 'a folder');
  assertRefuses('ERR_EM_KEYRING_INVALID', () => loadKeyring('/dev/null'), 'a device');
  const content = JSON.stringify({ version: 1, keys: [{ id: 'one', secret: secretText(1) }] });
  assert.equal(loadKeyring(write(content.padEnd(64 * 1024))).current, 'one');
  const large = write(content.padEnd(64 * 1024 + 1));
  assertRefuses('ERR_EM_KEYRING_INVALID', () => loadKeyring(large), 'a large file');
  assertRefuses(
    'ERR_EM_KEYRING_INVALID',
    () => loadKeyring(join(file, 'inside')),
    'a path through a file',
  );
});

test('content that is not exactly a keyring is refused, and no message shows any of it', () => {
  const good = { id: 'one', secret: secretText(1) };
  const contents: readonly (string | object)[] = [
    '',
    'null',
    '[]',
    `{"version":1,"keys":[{"id":"one","secret":"${secretText(1)}"}`,
    `${secretText(1)}`,
    { keys: [good] },
    { version: 2, keys: [good] },
    { version: 1 },
    { version: 1, keys: [] },
    { version: 1, keys: good },
    { version: 1, keys: [good], extra: secretText(2) },
    { version: 1, keys: [{ ...good, [secretText(2)]: 1 }] },
    { version: 1, keys: [{ id: 'one' }] },
    { version: 1, keys: [{ secret: secretText(1) }] },
    { version: 1, keys: [good, good] },
    { version: 1, keys: [good, { id: 'one', secret: secretText(2) }] },
    { version: 1, keys: [{ id: '', secret: secretText(1) }] },
    { version: 1, keys: [{ id: 'a b', secret: secretText(1) }] },
    { version: 1, keys: [{ id: 'x'.repeat(65), secret: secretText(1) }] },
    { version: 1, keys: [{ id: 1, secret: secretText(1) }] },
    { version: 1, keys: [{ id: 'one', secret: Buffer.alloc(31, 1).toString('base64url') }] },
    { version: 1, keys: [{ id: 'one', secret: Buffer.alloc(33, 1).toString('base64url') }] },
    { version: 1, keys: [{ id: 'one', secret: Buffer.alloc(32, 1).toString('base64') }] },
    { version: 1, keys: [{ id: 'one', secret: `${secretText(1).slice(0, 42)}F` }] },
    { version: 1, keys: [{ id: 'one', secret: ` ${secretText(1).slice(1)}` }] },
    { version: 1, keys: [{ id: 'one', secret: '' }] },
    {
      version: 1,
      keys: Array.from({ length: 65 }, (_, index) => ({
        id: `k${index}`,
        secret: secretText(index),
      })),
    },
  ];
  for (const content of contents) {
    const file = write(content);
    assertRefuses(
      'ERR_EM_KEYRING_INVALID',
      () => loadKeyring(file),
      JSON.stringify(content).slice(0, 100),
    );
    try {
      loadKeyring(file);
    } catch (error) {
      const shown = inspect(error, { depth: 10, showHidden: true });
      for (const secret of [1, 2])
        assert.ok(!shown.includes(secretText(secret).slice(0, 12)), shown);
    }
  }
});

test('the stray bits of a last character are refused: a secret has one text', () => {
  // 32 bytes end in a character that carries 4 of its 6 bits; "E" is 000100, "F" sets a bit that is
  // not carried.
  assert.equal(secretText(1).at(-1), 'E');
  assert.deepEqual(Buffer.from(`${secretText(1).slice(0, 42)}F`, 'base64url'), Buffer.alloc(32, 1));
  assertRefuses(
    'ERR_EM_KEYRING_INVALID',
    () => keyringFromEnv(`one:${secretText(1).slice(0, 42)}F`),
    'stray bits',
  );
});

test('a rotation puts a new key first, keeps the old ones, and running processes learn of it', () => {
  const file = fresh();
  const running = createKeyring(file);
  const old = createSealer(running).seal(checkpointRecord, record);
  const rotated = rotateKeyring(file);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  assert.equal(rotated.ids.length, 2);
  assert.deepEqual(rotated.ids.slice(1), [running.current]);
  assert.deepEqual(createSealer(rotated).open(checkpointRecord, old.text, old.seal), old);

  const fresh2 = createSealer(rotated).seal(checkpointRecord, record);
  assert.equal(fresh2.seal.key, rotated.current);
  assert.deepEqual(createSealer(running).open(checkpointRecord, fresh2.text, fresh2.seal), fresh2);
  assert.notEqual(
    running.current,
    rotated.current,
    'a running process keeps sealing with the key it started with',
  );
});

test('an unknown key stays unknown when the file is gone or is not safe to read any more', () => {
  const file = fresh();
  const ring = createKeyring(file);
  const foreign = createSealer(createKeyring(fresh())).seal(checkpointRecord, record);
  const open = () => createSealer(ring).open(checkpointRecord, foreign.text, foreign.seal);
  assertRefuses('ERR_EM_KEY_UNKNOWN', open, 'a foreign key');
  fs.chmodSync(file, 0o644);
  assertRefuses('ERR_EM_KEY_UNKNOWN', open, 'a file that others can read');
  fs.rmSync(file);
  assertRefuses('ERR_EM_KEY_UNKNOWN', open, 'no file');
});

test('a rotation beside another one, or after one that was interrupted, is refused and changes nothing', () => {
  const file = fresh();
  createKeyring(file);
  const before = fs.readFileSync(file);
  fs.writeFileSync(`${file}.next`, '');
  assertRefuses('ERR_EM_KEYRING_INVALID', () => rotateKeyring(file), 'a second rotation');
  assert.deepEqual(fs.readFileSync(file), before);
  fs.rmSync(`${file}.next`);
  assert.equal(rotateKeyring(file).ids.length, 2);
});

test('a rotation of what cannot be read leaves it alone and leaves no lock', () => {
  const damaged = write('{');
  assertRefuses('ERR_EM_KEYRING_INVALID', () => rotateKeyring(damaged), 'damaged');
  assert.equal(fs.readFileSync(damaged, 'utf8'), '{');
  assert.equal(fs.existsSync(`${damaged}.next`), false);
  const absent = fresh();
  assertRefuses('ERR_EM_NOT_FOUND', () => rotateKeyring(absent), 'absent');
  assert.equal(fs.existsSync(`${absent}.next`), false);
});

test('a ring that is full is not rotated beyond what can be loaded', () => {
  const full = Array.from({ length: 64 }, (_, index) => ({
    id: `k${index}`,
    secret: secretText(index),
  }));
  const file = write({ version: 1, keys: full });
  assert.equal(loadKeyring(file).ids.length, 64);
  assertRefuses('ERR_EM_KEYRING_INVALID', () => rotateKeyring(file), 'full');
  assert.equal(loadKeyring(file).ids.length, 64);
});

test('an open keyring is created when absent, in a folder that exists', () => {
  const file = fresh();
  const ring = openKeyring(file);
  assert.equal(openKeyring(file).current, ring.current);
  assertRefuses(
    'ERR_EM_KEYRING_PERMISSIONS',
    () => openKeyring(join(folder, 'absent', 'keys.json')),
    'no folder',
  );
  assert.equal(openKeyring(ring), ring);
});

test('processes that open one absent keyring at the same moment end up with the same key', async () => {
  const files = Array.from({ length: 50 }, fresh);
  const children = [1, 2, 3].map(() =>
    startChild(
      `
      process.stdout.write('ready\\n');
      await new Promise((go) => process.stdin.once('data', go));
      process.stdout.write(JSON.stringify(process.argv.slice(1).map((file) => openKeyring(file).current)));
      process.exit();`,
      files,
    ),
  );
  for (const { stdout } of children) await once(stdout, 'data');
  for (const { stdin } of children) stdin.write('go');
  const answers = await Promise.all(
    children.map(async ({ stdout }) => JSON.parse(await text(stdout))),
  );
  const durable = files.map((file) => loadKeyring(file).current);
  for (const answer of answers) assert.deepEqual(answer, durable);
});

test('a pipe in the place of a keyring is refused and not waited for', async () => {
  const pipe = fresh();
  assert.equal(spawnSync('mkfifo', ['-m', '600', pipe]).status, 0);
  const child = startChild(
    `try { openKeyring(process.argv[1]) } catch (error) { process.stdout.write(error.code) }`,
    [pipe],
  );
  assert.equal(await text(child.stdout), 'ERR_EM_KEYRING_INVALID');
});

test('a folder or file that this user may not touch is a question of permissions', () => {
  const place = fs.mkdtempSync(join(folder, 'locked-'));
  const file = join(place, 'keys.json');
  createKeyring(file);
  fs.chmodSync(file, 0o000);
  asOrdinaryUser([folder, place, file], () => {
    assertRefuses('ERR_EM_KEYRING_PERMISSIONS', () => loadKeyring(file), 'unreadable');
    fs.chmodSync(place, 0o500);
    assertRefuses(
      'ERR_EM_KEYRING_PERMISSIONS',
      () => createKeyring(join(place, 'more.json')),
      'unwritable',
    );
    fs.chmodSync(place, 0o700);
  });
});

test('keys from the environment are read in order, and refused without showing them', () => {
  const ring = keyringFromEnv(`new:${secretText(1)}, old:${secretText(2)}`);
  assert.deepEqual(ring.ids, ['new', 'old']);
  assert.equal(ring.current, 'new');
  const bad = [
    '',
    ':',
    'one',
    `:${secretText(1)}`,
    `one:${secretText(1)},`,
    `one:${secretText(1)}:x`,
    `one:${secretText(1)}=`,
  ];
  bad.push(
    `one:${secretText(1)},one:${secretText(2)}`,
    `one:${secretText(1)};two:${secretText(2)}`,
    secretText(1),
  );
  for (const value of bad) {
    assertRefuses('ERR_EM_KEYRING_INVALID', () => keyringFromEnv(value), value);
    assert.throws(
      () => keyringFromEnv(value),
      (error) =>
        error instanceof EffectMatchError && !inspect(error).includes(secretText(1).slice(0, 12)),
    );
  }
});

test('a ring can come from a named environment variable, which must be set', () => {
  const env = 'EFFECTMATCH_TEST_KEYS';
  assertRefuses('ERR_EM_KEYRING_INVALID', () => openKeyring({ env }), 'not set');
  process.env[env] = '';
  assertRefuses('ERR_EM_KEYRING_INVALID', () => openKeyring({ env }), 'empty');
  process.env[env] = `one:${secretText(1)}`;
  assert.equal(openKeyring({ env }).current, 'one');
  delete process.env[env];
});

test('neither inspection nor JSON nor string conversion shows a secret or a derived key', () => {
  const ring = keyringFromEnv(`one:${secretText(1)}`);
  const derived = ring.derive('one', 'claim')?.export();
  assert.ok(derived);
  const shown = [
    inspect(ring, { depth: 10, showHidden: true, getters: true }),
    inspect({ nested: [ring] }, { depth: 10, showHidden: true }),
    JSON.stringify(ring),
    String(ring),
    JSON.stringify(Object.entries(ring)),
    inspect(createSealer(ring), { depth: 10, showHidden: true }),
  ];
  for (const text of shown) {
    for (const bytes of [Buffer.alloc(32, 1), derived]) {
      for (const form of [
        bytes.toString('hex').slice(0, 16),
        bytes.toString('base64').slice(0, 12),
        inspect(bytes).slice(8, 30),
      ]) {
        assert.ok(!text.includes(form), text);
      }
    }
  }
  assert.ok(shown[0]?.includes('one'), 'the id is shown, so the check looked at something');
});

test('a ring made in the process keeps the same rules as one from a file', () => {
  const secret = new Uint8Array(32);
  for (const length of [0, 16, 31, 33, 64]) {
    const short = () => new Keyring([{ id: 'one', secret: new Uint8Array(length) }]);
    assertRefuses('ERR_EM_KEYRING_INVALID', short, `${length} bytes`);
  }
  assertRefuses('ERR_EM_KEYRING_INVALID', () => new Keyring([]), 'no key');
  assertRefuses(
    'ERR_EM_KEYRING_INVALID',
    () => new Keyring([{ id: 'a:b', secret }]),
    'an id with a colon',
  );
});

test('a ring does not change when its maker changes the bytes it was made from', () => {
  const secret = new Uint8Array(32).fill(1);
  const ring = new Keyring([{ id: 'one', secret }]);
  secret.fill(2);
  const untouched = new Keyring([{ id: 'one', secret: new Uint8Array(32).fill(1) }]);
  assert.deepEqual(
    ring.derive('one', 'claim')?.export(),
    untouched.derive('one', 'claim')?.export(),
  );
});

/** Root may touch everything, so as root the call runs as another user, who is given the paths. */
function asOrdinaryUser(paths: readonly string[], call: () => void): void {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) {
    for (const path of paths) fs.chownSync(path, 65534, 65534);
    process.seteuid?.(65534);
  }
  try {
    call();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

/**
 * A process that runs the script with `openKeyring` at hand; killed if it does not end by itself.
 */
function startChild(script: string, args: readonly string[]) {
  const module = new URL('../../src/crypto/keyring.ts', import.meta.url).href;
  const source = `const { openKeyring } = await import('${module}');${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source, ...args], {
    timeout: 10_000,
  });
  child.stderr.pipe(process.stderr);
  return child;
}
