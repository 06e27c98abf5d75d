// Goal: an envelope is verified only if a trusted key signed exactly these bytes and they say one
// consistent thing. Method: golden envelopes with one bit, field, key or encoding changed;
// statements signed by hand that lie.
import assert from 'node:assert/strict';
import { createPublicKey, hash, sign } from 'node:crypto';
import { test } from 'node:test';
import {
  type Envelope,
  encodePreAuthentication,
  MAX_ENVELOPE_BYTES,
  signEnvelope,
} from '../../src/crypto/dsse.ts';
import { Keyring } from '../../src/crypto/keyring.ts';
import { createSigner, verifyReceipt } from '../../src/crypto/receipt.ts';
import { parseReceiptKeys, receiptKeys, signingKey } from '../../src/crypto/receipt-key.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { statementRecord } from '../../src/protocol/receipt.ts';
import type { Digest } from '../../src/protocol/record.ts';
import { shadowRecord } from '../../src/protocol/shadow.ts';
import { terminalRecord } from '../../src/protocol/terminal.ts';
import { envelopes, vectorKeyring } from '../vectors/load.ts';
import { assertRefuses } from './mutants.ts';

const ring = vectorKeyring('k-test');
const trusted = receiptKeys(ring).map(({ publicKey }) => publicKey);
const stranger = new Keyring([{ id: 'k-test', secret: new Uint8Array(32).fill(7) }]);
const [first, , , diverging] = envelopes;
assert.ok(first !== undefined && diverging !== undefined);
const terminal = terminalRecord.parse(first.record);
const good = first.envelope;
const [signature] = good.signatures;
assert.ok(signature !== undefined);

/** Signs any text with the deployment's own key, around all of our checks. */
const signText = (text: string): Envelope => signEnvelope(signingKey(ring), text);
const statementOf = (envelope: Envelope) =>
  JSON.parse(Buffer.from(envelope.payload, 'base64').toString());

function flipBits(base64: string): string[] {
  const bytes = Buffer.from(base64, 'base64');
  return Array.from(bytes, (byte, index) => {
    const damaged = Buffer.from(bytes);
    damaged[index] = byte ^ (1 << (index % 8));
    return damaged.toString('base64');
  });
}

test('the encoding that is signed is that of the DSSE specification', () => {
  // The example of the specification, and one where length in bytes and in characters differ.
  assert.equal(
    encodePreAuthentication('http://example.com/HelloWorld', Buffer.from('hello world')).toString(),
    'DSSEv1 29 http://example.com/HelloWorld 11 hello world',
  );
  assert.equal(encodePreAuthentication('é', Buffer.from('€ ')).toString(), 'DSSEv1 2 é 4 € ');
  assert.equal(encodePreAuthentication('', Buffer.alloc(0)).toString(), 'DSSEv1 0  0 ');
});

test('one flipped bit in any byte of payload or signature is not verified, in any envelope', () => {
  let tried = 0;
  for (const { name, publicKey, envelope } of envelopes) {
    for (const payload of flipBits(envelope.payload)) {
      assertRefuses(
        'ERR_EM_SIGNATURE_INVALID',
        () => verifyReceipt([publicKey], { ...envelope, payload }),
        name,
      );
      tried += 1;
    }
    const [only] = envelope.signatures;
    assert.ok(only);
    for (const sig of flipBits(only.sig)) {
      const damaged = { ...envelope, signatures: [{ ...only, sig }] };
      assertRefuses('ERR_EM_SIGNATURE_INVALID', () => verifyReceipt([publicKey], damaged), name);
      tried += 1;
    }
  }
  assert.ok(tried > 5000);
});

test('a changed key id, another deployment’s key, and no key at all are not verified', () => {
  const renamed = {
    ...good,
    signatures: [{ ...signature, keyid: `0${signature.keyid.slice(1)}` }],
  };
  assertRefuses('ERR_EM_SIGNATURE_INVALID', () => verifyReceipt(trusted, renamed), 'renamed');
  const foreign = createSigner(stranger).receipt(terminal, 2);
  assertRefuses('ERR_EM_SIGNATURE_INVALID', () => verifyReceipt(trusted, foreign), 'foreign');
  assertRefuses('ERR_EM_SIGNATURE_INVALID', () => verifyReceipt([], good), 'no key');
  // The stranger claims our key id: the id is a hint, the signature decides.
  const posing = {
    ...foreign,
    signatures: [{ keyid: signature.keyid, sig: foreign.signatures[0]?.sig ?? '' }],
  };
  assertRefuses('ERR_EM_SIGNATURE_INVALID', () => verifyReceipt(trusted, posing), 'posing');
  assertRefuses(
    'ERR_EM_CONFIG_INVALID',
    () => verifyReceipt(['ed25519:AAAA'], good),
    'no key of ours',
  );
});

test('the signature of one payload does not fit another payload of the same key', () => {
  const swapped = { ...good, payload: diverging.envelope.payload };
  assertRefuses('ERR_EM_SIGNATURE_INVALID', () => verifyReceipt(trusted, swapped), 'swapped');
});

test('what is not exactly an envelope is refused before any signature is looked at', () => {
  const { payloadType, payload, signatures } = good;
  const { sig, keyid } = signature;
  const cases: Record<string, unknown> = {
    null: null,
    'a number': 7,
    'a list': [good],
    'not JSON': '{"payload',
    'an extra field': { ...good, extra: 1 },
    'an own __proto__ field': JSON.parse(
      JSON.stringify(good).replace('{', '{"__proto__":{"polluted":1},'),
    ),
    'no payload type': { payload, signatures },
    'no payload': { payloadType, signatures },
    'no signatures': { payloadType, payload },
    'empty signatures': { ...good, signatures: [] },
    'signatures that are no list': { ...good, signatures: signature },
    'seventeen signatures': {
      ...good,
      signatures: Array.from({ length: 17 }, (_, i) => ({ keyid: `${i}`, sig })),
    },
    'the same signature twice': { ...good, signatures: [signature, signature] },
    'two signatures of one key': { ...good, signatures: [signature, { keyid, sig: 'AAAA' }] },
    'a signature with an extra field': { ...good, signatures: [{ ...signature, cert: '' }] },
    'a signature without key id': { ...good, signatures: [{ sig }] },
    'a signature that is text': { ...good, signatures: [JSON.stringify(signature)] },
    'a key id that is a number': { ...good, signatures: [{ keyid: 1, sig }] },
    'a long key id': { ...good, signatures: [{ keyid: 'x'.repeat(257), sig }] },
    'an empty signature': { ...good, signatures: [{ keyid, sig: '' }] },
    'a signature that is not base64': {
      ...good,
      signatures: [{ keyid, sig: `${sig.slice(0, -3)}*==` }],
    },
    'an empty payload': { ...good, payload: '' },
    'a payload cut off inside base64': { ...good, payload: payload.slice(0, -1) },
    'a payload without its padding': {
      ...good,
      payload: Buffer.from('{"a"').toString('base64').replaceAll('=', ''),
    },
    'a payload with stray bits': { ...good, payload: 'QUJDRB==' },
    'a payload with spaces': { ...good, payload: ` ${payload}` },
    'a payload of two alphabets': { ...good, payload: '-+AA' },
    'a payload that is a list': { ...good, payload: [payload] },
    'a payload that is null': { ...good, payload: null },
    'a payload that is a number': { ...good, payload: 7 },
    'a key twice': JSON.stringify(good).replace('{', `{"payload":${JSON.stringify(payload)},`),
    'another payload type': { ...good, payloadType: 'application/json' },
    'a payload type in capitals': { ...good, payloadType: 'application/vnd.in-toto+JSON' },
    'a payload type with a parameter': { ...good, payloadType: `${payloadType};v=1` },
    'no text as payload type': { ...good, payloadType: null },
  };
  for (const [what, input] of Object.entries(cases)) {
    assertRefuses('ERR_EM_RECORD_INVALID', () => verifyReceipt(trusted, input), what);
    if (typeof input === 'object' && what !== 'an own __proto__ field') {
      assertRefuses(
        'ERR_EM_RECORD_INVALID',
        () => verifyReceipt(trusted, JSON.stringify(input)),
        `${what}, as text`,
      );
    }
  }
  const getter = Object.defineProperty({ ...good }, 'payload', {
    get: () => assert.fail('called'),
    enumerable: true,
  });
  assertRefuses('ERR_EM_RECORD_INVALID', () => verifyReceipt(trusted, getter), 'an accessor');
});

test('a truncated signature of a trusted key is not verified', () => {
  for (const bytes of [1, 63, 65, 128]) {
    const sig = Buffer.concat([Buffer.from(signature.sig, 'base64'), Buffer.alloc(64)])
      .subarray(0, bytes)
      .toString('base64');
    const damaged = { ...good, signatures: [{ ...signature, sig }] };
    assertRefuses(
      'ERR_EM_SIGNATURE_INVALID',
      () => verifyReceipt(trusted, damaged),
      `${bytes} bytes`,
    );
  }
});

test('an oversized envelope is refused, as text and as an object, before it is decoded', () => {
  const large = { ...good, payload: 'A'.repeat(MAX_ENVELOPE_BYTES + 4) };
  assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => verifyReceipt(trusted, large), 'object');
  assertRefuses(
    'ERR_EM_RECORD_TOO_LARGE',
    () => verifyReceipt(trusted, JSON.stringify(large)),
    'text',
  );
  assertRefuses(
    'ERR_EM_RECORD_TOO_LARGE',
    () => verifyReceipt(trusted, ' '.repeat(MAX_ENVELOPE_BYTES + 1)),
    'space',
  );
  const noBase64 = { ...good, payload: '*'.repeat(MAX_ENVELOPE_BYTES + 1) };
  assertRefuses(
    'ERR_EM_RECORD_TOO_LARGE',
    () => verifyReceipt(trusted, noBase64),
    'not looked into',
  );
  // Room for signatures is no room for a larger payload, whoever signed it.
  const unsigned = {
    ...good,
    payload: Buffer.alloc(statementRecord.maxBytes + 1).toString('base64'),
  };
  assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => verifyReceipt(trusted, unsigned), 'payload alone');
  const signedButLarge = signText(`"${'x'.repeat(1024 * 1024 + 8192)}"`);
  assertRefuses('ERR_EM_RECORD_TOO_LARGE', () => verifyReceipt(trusted, signedButLarge), 'signed');
});

test('what is verified names the key that vouches for it, and is a receipt or a checkpoint by its own type', () => {
  assert.equal(verifyReceipt(trusted, good).keyid, signature.keyid);
  const checkpoint = {
    version: 1 as const,
    throughSeq: 3,
    rows: 3,
    chain: 'a'.repeat(64) as Digest,
    at: terminal.recordedAt,
  };
  assert.deepEqual(verifyReceipt(trusted, createSigner(ring).checkpoint(checkpoint)), {
    kind: 'checkpoint',
    keyid: signature.keyid,
    checkpoint,
  });
});

test('a signature by somebody else beside a good one changes nothing, and a bad one of a trusted key refuses all', () => {
  const other = { keyid: 'SHA256:somebody', sig: Buffer.alloc(72, 1).toString('base64') };
  const beside = { ...good, signatures: [other, signature] };
  assert.deepEqual(verifyReceipt(trusted, beside), verifyReceipt(trusted, good));
  assertRefuses(
    'ERR_EM_SIGNATURE_INVALID',
    () => verifyReceipt(trusted, { ...good, signatures: [other] }),
    'alone',
  );
  const older = receiptKeys(ring).find(({ generation }) => generation === 'k-older')?.keyid;
  const doubted = { ...good, signatures: [signature, { keyid: older, sig: signature.sig }] };
  assertRefuses('ERR_EM_SIGNATURE_INVALID', () => verifyReceipt(trusted, doubted), 'doubted');
});

test('the URL-safe alphabet is the same envelope, because DSSE lets a verifier accept both', () => {
  const urlSafe = (text: string) => text.replaceAll('+', '-').replaceAll('/', '_');
  for (const { publicKey, envelope } of envelopes) {
    const rewritten = {
      ...envelope,
      payload: urlSafe(envelope.payload),
      signatures: envelope.signatures.map(({ keyid, sig }) => ({ keyid, sig: urlSafe(sig) })),
    };
    assert.deepEqual(verifyReceipt([publicKey], rewritten), verifyReceipt([publicKey], envelope));
  }
});

test('a good signature does not make a statement acceptable that is malformed or contradicts itself', () => {
  const statement = statementOf(good);
  const { subject, predicate } = statement;
  const digest = 'f'.repeat(64);
  const rejected = statementOf(diverging.envelope).predicate;
  const lies: Record<string, unknown> = {
    'another statement type': { ...statement, _type: 'https://in-toto.io/Statement/v0.1' },
    'another predicate type': { ...statement, predicateType: 'urn:effectmatch:receipt:v2' },
    'the predicate type of a checkpoint': {
      ...statement,
      predicateType: 'urn:effectmatch:checkpoint:v1',
    },
    'an extra field': { ...statement, note: '' },
    'two subjects': { ...statement, subject: [...subject, ...subject] },
    'no subject': { ...statement, subject: [] },
    'another occurrence': {
      ...statement,
      subject: [{ ...subject[0], name: `occ_${'0'.repeat(40)}` }],
    },
    'another digest of the subject': {
      ...statement,
      subject: [{ ...subject[0], digest: { sha256: digest } }],
    },
    'a second digest': {
      ...statement,
      subject: [{ ...subject[0], digest: { ...subject[0].digest, sha1: '' } }],
    },
    'another digest of the terminal': { ...statement, predicate: { ...predicate, digest } },
    'another lineage': { ...statement, predicate: { ...predicate, lineage: digest } },
    'another terminal': { ...statement, predicate: { ...predicate, terminal: rejected.terminal } },
    'no position': { ...statement, predicate: { ...predicate, position: 0 } },
    'an extra field in the terminal': {
      ...statement,
      predicate: { ...predicate, terminal: { ...predicate.terminal, note: '' } },
    },
  };
  for (const [what, lie] of Object.entries(lies)) {
    assertRefuses(
      'ERR_EM_RECORD_INVALID',
      () => verifyReceipt(trusted, signText(canonical(lie))),
      what,
    );
  }
  const text = canonical(statement);
  for (const other of [
    `${text} `,
    `\ufeff${text}`,
    text.replace(':', ': '),
    '{}',
    'null',
    '[]',
    '"x"',
  ]) {
    assertRefuses(
      'ERR_EM_RECORD_INVALID',
      () => verifyReceipt(trusted, signText(other)),
      other.slice(0, 20),
    );
  }
  assert.equal(verifyReceipt(trusted, signText(text)).kind, 'receipt');
});

test('a terminal that no runtime would record is refused even when everything about it fits', () => {
  const early = { ...terminal, claimedAt: '2026-03-01T09:00:00.000Z' };
  const impossible = createSigner(ring).receipt(terminalRecord.parse(early), 2);
  assertRefuses(
    'ERR_EM_RECORD_INVALID',
    () => verifyReceipt(trusted, impossible),
    'consumed before the claim',
  );
});

test('a shadow is verified as a shadow, which is no receipt, and only if it is what its subject names', () => {
  const shadow = shadowRecord.parse({
    ...{
      version: 1,
      occurrence: `occ_${'5'.repeat(40)}`,
      basis: 'none',
      adapter: 'books',
      task: 'look',
    },
    ...{
      contract: '1'.repeat(64),
      observer: '2'.repeat(64),
      recordedAt: '2026-01-01T10:00:00.000Z',
    },
    ...{ would: 'commit', observed: '3'.repeat(64) },
  });
  const envelope = createSigner(ring).shadow(shadow, 7);
  const verified = verifyReceipt(trusted, envelope);
  assert.deepEqual(verified, { kind: 'shadow', keyid: signature.keyid, shadow, position: 7 });
  const statement = statementOf(envelope);
  const lies = {
    'another subject': {
      ...statement,
      subject: [{ ...statement.subject[0], name: `occ_${'6'.repeat(40)}` }],
    },
    'another digest': {
      ...statement,
      subject: [{ ...statement.subject[0], digest: { sha256: '4'.repeat(64) } }],
    },
    'called a receipt': { ...statement, predicateType: statementOf(good).predicateType },
  };
  for (const [what, lie] of Object.entries(lies)) {
    assertRefuses(
      'ERR_EM_RECORD_INVALID',
      () => verifyReceipt(trusted, signText(canonical(lie))),
      what,
    );
  }
});

test('payload bytes that are not UTF-8 are refused, although their signature fits', () => {
  const payload = Buffer.from([0x7b, 0xff, 0x7d]);
  const { keyid, key } = signingKey(ring);
  const sig = sign(null, encodePreAuthentication(good.payloadType, payload), key).toString(
    'base64',
  );
  const envelope = { ...good, payload: payload.toString('base64'), signatures: [{ keyid, sig }] };
  assertRefuses('ERR_EM_RECORD_INVALID', () => verifyReceipt(trusted, envelope), 'not UTF-8');
});

test('the subject’s digest is the plain SHA-256 of the terminal’s canonical text', () => {
  assert.equal(
    statementOf(good).subject[0].digest.sha256,
    hash('sha256', terminalRecord.text(terminal), 'hex'),
  );
});

test('after a rotation both keys are listed newest first, and a receipt of either generation is verified', () => {
  const secret = (byte: number) => new Uint8Array(32).fill(byte);
  const one = new Keyring([{ id: 'one', secret: secret(1) }]);
  const two = new Keyring([
    { id: 'two', secret: secret(2) },
    { id: 'one', secret: secret(1) },
  ]);
  const keys = receiptKeys(two);
  assert.deepEqual(
    keys.map(({ generation }) => generation),
    ['two', 'one'],
  );
  const [old, fresh] = [
    createSigner(one).receipt(terminal, 2),
    createSigner(two).receipt(terminal, 2),
  ];
  assert.equal(old.signatures[0]?.keyid, keys[1]?.keyid);
  assert.equal(fresh.signatures[0]?.keyid, keys[0]?.keyid);
  for (const envelope of [old, fresh]) assert.equal(verifyReceipt(keys, envelope).kind, 'receipt');
  assertRefuses(
    'ERR_EM_SIGNATURE_INVALID',
    () => verifyReceipt([keys[0]?.publicKey ?? ''], old),
    'the new key alone',
  );
});

test('the signing key is derived apart from every seal, and no output shows the seed', () => {
  const seed = ring.derive('k-test', 'receipt-key/v1')?.export();
  assert.ok(seed);
  const shown = JSON.stringify([good, receiptKeys(ring)]);
  for (const encoding of ['hex', 'base64', 'base64url'] as const)
    assert.ok(!shown.includes(seed.toString(encoding)));
  for (const purpose of ['terminal', 'receipt', 'statement', 'checkpoint', 'value']) {
    assert.notDeepEqual(ring.derive('k-test', purpose)?.export(), seed);
  }
});

test('a file of keys holds one key per line with comments, or one PEM; anything else is refused', () => {
  const [one = '', two = ''] = trusted;
  const listed = parseReceiptKeys(`# payments\n${one}\r\n\n  ${two}  \n`).map(
    ({ publicKey }) => publicKey,
  );
  assert.deepEqual(listed, [one, two]);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: one.slice('ed25519:'.length) };
  const pem = createPublicKey({ key: jwk, format: 'jwk' })
    .export({ type: 'spki', format: 'pem' })
    .toString();
  assert.equal(parseReceiptKeys(pem)[0]?.publicKey, one);
  for (const text of [
    '',
    '# none',
    `${one} ${two}`,
    'ed25519-private:AAAA',
    `${one}\n`.repeat(65),
  ]) {
    assertRefuses('ERR_EM_CONFIG_INVALID', () => parseReceiptKeys(text), text.slice(0, 20));
  }
});
