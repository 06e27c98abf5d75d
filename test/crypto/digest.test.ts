// Goal: a digest names one text of one kind, and an occurrence id follows from the license alone.
// Method: values from sha256sum and from the golden vectors; properties for separation.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { digestRecord, digestText, digestValueOf, occurrenceId } from '../../src/crypto/digest.ts';
import { checkpointRecord } from '../../src/protocol/checkpoint.ts';
import type { Digest } from '../../src/protocol/record.ts';
import { assertRefuses } from './mutants.ts';

test('a digest is SHA-256 over label, newline and UTF-8 text', () => {
  // printf 'label\ntext' | sha256sum, and printf 'label\n\xc3\xa9\xe2\x82\xac' | sha256sum.
  assert.equal(
    digestText('label', 'text'),
    '5085fd36a0a3f6d123c997539463c3f9777e369cd60af98f326ee9e013c96dc5',
  );
  assert.equal(
    digestText('label', 'é€'),
    'acd1a306cee76e820e2d4161a768d228609d469212f73504bd3ac3b44890f6da',
  );
});

test('long text has the digest of the same bytes', () => {
  for (const length of [2 ** 20 - 1, 2 ** 20, 2 ** 20 + 1, 3 * 2 ** 20]) {
    const text = 'é'.repeat(length);
    assert.equal(
      digestText('label', text),
      createHash('sha256').update(`label\n${text}`).digest('hex'),
    );
  }
});

test('text that UTF-8 cannot carry has no digest', () => {
  assertRefuses(
    'ERR_EM_CANON_UNSUPPORTED',
    () => digestText('label', 'a\ud800'),
    'a lone surrogate',
  );
});

test('a label of two lines is a bug: it could stand for another label and text', () => {
  assertRefuses('ERR_EM_INVARIANT', () => digestText('a\nb', 'c'), 'two lines');
});

test('property: two digests agree exactly when label and text do', () => {
  const labelled = fc.tuple(
    fc.constantFrom('a', 'a/b', 'b'),
    fc.constantFrom('', 'a', 'b\n', '\nb', 'a\nb', 'é'),
  );
  fc.assert(
    fc.property(labelled, labelled, (one, two) => {
      assert.equal(
        digestText(...one) === digestText(...two),
        one[0] === two[0] && one[1] === two[1],
      );
    }),
  );
});

test('the order in which an object was built does not change its digest', () => {
  assert.equal(digestValueOf('label', { a: 1, b: [2] }), digestValueOf('label', { b: [2], a: 1 }));
  assert.notEqual(digestValueOf('label', { a: 1 }), digestValueOf('label', { a: '1' }));
});

test('a record that is not valid has no digest', () => {
  assertRefuses(
    'ERR_EM_RECORD_INVALID',
    () => digestRecord(checkpointRecord, { version: 1 } as never),
    'fields missing',
  );
});

test('an occurrence id changes with each of its four sources', () => {
  const source = { issuer: 'ap-team', nonce: 'n', license: 'a'.repeat(64) as Digest, index: 0 };
  const ids = [
    source,
    { ...source, issuer: 'ap-teams' },
    { ...source, nonce: 'm' },
    { ...source, license: 'b'.repeat(64) as Digest },
    { ...source, index: 1 },
  ].map(occurrenceId);
  assert.equal(new Set(ids).size, 5);
  for (const id of ids) assert.match(id, /^occ_[0-9a-f]{40}$/);
  assert.equal(
    occurrenceId(source),
    occurrenceId({ index: 0, license: source.license, nonce: 'n', issuer: 'ap-team' }),
  );
});
