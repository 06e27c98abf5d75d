// Goal: the bytes of every record kind are fixed, so that another implementation can interoperate.
// Method: vectors computed outside this package; both our code and a Python script must arrive at the same values.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { keyId, parsePrivateKey } from '../src/crypto/approver-key.ts';
import { digestRecord, occurrenceId } from '../src/crypto/digest.ts';
import { parseIssuerKey } from '../src/crypto/issuer-key.ts';
import { createSigner, verifyReceipt } from '../src/crypto/receipt.ts';
import { receiptKeys } from '../src/crypto/receipt-key.ts';
import { createSealer, keyedDigest } from '../src/crypto/seal.ts';
import { signLicense, verifyLicense } from '../src/crypto/signature.ts';
import { checkpointRecord } from '../src/protocol/checkpoint.ts';
import type { License } from '../src/protocol/license.ts';
import { approvedRecord } from '../src/protocol/manifest.ts';
import type { RecordKind } from '../src/protocol/record.ts';
import { shadowRecord } from '../src/protocol/shadow.ts';
import { terminalRecord } from '../src/protocol/terminal.ts';
import {
  derivations,
  envelopes,
  keys,
  recordKinds,
  type Vector,
  vectorKeyring,
  vectors,
} from './vectors/load.ts';

const kinds = await recordKinds();

function kindOf(vector: Vector): RecordKind<object> {
  const kind = kinds.get(vector.kind);
  assert.ok(kind, `${vector.kind} is exported by the protocol`);
  return kind;
}

test('every record kind of the protocol has a vector, and every vector has a kind', () => {
  assert.deepEqual([...new Set(vectors.map(({ kind }) => kind))].sort(), [...kinds.keys()].sort());
  assert.deepEqual([...kinds.keys()].sort(), [
    'acknowledgement',
    'approved',
    'binding',
    'certificate',
    'checkpoint',
    'claim',
    'decline',
    'frame',
    'license',
    'manifest',
    'marker',
    'permit',
    'policy',
    'receipt',
    'resolution',
    'shadow',
    'statement',
    'terminal',
  ]);
  assert.ok(
    !kinds.has('value'),
    '"value" is the purpose of the key for stored values and no record kind',
  );
  assert.ok(!kinds.has('receipt-key/v1'), 'nor is the purpose of the key that signs receipts');
});

test('every variant of a marker, of a terminal and of a shadow has a vector', () => {
  const variants = (kind: string, field: string) =>
    new Set(
      vectors
        .filter((vector) => vector.kind === kind)
        .map(({ record }) => Reflect.get(record, field)),
    );
  assert.deepEqual(variants('marker', 'disposition'), new Set(['committed', 'void']));
  assert.deepEqual(
    variants('terminal', 'kind'),
    new Set(['committed', 'rejected', 'diverged', 'indeterminate']),
  );
  assert.deepEqual(
    variants('shadow', 'would'),
    new Set(['commit', 'reject', 'propose', 'unknown']),
  );
});

for (const vector of vectors) {
  test(`vector ${vector.name}: text, digest and seal are those of the file`, () => {
    const kind = kindOf(vector);
    assert.equal(kind.domain, `effectmatch/${vector.kind}/v${vector.version}`);
    assert.equal(kind.text(vector.record), vector.text);
    assert.equal(digestRecord(kind, vector.record), vector.digest);
    const sealer = createSealer(vectorKeyring(vector.seal.key));
    assert.deepEqual(sealer.seal(kind, vector.record).seal, vector.seal);
    for (const current of Object.keys(keys.generations)) {
      const opened = createSealer(vectorKeyring(current)).open(kind, vector.text, vector.seal);
      assert.deepEqual(opened, { record: vector.record, text: vector.text, seal: vector.seal });
    }
    assert.deepEqual(kind.parse(vector.record), vector.record);
  });
}

/** Every object and list in a value, itself included. */
function partsOf(value: unknown): readonly object[] {
  return typeof value === 'object' && value !== null
    ? [value, ...Object.values(value).flatMap(partsOf)]
    : [];
}

test('a parsed record shares nothing with what it was parsed from, so that nobody can change it afterwards', () => {
  const data = { list: [{ deep: [1] }], $$key: { x: null } };
  const cells = [
    { is: data },
    { oneOf: [data, [data]] },
    { between: [{ $dec: '1' }, { $dec: '2' }] },
  ];
  const effects = cells.map((cell) => ({
    op: 'insert',
    target: 't',
    key: { a: cell },
    after: { b: cell },
    count: 1,
  }));
  const requires = [{ target: 't', key: { a: data }, row: { b: data } }];
  const watch = [{ target: 't', key: { a: data }, columns: ['b'] }];
  const nested = (vector: Vector) =>
    ['approved', 'manifest'].includes(vector.kind)
      ? [{ ...vector.record, effects, requires, watch }]
      : [];
  for (const vector of vectors) {
    for (const record of [vector.record, ...nested(vector)]) {
      const parsed = kindOf(vector).parse(record);
      assert.deepEqual(parsed, record, vector.name);
      const given = new Set(partsOf(record));
      assert.ok(!partsOf(parsed).some((part) => given.has(part)), vector.name);
    }
  }
});

test('vectors of licenses carry the signature of the vectors’ approver', () => {
  const signed = vectors.filter(({ kind }) => kind === 'license');
  const seed = Buffer.from(keys.approverSeed, 'hex').toString('base64url');
  const { key, publicKey } = parsePrivateKey(`ed25519-private:${seed}`);
  assert.equal(publicKey.text, derivations.approverKey.publicKey);
  const approved = approvedRecord.parse(vectors.find(({ kind }) => kind === 'approved')?.record);
  assert.ok(signed.length > 0);
  for (const { record, signature = '' } of signed) {
    const license = record as License;
    assert.equal(signLicense(key, license), signature);
    assert.ok(verifyLicense([parseIssuerKey(publicKey.text)], { license, approved, signature }));
  }
});

for (const { name, key, record, position, publicKey, envelope } of envelopes) {
  test(`envelope ${name}: key and signature are those of the file, and the public key alone verifies it`, () => {
    const keyring = vectorKeyring(key);
    assert.equal(receiptKeys(keyring)[0]?.publicKey, publicKey);
    const signer = createSigner(keyring);
    const made =
      position === undefined
        ? signer.checkpoint(checkpointRecord.parse(record))
        : 'would' in record
          ? signer.shadow(shadowRecord.parse(record), position)
          : signer.receipt(terminalRecord.parse(record), position);
    assert.deepEqual(made, envelope);
    for (const given of [envelope, JSON.stringify(envelope)]) {
      const verified = verifyReceipt([publicKey], given);
      const content =
        verified.kind === 'receipt'
          ? verified.receipt.terminal
          : verified.kind === 'shadow'
            ? verified.shadow
            : Reflect.get(verified, verified.kind);
      assert.deepEqual(content, record);
      const place =
        verified.kind === 'receipt' ? verified.receipt.position : Reflect.get(verified, 'position');
      assert.equal(place, position);
    }
  });
}

test('envelopes cover every kind of terminal and both generations', () => {
  const dispositions = new Set(envelopes.map(({ record }) => Reflect.get(record, 'kind')));
  assert.deepEqual(
    dispositions,
    new Set(['committed', 'rejected', 'diverged', 'indeterminate', undefined]),
  );
  assert.deepEqual(
    new Set(envelopes.map(({ key }) => key)),
    new Set(Object.keys(keys.generations)),
  );
});

test('key ids, occurrence ids and keyed digests of values are those of the file', () => {
  assert.equal(keyId(derivations.approverKey.publicKey), derivations.approverKey.id);
  for (const { source, id } of derivations.occurrences) assert.equal(occurrenceId(source), id);
  for (const { key, target, column, value, digest } of derivations.values) {
    assert.equal(keyedDigest(vectorKeyring(key))(target, column, value), digest);
  }
  assert.ok(derivations.occurrences.length > 0 && derivations.values.length > 0);
});

test('a Python script recomputes every vector from the rules alone', (context) => {
  const script = fileURLToPath(new URL('./vectors/check.py', import.meta.url));
  const run = spawnSync('python3', ['-B', script], { encoding: 'utf8' });
  if (run.error !== undefined && 'code' in run.error && run.error.code === 'ENOENT') {
    context.skip('there is no python3 here: only the TypeScript side was checked');
    return;
  }
  assert.equal(run.status, 0, `${run.stdout}${run.stderr}`);
  const compared = Number(/^(\d+) values compared, 0 differ/.exec(run.stdout)?.[1]);
  assert.ok(compared >= vectors.length * 3, run.stdout);
});
