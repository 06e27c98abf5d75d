// Goal: a license counts only with a signature by the very key it names, and keys have one meaning
// however written. Method: RFC 8032 values, golden vectors with every bit flipped, the curve's weak
// points computed here.
import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import {
  formatPrivateKey,
  keyId,
  parsePrivateKey,
  parsePublicKey,
} from '../../src/crypto/approver-key.ts';
import { parseIssuerKey } from '../../src/crypto/issuer-key.ts';
import { parseSignedLicense, signLicense, verifyLicense } from '../../src/crypto/signature.ts';
import { type License, licenseRecord, type SignedLicense } from '../../src/protocol/license.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import { derivations, keys, vectors } from '../vectors/load.ts';
import { assertRefuses } from './mutants.ts';

const [vector] = vectors.filter(({ kind }) => kind === 'license');
assert.ok(vector?.signature);
const license = licenseRecord.parse(vector.record);
const approved = approvedRecord.parse(vectors.find(({ kind }) => kind === 'approved')?.record);
const signed: SignedLicense = { license, approved, signature: vector.signature };
const publicKey = derivations.approverKey.publicKey;
const signature = Buffer.from(vector.signature, 'base64url');
const withSignature = (text: string): SignedLicense => ({ ...signed, signature: text });
const hexKey = (hex: string) => `ed25519:${Buffer.from(hex, 'hex').toString('base64url')}`;

test('keys have the values of RFC 8032, section 7.1, TEST 1', () => {
  const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
  const point = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
  const { publicKey } = parsePrivateKey(
    `ed25519-private:${Buffer.from(seed, 'hex').toString('base64url')}`,
  );
  assert.equal(publicKey.text, hexKey(point));
});

test('a public key is the same key as one line, without prefix and as PEM', () => {
  const { key } = parsePublicKey(publicKey);
  const pem = key.export({ format: 'pem', type: 'spki' }) as string;
  for (const form of [publicKey, publicKey.slice('ed25519:'.length), pem, `\n${pem}\n`]) {
    assert.equal(keyId(form), derivations.approverKey.id);
    assert.ok(verifyLicense([parseIssuerKey(form)], signed));
  }
});

test('a private key is the same key as one line and as PEM, and its one-line form reads back', () => {
  const pair = generateKeyPairSync('ed25519');
  const pem = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  const line = formatPrivateKey(pair.privateKey);
  assert.match(line, /^ed25519-private:[A-Za-z0-9_-]{43}$/);
  assert.equal(parsePrivateKey(line).publicKey.id, parsePrivateKey(pem).publicKey.id);
});

test('what is not an Ed25519 public key is refused, a private key above all', () => {
  const pair = generateKeyPairSync('ed25519');
  const bad = [
    '',
    'ed25519:',
    `${publicKey}=`,
    publicKey.slice(0, -1),
    `${publicKey}A`,
    ` ${publicKey}`,
    `ED25519:${publicKey.slice(8)}`,
    `ed25519:${publicKey}`,
    `ed25519-private:${publicKey.slice(8)}`,
    pair.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
    generateKeyPairSync('x25519').publicKey.export({ format: 'pem', type: 'spki' }) as string,
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
      format: 'pem',
      type: 'spki',
    }) as string,
    '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n',
  ];
  for (const text of bad) assertRefuses('ERR_EM_CONFIG_INVALID', () => parsePublicKey(text), text);
});

test('what is not an Ed25519 private key is refused without showing it', () => {
  const seed = Buffer.alloc(32, 7).toString('base64url');
  const other = generateKeyPairSync('x25519').privateKey.export({
    format: 'pem',
    type: 'pkcs8',
  }) as string;
  for (const text of [
    '',
    seed,
    `ed25519-private:${seed}A`,
    `ed25519-private:${seed.slice(1)}`,
    publicKey,
    other,
  ]) {
    assertRefuses('ERR_EM_CONFIG_INVALID', () => parsePrivateKey(text), 'a bad private key');
    assert.throws(
      () => parsePrivateKey(text),
      (error: Error) => !error.message.includes(seed.slice(0, 12)) && error.cause === undefined,
    );
  }
});

// y of the points whose order divides 8, and the same y written with p added where that fits into
// 255 bits.
const WEAK = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
];

test('weak keys, under which signatures can be made without a secret, are refused with either sign', () => {
  for (const hex of WEAK) {
    const bytes = Buffer.from(hex, 'hex');
    for (const sign of [0x00, 0x80]) {
      const point = Buffer.from(bytes);
      point.writeUInt8(bytes.readUInt8(31) | sign, 31);
      assertRefuses(
        'ERR_EM_CONFIG_INVALID',
        () => parsePublicKey(hexKey(point.toString('hex'))),
        hex,
      );
    }
  }
});

test('the weak keys are all there are: exactly the eight points whose eightfold is the neutral element', () => {
  const p = 2n ** 255n - 19n;
  const power = (base: bigint, exponent: bigint): bigint =>
    exponent === 0n
      ? 1n
      : (power((base * base) % p, exponent >> 1n) * (exponent & 1n ? base : 1n)) % p;
  const invert = (value: bigint) => power(((value % p) + p) % p, p - 2n);
  const d = ((p - 121665n) * invert(121666n)) % p;
  const double = ([x, y]: readonly [bigint, bigint]): readonly [bigint, bigint] => {
    const product = (d * x * x * y * y) % p;
    return [(2n * x * y * invert(1n + product)) % p, ((y * y + x * x) * invert(1n - product)) % p];
  };
  const points = new Set<string>();
  for (const hex of WEAK) {
    const y = BigInt(`0x${Buffer.from(hex, 'hex').reverse().toString('hex')}`) % p;
    const square = ((y * y - 1n + p) * invert(d * y * y + 1n)) % p;
    const root = power(square, (p + 3n) / 8n);
    const x = (root * root - square) % p === 0n ? root : (root * power(2n, (p - 1n) / 4n)) % p;
    assert.equal((x * x - square) % p, 0n, `${hex} is a point of the curve`);
    assert.deepEqual(double(double(double([x, y]))), [0n, 1n], `${hex} is of small order`);
    for (const side of [x, (p - x) % p]) points.add(`${side},${y}`);
  }
  assert.equal(points.size, 8);
});

test('a signature holds for the key that the license names, wherever it stands in the list', () => {
  const other = parsePrivateKey(formatPrivateKey(generateKeyPairSync('ed25519').privateKey));
  assert.ok(verifyLicense([parseIssuerKey(publicKey)], signed));
  assert.ok(
    verifyLicense([parseIssuerKey(other.publicKey.text), parseIssuerKey(publicKey)], signed),
  );
  assert.equal(verifyLicense([parseIssuerKey(other.publicKey.text)], signed), false);
  assert.equal(verifyLicense([], signed), false);
  const theirs = withSignature(signLicense(other.key, license));
  assert.equal(
    verifyLicense([parseIssuerKey(publicKey), parseIssuerKey(other.publicKey.text)], theirs),
    false,
    'the license names another key',
  );
});

test('one flipped bit anywhere in a signature is refused', () => {
  for (let bit = 0; bit < 512; bit += 1) {
    const damaged = Buffer.from(signature);
    damaged.writeUInt8(signature.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    assert.equal(
      verifyLicense([parseIssuerKey(publicKey)], withSignature(damaged.toString('base64url'))),
      false,
      `bit ${bit}`,
    );
  }
});

test('the second signature that anyone can compute from a valid one is refused', () => {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`);
  for (const multiple of [1n, 2n, 8n]) {
    const shifted = s + multiple * order;
    const tail = Buffer.from(shifted.toString(16).padStart(64, '0'), 'hex').reverse();
    const twin = Buffer.concat([signature.subarray(0, 32), tail]);
    assert.equal(twin.length, 64);
    assert.equal(
      verifyLicense([parseIssuerKey(publicKey)], withSignature(twin.toString('base64url'))),
      false,
    );
  }
});

test('a signature that is not 64 bytes in canonical base64url is no signature, and nothing is thrown', () => {
  const text = vector.signature ?? '';
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(text.at(-1) ?? '');
  const stray = text.slice(0, -1) + alphabet[last ^ 1];
  assert.deepEqual(
    Buffer.from(stray, 'base64url'),
    signature,
    'the same bytes, written in another way',
  );
  const bad: readonly unknown[] = [
    '',
    stray,
    `${text}==`,
    `${text}A`,
    text.slice(0, -1),
    ` ${text}`,
    `${text}\n`,
    signature.toString('hex'),
    signature.subarray(0, 63).toString('base64url'),
    Buffer.concat([signature, Buffer.alloc(1)]).toString('base64url'),
    Buffer.alloc(64).toString('base64url'),
    undefined,
    null,
    64,
    {},
    signature,
  ];
  for (const value of bad) {
    assert.equal(
      verifyLicense([parseIssuerKey(publicKey)], withSignature(value as string)),
      false,
      String(value),
    );
    assertRefusedUnlessZero(value);
  }
});

function assertRefusedUnlessZero(value: unknown): void {
  if (value === Buffer.alloc(64).toString('base64url')) return;
  const input = value === undefined ? { license, approved } : { ...signed, signature: value };
  assertRefuses('ERR_EM_RECORD_INVALID', () => parseSignedLicense(input), String(value));
}

test('a changed license, however little, has no valid signature', () => {
  const changes: readonly Partial<License>[] = [
    { issuer: 'ap-teams' },
    { nonce: 'invoice-4711-first-trz' },
    { expiresAt: '2026-03-01T08:10:00.001Z' },
    { notBefore: '2026-03-01T07:59:59.999Z' },
    { planRevision: 2 },
    { occurrences: 2 },
    { continuations: [] },
    { continuations: ['reconcile', 'more'] },
    { adapter: 'books2' },
    { source: 'contract' },
    { action: license.frame },
    { approved: license.frame },
    { task: 'invoice-4712' },
  ];
  for (const change of changes) {
    const changed = { ...signed, license: { ...license, ...change } };
    assert.equal(
      verifyLicense([parseIssuerKey(publicKey)], changed),
      false,
      JSON.stringify(change),
    );
  }
});

test('a license is not the signature of another kind of text: the label is part of what is signed', () => {
  const { key } = parsePublicKey(publicKey);
  const bytes = (prefix: string) => Buffer.from(`${prefix}${vector.text}`);
  assert.ok(verify(null, bytes('effectmatch/license/v1\n'), key, signature));
  for (const prefix of [
    '',
    'effectmatch/license/v2\n',
    'effectmatch/claim/v1\n',
    'effectmatch/license/v1',
  ]) {
    assert.equal(verify(null, bytes(prefix), key, signature), false);
  }
  assert.equal(keys.approverSeed.length, 64);
});

test('a signed license is read from an object and from JSON text, pretty or not', () => {
  for (const input of [signed, JSON.stringify(signed), JSON.stringify(signed, null, 2)]) {
    assert.deepEqual(parseSignedLicense(input), signed);
  }
});

test('anything but exactly license, approved and signature is refused', () => {
  const { approved: _, ...rest } = signed;
  const text = JSON.stringify(signed);
  const bad: readonly unknown[] = [
    undefined,
    null,
    1,
    [],
    [signed],
    {},
    '',
    'null',
    '[]',
    '{',
    text.slice(1),
    rest,
    { ...signed, extra: 1 },
    { ...signed, license: null },
    { ...signed, license: { ...license, extra: 1 } },
    { ...signed, license: { ...license, version: 2 } },
    { ...signed, approved: { ...approved, extra: 1 } },
    { ...signed, approved: [] },
    { ...signed, [Symbol('extra')]: 1 },
    Object.create(signed),
    `${text.slice(0, -1)},"signature":${JSON.stringify(signed.signature)}}`,
    text.replace('"occurrences":1', '"occurrences":9,"occurrences":1'),
    text.replace('"adapter":"books"', '"adapter":"other","\\u0061dapter":"books"'),
  ];
  for (const input of bad)
    assertRefuses('ERR_EM_RECORD_INVALID', () => parseSignedLicense(input), String(input));
});

test('hostile keys and values in a signed license are refused, and accessors are not called', () => {
  const text = JSON.stringify(signed);
  const polluting = text.replace('"license":{', '"license":{"__proto__":{"polluted":true},');
  assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => parseSignedLicense(polluting), 'text');
  assertRefuses(
    'ERR_EM_CANON_UNSUPPORTED',
    () => parseSignedLicense(JSON.parse(polluting)),
    'object',
  );
  const top = text.replace('{"license"', '{"__proto__":{"license":1},"license"');
  assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => parseSignedLicense(top), 'top level, text');
  assertRefuses(
    'ERR_EM_RECORD_INVALID',
    () => parseSignedLicense(JSON.parse(top)),
    'top level, object',
  );
  assert.equal(Reflect.get({}, 'polluted'), undefined);
  const calls: string[] = [];
  const trap = Object.defineProperty({ ...signed }, 'license', {
    get: () => calls.push('license'),
    enumerable: true,
  });
  assertRefuses('ERR_EM_RECORD_INVALID', () => parseSignedLicense(trap), 'accessor');
  assert.deepEqual(calls, []);
  const deep = `${'{"license":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
  assertRefuses('ERR_EM_CANON_UNSUPPORTED', () => parseSignedLicense(deep), 'depth bomb');
  const large = { ...signed, license: { ...license, task: 'x'.repeat(64 * 1024) } };
  assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => parseSignedLicense(large), 'large license');
});

test('colons and quotes inside of strings are not mistaken for structure when keys are counted', () => {
  for (const key of [{ 'c:"d': '\\":\\' }, { z: '"', a: ':::' }, { z: '\\', a: ':"' }]) {
    const tricky = { ...approved, effects: [], requires: [{ target: 'a:b', key, row: null }] };
    const text = JSON.stringify({ ...signed, approved: tricky });
    assert.deepEqual(parseSignedLicense(text).approved, tricky);
  }
});
