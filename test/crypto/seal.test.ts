// Goal: a seal holds for exactly one text of one record kind under one key of this deployment, and
// for nothing else. Method: the golden vectors with one bit, key, kind or byte changed; each
// refusal has a stable code.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { Keyring } from '../../src/crypto/keyring.ts';
import { createSealer, keyedDigest, keyedTextDigest } from '../../src/crypto/seal.ts';
import { checkpointRecord } from '../../src/protocol/checkpoint.ts';
import { defineRecord, type RecordKind } from '../../src/protocol/record.ts';
import { choice, closed, text } from '../../src/protocol/schema.ts';
import { keys, recordKinds, type Vector, vectorKeyring, vectors } from '../vectors/load.ts';
import { assertRefuses } from './mutants.ts';

const AT = '2026-03-01T08:02:00.000Z';
const kinds = await recordKinds();
const ring = vectorKeyring('k-test');
const sealer = createSealer(ring);

function kindOf(vector: Vector): RecordKind<object> {
  const kind = kinds.get(vector.kind);
  assert.ok(kind);
  return kind;
}

/** A kind whose parser must not be reached. */
function unparsed(kind: RecordKind<object>): RecordKind<object> {
  return {
    ...kind,
    parse: () => assert.fail('parsed'),
    parseText: () => assert.fail('parsed before the seal held'),
  };
}

/** A seal as somebody who has the right key would make it, around our own sealer. */
function sealText(kind: RecordKind<object>, text: string): { key: string; mac: string } {
  const key = ring.derive(ring.current, kind.kind);
  assert.ok(key);
  return {
    key: ring.current,
    mac: createHmac('sha256', key).update(`${kind.domain}\n${text}`).digest('hex'),
  };
}

for (const vector of vectors) {
  test(`${vector.name}: one flipped bit in any byte of the text breaks the seal, and nothing is parsed`, () => {
    const kind = unparsed(kindOf(vector));
    const bytes = Buffer.from(vector.text);
    for (let index = 0; index < bytes.length; index += 1) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(bytes.readUInt8(index) ^ (1 << (index % 8)), index);
      const text = damaged.toString('utf8');
      assertRefuses(
        'ERR_EM_SEAL_INVALID',
        () => sealer.open(kind, text, vector.seal),
        `byte ${index}`,
      );
    }
  });

  test(`${vector.name}: a MAC that is damaged or written in another way is refused`, () => {
    const kind = unparsed(kindOf(vector));
    const { key, mac } = vector.seal;
    const flipped = [...mac].map((digit, index) => {
      const other = (Number.parseInt(digit, 16) ^ (1 << (index % 4))).toString(16);
      return mac.slice(0, index) + other + mac.slice(index + 1);
    });
    const spellings = [
      '',
      mac.slice(0, 62),
      mac.slice(1),
      `${mac}00`,
      mac.toUpperCase(),
      ` ${mac}`,
      `${mac}\n`,
      '0'.repeat(64),
    ];
    const strangers: readonly unknown[] = [undefined, null, 1, {}, [mac], Buffer.from(mac, 'hex')];
    for (const damaged of [...flipped, ...spellings, ...strangers]) {
      const seal = { key, mac: damaged as string };
      assertRefuses(
        'ERR_EM_SEAL_INVALID',
        () => sealer.open(kind, vector.text, seal),
        `MAC ${String(damaged)}`,
      );
    }
  });

  test(`${vector.name}: the key of another kind or of another generation does not seal it`, () => {
    const kind = kindOf(vector);
    for (const other of kinds.values()) {
      if (other.kind === vector.kind) continue;
      const key = ring.derive(vector.seal.key, other.kind);
      assert.ok(key);
      const mac = createHmac('sha256', key).update(`${kind.domain}\n${vector.text}`).digest('hex');
      const seal = { key: vector.seal.key, mac };
      assertRefuses(
        'ERR_EM_SEAL_INVALID',
        () => sealer.open(unparsed(kind), vector.text, seal),
        other.kind,
      );
      assertRefuses(
        'ERR_EM_SEAL_INVALID',
        () => sealer.open(unparsed(other), vector.text, vector.seal),
        other.kind,
      );
    }
    const generation = vector.seal.key === 'k-test' ? 'k-older' : 'k-test';
    const seal = { key: generation, mac: vector.seal.mac };
    assertRefuses(
      'ERR_EM_SEAL_INVALID',
      () => sealer.open(unparsed(kind), vector.text, seal),
      generation,
    );
  });

  test(`${vector.name}: a key id that is not in the ring is unknown, whatever it looks like`, () => {
    const kind = unparsed(kindOf(vector));
    const ids: readonly unknown[] = [
      'k-foreign',
      '',
      '__proto__',
      'constructor',
      undefined,
      null,
      7,
      {},
    ];
    for (const key of ids) {
      const seal = { key: key as string, mac: vector.seal.mac };
      assertRefuses(
        'ERR_EM_KEY_UNKNOWN',
        () => sealer.open(kind, vector.text, seal),
        `id ${String(key)}`,
      );
    }
  });

  test(`${vector.name}: a valid seal does not make bad text acceptable`, () => {
    const kind = kindOf(vector);
    const cases = [
      ['ERR_EM_RECORD_INVALID', `${vector.text} `],
      ['ERR_EM_RECORD_INVALID', vector.text.replace('"version":1', '"version":2')],
      ['ERR_EM_RECORD_INVALID', vector.text.replace('"version":1', '"unknown":1,"version":1')],
      ['ERR_EM_RECORD_INVALID', ''],
      ['ERR_EM_CANON_UNSUPPORTED', vector.text.replace('"version":1', '"version":-0')],
    ] as const;
    for (const [code, text] of cases) {
      assertRefuses(code, () => sealer.open(kind, text, sealText(kind, text)), text.slice(0, 40));
    }
    assert.deepEqual(
      sealer.open(kind, vector.text, sealText(kind, vector.text)).record,
      vector.record,
    );
  });
}

test('text that UTF-8 cannot carry does not share the seal of its replacement', () => {
  const kind = unparsed(checkpointRecord as unknown as RecordKind<object>);
  const seal = sealText(kind, '{"a":"\ufffd"}');
  assertRefuses(
    'ERR_EM_SEAL_INVALID',
    () => sealer.open(kind, '{"a":"\ud800"}', seal),
    'a lone surrogate',
  );
  const strangers: readonly unknown[] = [undefined, null, 1, {}, Buffer.from('{}')];
  for (const text of strangers) {
    assertRefuses(
      'ERR_EM_SEAL_INVALID',
      () => sealer.open(kind, text as string, seal),
      String(text),
    );
  }
});

test('what the sealer would not accept it does not seal', () => {
  const record = { ...vectors.find(({ kind }) => kind === 'checkpoint')?.record, rows: 0 };
  assertRefuses(
    'ERR_EM_RECORD_INVALID',
    () => sealer.seal(checkpointRecord, record as never),
    'no rows',
  );
});

test('after a rotation old records open, new ones are sealed with the new key, and a dropped key is unknown', () => {
  const secret = (byte: number) => new Uint8Array(32).fill(byte);
  const record = checkpointRecord.parse(vectors.find(({ kind }) => kind === 'checkpoint')?.record);
  const before = createSealer(new Keyring([{ id: 'one', secret: secret(1) }]));
  const rotated = createSealer(
    new Keyring([
      { id: 'two', secret: secret(2) },
      { id: 'one', secret: secret(1) },
    ]),
  );
  const dropped = createSealer(new Keyring([{ id: 'two', secret: secret(2) }]));
  const old = before.seal(checkpointRecord, record);
  assert.deepEqual(rotated.open(checkpointRecord, old.text, old.seal).record, record);
  const fresh = rotated.seal(checkpointRecord, record);
  assert.equal(fresh.seal.key, 'two');
  assert.notEqual(fresh.seal.mac, old.seal.mac);
  assertRefuses(
    'ERR_EM_KEY_UNKNOWN',
    () => dropped.open(checkpointRecord, old.text, old.seal),
    'dropped',
  );
});

test('property: keyed digests of values agree exactly when target, column and value do', () => {
  const digest = keyedDigest(ring);
  const cell = fc.tuple(
    fc.constantFrom('a', 'ab', 'b'),
    fc.constantFrom('c', 'bc', ''),
    fc.constantFrom(null, 0, '0', '', 'c'),
  );
  fc.assert(
    fc.property(cell, cell, (one, two) => {
      assert.equal(digest(...one) === digest(...two), JSON.stringify(one) === JSON.stringify(two));
    }),
  );
});

test('a keyed digest cannot be found without the key: another deployment has another one', () => {
  const other = new Keyring([{ id: 'k-test', secret: new Uint8Array(32).fill(9) }]);
  assert.notEqual(keyedDigest(ring)('t', 'c', 1), keyedDigest(other)('t', 'c', 1));
  assert.notEqual(keyedTextDigest(ring)('d', ['x']), keyedTextDigest(other)('d', ['x']));
  assert.notEqual(keyedTextDigest(ring)('d', ['x']), keyedTextDigest(ring)('e', ['x']));
  assert.equal(keyedTextDigest(ring)('d', ['x', 'y']), keyedTextDigest(ring)('d', ['xy']));
});

test('what a sealer sealed itself passes as it is, and nothing else does without being opened', () => {
  for (const vector of vectors) {
    const kind = kindOf(vector);
    const sealed = sealer.seal(kind, vector.record as object);
    assert.equal(sealer.check(kind, sealed), sealed);
    assert.ok(
      [sealed, sealed.record, sealed.seal].every(Object.isFrozen),
      'it cannot change any more',
    );

    const twin = { ...sealed };
    assert.equal(sealer.check(kind, twin), sealed, 'of a copy, what was sealed comes back');
    assertRefuses(
      'ERR_EM_SEAL_INVALID',
      () => sealer.check(kind, { ...sealed, text: `${sealed.text} ` }),
      vector.name,
    );
    const lie = { ...sealed, record: { ...sealed.record, version: 2 } };
    assert.deepEqual(
      sealer.check(kind, lie).record,
      sealed.record,
      'the text decides what the record is',
    );
    const seal = { ...sealed.seal, mac: '0'.repeat(64) };
    assertRefuses(
      'ERR_EM_SEAL_INVALID',
      () => sealer.check(kind, { ...sealed, seal }),
      vector.name,
    );

    const foreign = createSealer(
      new Keyring([{ id: ring.current, secret: new Uint8Array(32).fill(7) }]),
    );
    assertRefuses('ERR_EM_SEAL_INVALID', () => foreign.check(kind, sealed), 'another deployment');
    for (const other of kinds.values()) {
      if (other.kind === kind.kind) continue;
      assertRefuses(
        'ERR_EM_SEAL_INVALID',
        () => sealer.check(unparsed(other), sealed),
        `${vector.name} as ${other.kind}`,
      );
    }
  }
});

test('a record of any length is sealed as a frozen copy, so that nothing can become of it meanwhile', () => {
  const kind = defineRecord(
    'long',
    1,
    2 ** 22,
    closed({ text: text(), paid: choice(true, false) }),
  );
  const record = { text: 'x'.repeat(2 ** 21), paid: false };
  const sealed = sealer.seal(kind, record);
  record.paid = true;
  assert.throws(() => Object.assign(sealed.record, { paid: true }), TypeError);
  assert.equal(sealer.check(kind, sealed).record.paid, false);
});

test('what was sealed too long ago is opened like any other text, and comes out the same', () => {
  const rows = (row: number) =>
    ({ version: 1, throughSeq: row, rows: row, chain: 'a'.repeat(64), at: AT }) as never;
  const first = sealer.seal(checkpointRecord, rows(1));
  assert.equal(sealer.open(checkpointRecord, first.text, { ...first.seal }), first);
  for (let row = 2; row <= 400; row += 1) sealer.seal(checkpointRecord, rows(row));
  const opened = sealer.open(checkpointRecord, first.text, { ...first.seal });
  assert.notEqual(opened, first);
  assert.deepEqual(opened, first);
});

test('a seal that was made lately holds for no other text, kind or key', () => {
  const [old, young] = Object.keys(keys.generations) as [string, string];
  const both = createSealer(vectorKeyring(young));
  const other = createSealer(vectorKeyring(old));
  const sealed = both.seal(checkpointRecord, {
    version: 1,
    throughSeq: 1,
    rows: 1,
    chain: 'b'.repeat(64),
    at: AT,
  } as never);
  const { text, seal } = sealed;
  assert.equal(both.open(checkpointRecord, text, seal), sealed);
  const refusals: readonly (() => unknown)[] = [
    () => both.open(checkpointRecord, text.replace('bb', 'bc'), seal),
    () => both.open(checkpointRecord, text, { ...seal, key: old }),
    () => both.open({ ...checkpointRecord, domain: 'effectmatch/other/v1' }, text, seal),
    () => other.open(checkpointRecord, text, { ...seal, key: old }),
  ];
  for (const refused of refusals) assertRefuses('ERR_EM_SEAL_INVALID', refused, String(refused));
});

test('a keyed digest of a long text, whole or in parts, is the one of the whole text', () => {
  const key = ring.derive(ring.current, 'journal');
  assert.ok(key);
  const long = '\u{1f600}'.repeat(2 ** 20);
  for (const texts of [[long], [`x${long}`], ['a\n', `x${long}`, 'end'], ['']]) {
    const whole = `some/label\n${texts.join('')}`;
    const expected: string = createHmac('sha256', key).update(whole).digest('hex');
    assert.equal(sealer.mac(ring.current, 'some/label', ...texts), expected);
  }
});
