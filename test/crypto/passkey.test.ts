// Goal: a passkey's signature counts only if that passkey made it, for exactly this license, on a
// page of its origin, with the user present and verified. Method: golden vectors that were computed
// outside this package, and an authenticator in memory that signs what a real one would not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeDecline, writeResolution } from '../../src/crypto/decision.ts';
import { digestRecord, digestText } from '../../src/crypto/digest.ts';
import { issuerKeyId, parseIssuerKey } from '../../src/crypto/issuer-key.ts';
import { parseSignedLicense, verifyLicense } from '../../src/crypto/signature.ts';
import { verifyDecline, verifyResolution } from '../../src/crypto/signed-decision.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { declineRecord } from '../../src/protocol/decline.ts';
import { type License, licenseRecord } from '../../src/protocol/license.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import { type Resolution, resolutionRecord } from '../../src/protocol/resolution.ts';
import { passkeyDecisions, passkeys, vectors } from '../vectors/load.ts';
import { createAuthenticator, ORIGIN, type Said, UP, UV } from './authenticator.ts';

const approved = approvedRecord.parse(vectors.find(({ kind }) => kind === 'approved')?.record);
const template = vectors.find(({ kind }) => kind === 'license')?.record as License;

for (const { name, publicKey, license: record, signature } of passkeys) {
  test(`vector ${name} verifies, and no other key, license or byte does`, () => {
    const license = licenseRecord.parse(record);
    assert.equal(issuerKeyId(publicKey), license.key);
    const signed = parseSignedLicense({ license, approved, signature });
    assert.ok(verifyLicense([parseIssuerKey(publicKey)], signed));
    assert.ok(
      !verifyLicense(
        passkeys.map((vector) => parseIssuerKey(vector.publicKey.replace('@', 'x@'))),
        signed,
      ),
    );
    const other = { ...license, occurrences: license.occurrences + 1 };
    assert.ok(!verifyLicense([parseIssuerKey(publicKey)], { ...signed, license: other }));
    for (const part of [1, 2, 3]) {
      const parts = signature.split('.');
      const bytes = Buffer.from(parts[part] ?? '', 'base64url');
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
      parts[part] = bytes.toString('base64url');
      assert.ok(
        !verifyLicense([parseIssuerKey(publicKey)], { ...signed, signature: parts.join('.') }),
      );
    }
  });
}

for (const { name, publicKey, signature, decline, resolution } of passkeyDecisions) {
  test(`vector ${name} verifies, and with another word it does not`, () => {
    const verify = (change: object) =>
      decline === undefined
        ? verifyResolution(
            [publicKey],
            resolutionRecord.parse({ ...resolution, ...change, signature }),
          )
        : verifyDecline([publicKey], declineRecord.parse({ ...decline, ...change, signature }));
    assert.ok(verify({}));
    assert.ok(!verify({ at: '2026-03-01T09:30:00.001Z' }));
  });
}

function licenseFor(publicKey: string): License {
  return { ...template, key: issuerKeyId(publicKey) };
}

const REFUSED: readonly (readonly [what: string, said: Said])[] = [
  ['made for registering a passkey', { type: 'webauthn.create' }],
  ['of no type', { type: undefined }],
  ['for another challenge', { challenge: Buffer.alloc(32, 1).toString('base64url') }],
  ['for the same challenge with padding', { challenge: `${Buffer.alloc(32).toString('base64')}` }],
  ['from another page', { origin: 'https://approve.example.com.evil.example' }],
  ['from another port', { origin: 'https://approve.example.com:8443' }],
  ['from http', { origin: 'http://approve.example.com' }],
  ['from a page in a frame of another', { crossOrigin: true }],
  ['from a page whose frame is named', { topOrigin: 'https://evil.example' }],
  ['for another relying party', { host: 'example.com' }],
  ['without the user', { flags: UV }],
  ['without verifying the user', { flags: UP }],
  ['with no flags', { flags: 0 }],
];

for (const algorithm of ['es256', 'eddsa'] as const) {
  test(`${algorithm}: an assertion counts for its license alone`, () => {
    const { publicKey, assert: sign } = createAuthenticator(algorithm);
    const license = licenseFor(publicKey);
    const digest = digestRecord(licenseRecord, license);
    const signed = { license, approved, signature: sign(digest) };
    assert.ok(verifyLicense([parseIssuerKey(publicKey)], parseSignedLicense(signed)));
    assert.ok(
      verifyLicense([parseIssuerKey(publicKey)], {
        ...signed,
        signature: sign(digest, { flags: 0x1d }),
      }),
    );
    for (const [what, said] of REFUSED) {
      const signature = sign(digest, said);
      assert.ok(
        !verifyLicense([parseIssuerKey(publicKey)], parseSignedLicense({ ...signed, signature })),
        what,
      );
    }
    const replayed = { ...license, nonce: 'another-nonce-entirely' };
    assert.ok(!verifyLicense([parseIssuerKey(publicKey)], { ...signed, license: replayed }));
  });
}

test('a passkey signs declines and decisions, each for what it says alone', () => {
  const { publicKey, assert: sign } = createAuthenticator();
  const decider = { name: 'alice', key: issuerKeyId(publicKey), nowMs: 0 };
  const request = `req_${'0'.repeat(40)}`;
  const decline = writeDecline(decider, {
    ...{ request, generation: 1, reason: 'no' },
    approved: digestRecord(approvedRecord, approved),
  });
  const challenge = digestText(declineRecord.domain, canonical(decline));
  const declined = declineRecord.parse({ ...decline, signature: sign(challenge) });
  assert.ok(verifyDecline([publicKey], declined));
  assert.ok(!verifyDecline([publicKey], { ...declined, reason: 'yes' }));
  assert.ok(!verifyDecline([createAuthenticator().publicKey], declined));
  const attempt = vectors.find(({ kind }) => kind === 'resolution')?.record as Resolution;
  const decision = { ...attempt, evidence: 'the statement of the bank' };
  const found = writeResolution(decider, decision);
  const seen = digestText(resolutionRecord.domain, canonical(found));
  const resolved = resolutionRecord.parse({ ...found, signature: sign(seen) });
  assert.ok(verifyResolution([publicKey], resolved));
  assert.ok(!verifyResolution([publicKey], { ...resolved, finding: 'happened-otherwise' }));
  // One that was made to sign in, or for another record, has another challenge.
  const other = { ...resolved, signature: sign(challenge) };
  assert.ok(!verifyResolution([publicKey], other));
});

test('a key does not verify signatures of another algorithm, also under its own name', () => {
  const [es256, eddsa] = [createAuthenticator('es256'), createAuthenticator('eddsa')];
  for (const [mine, theirs] of [
    [es256, eddsa],
    [eddsa, es256],
  ] as const) {
    const license = licenseFor(mine.publicKey);
    const signature = theirs.assert(digestRecord(licenseRecord, license));
    assert.ok(!verifyLicense([parseIssuerKey(mine.publicKey)], { license, approved, signature }));
  }
  const plain = 'A'.repeat(86);
  const license = licenseFor(es256.publicKey);
  assert.ok(
    !verifyLicense([parseIssuerKey(es256.publicKey)], { license, approved, signature: plain }),
  );
});

test('signatures of other forms are refused before anything is verified', () => {
  const { publicKey, assert: sign } = createAuthenticator();
  const license = licenseFor(publicKey);
  const signature = sign(digestRecord(licenseRecord, license));
  const parts = signature.split('.');
  const malformed = [
    parts.slice(0, 3).join('.'),
    `${signature}.AA`,
    `${signature}=`,
    signature.replace('passkey', 'Passkey'),
    `passkey.AAAA.${parts[2]}.${parts[3]}`,
    `passkey.${parts[1]}.${'A'.repeat(6000)}.${parts[3]}`,
    `passkey.${parts[1]}.${parts[2]}.`,
  ];
  for (const text of malformed) {
    const document = { license, approved, signature: text };
    assert.throws(() => parseSignedLicense(document), { code: 'ERR_EM_RECORD_INVALID' }, text);
  }
});

test('a public key names its algorithm, a point, a credential and a page that may ask', () => {
  const { publicKey } = createAuthenticator();
  assert.equal(parseIssuerKey(publicKey).text, publicKey);
  const wrong = [
    publicKey.replace('es256', 'rs256'),
    publicKey.replace('es256', 'eddsa'),
    publicKey.replace(ORIGIN, 'http://approve.example.com'),
    publicKey.replace(ORIGIN, 'https://approve.example.com/'),
    publicKey.replace(ORIGIN, 'https://Approve.example.com'),
    publicKey.replace(ORIGIN, 'https://user@approve.example.com'),
    publicKey.replace(/:[\w-]+:/, `:${'A'.repeat(86)}:`),
    publicKey.replace(/@.*/, ''),
  ];
  for (const text of wrong)
    assert.throws(() => parseIssuerKey(text), { code: 'ERR_EM_CONFIG_INVALID' }, text);
  const local = publicKey.replace(ORIGIN, 'http://localhost:8420');
  assert.equal(parseIssuerKey(local).text, local);
});
