// Goal: a row's image is read exactly or not at all, and values become SQL without a guess. Method:
// images and values made by hand, whole and damaged.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ColumnKind,
  imageOf,
  kindOf,
  literalOf,
  readImage,
} from '../../../src/adapters/mysql/value.ts';

const read = (kind: ColumnKind, text: string | Buffer) => {
  const bytes = Buffer.from(text);
  const image = Buffer.concat([Buffer.from(`${bytes.length}:`), bytes]);
  return readImage([{ name: 'c', kind }], image).c;
};

test('every kind of value is read from its exact form', () => {
  assert.equal(read('integer', '-5'), -5);
  assert.deepEqual(read('integer', '18446744073709551615'), { $int: '18446744073709551615' });
  assert.equal(read('bit', '7'), 7);
  for (const [text, trimmed] of [
    ['35.00', '35'],
    ['0035.50', '35.5'],
    ['-0.10', '-0.1'],
    ['-00.00', '-0'],
    ['100', '100'],
    ['0', '0'],
  ])
    assert.deepEqual(read('decimal', String(text)), { $dec: trimmed });
  assert.deepEqual(read('real', '0.1'), { $real: '0.1' });
  assert.equal(read('text', 'a:b-'), 'a:b-');
  assert.deepEqual(read('text', Buffer.from([0xff])), { $text: 'ff' });
  assert.deepEqual(read('bytes', 'ab'), { $bytes: '6162' });
  assert.equal(read('datetime', '2024-01-02 03:04:05'), '2024-01-02T03:04:05');
  assert.equal(read('name', '::1'), '::1');
});

test('instants keep their fraction, and the zero date is not the epoch', () => {
  assert.equal(read('timestamp', '1'), '1970-01-01T00:00:01+00:00');
  assert.equal(read('timestamp', '1709168523.450'), '2024-02-29T01:02:03.450+00:00');
  assert.equal(read('timestamp', '0'), '0000-00-00T00:00:00+00:00');
  assert.equal(read('timestamp', '0.000'), '0000-00-00T00:00:00+00:00');
  assert.equal(read('timestamp', '0.001'), '1970-01-01T00:00:00.001+00:00');
});

test('an image that is cut off, too long or damaged is not read', () => {
  const columns = [
    { name: 'a', kind: 'integer' },
    { name: 'b', kind: 'text' },
  ] as const;
  assert.deepEqual(readImage(columns, Buffer.from('1:7-')), { a: 7, b: null });
  assert.deepEqual(readImage(columns, Buffer.from('-0:')), { a: null, b: '' });
  for (const image of [
    '',
    '1:7',
    '1:72:x',
    '1:7-x',
    '1:x-',
    '1:7x:x',
    '1.5:7-',
    '1:7--',
    '7',
    '2:7a-',
  ])
    assert.throws(
      () => readImage(columns, Buffer.from(image)),
      { code: 'ERR_EM_INVARIANT' },
      image,
    );
});

test('an empty image has no columns', () => {
  assert.throws(() => readImage([{ name: 'a', kind: 'text' }], Buffer.from('')), {
    code: 'ERR_EM_INVARIANT',
  });
});

test('the SQL of an image quotes names and writes each kind in its exact form', () => {
  const forms: Readonly<Record<ColumnKind, string>> = {
    ...{ integer: 'cast(r.`c` as char)', decimal: 'cast(r.`c` as char)' },
    ...{ name: 'cast(r.`c` as char)', datetime: 'cast(r.`c` as char)' },
    ...{ bit: 'cast(r.`c` + 0 as char)', real: 'cast(cast(r.`c` as double) as char)' },
    ...{ text: 'cast(convert(r.`c` using utf8mb4) as binary)', bytes: 'r.`c`' },
    timestamp: "if(r.`c` = 0, '0', cast(unix_timestamp(r.`c`) as char))",
  };
  for (const [kind, form] of Object.entries(forms)) {
    const columns = [{ name: 'c', kind: kind as ColumnKind }];
    const cell = `concat(octet_length(${form}), ':', ${form})`;
    assert.equal(imageOf(columns, 'r'), `concat(if(r.\`c\` is null, '-', ${cell}))`);
    const recorded = `concat(ifnull(${cell.replaceAll('r.`', 'old.`')}, '-'))`;
    assert.equal(imageOf(columns, 'old'), recorded);
  }
});

test('types and character sets without an exact form are named', () => {
  assert.equal(kindOf('int', null), 'integer');
  assert.equal(kindOf('varchar', 'latin1'), 'text');
  assert.equal(kindOf('varbinary', null), 'bytes');
  assert.match(JSON.stringify(kindOf('point', null)), /type point/);
  assert.match(JSON.stringify(kindOf('constructor', null)), /type constructor/);
  assert.match(JSON.stringify(kindOf('varchar', 'sjis')), /character set sjis/);
  assert.match(JSON.stringify(kindOf('char', null)), /character set null/);
});

test('a value becomes SQL of its kind, or none', () => {
  assert.equal(literalOf('text', null), 'null');
  assert.equal(literalOf('integer', true), '1');
  assert.equal(literalOf('bit', false), '0');
  assert.equal(literalOf('text', true), undefined);
  assert.equal(literalOf('integer', -7), '-7');
  assert.equal(literalOf('text', 'é'), "_utf8mb4 x'c3a9'");
  assert.equal(literalOf('integer', { $int: '9007199254740993' }), '9007199254740993');
  assert.equal(literalOf('decimal', { $dec: '1.5' }), '1.5');
  assert.equal(literalOf('real', { $real: '0.1' }), '1e-1');
  assert.equal(literalOf('real', { $real: 'Infinity' }), undefined);
  assert.equal(literalOf('bytes', { $bytes: '00ff' }), "x'00ff'");
  assert.equal(literalOf('text', { $bytes: 'ff' }), "x'ff'");
  assert.equal(literalOf('integer', { $bytes: 'ff' }), undefined);
  assert.equal(literalOf('text', { $text: 'ff' }), undefined);
  assert.equal(literalOf('text', { a: 1 }), undefined);
});

test('a zone is left out only where sessions in UTC read the time', () => {
  const text = (value: string | undefined) =>
    Buffer.from(value?.match(/x'(.*)'/)?.[1] ?? '', 'hex').toString();
  for (const zone of ['Z', '+00:00'])
    for (const kind of ['timestamp', 'datetime'] as const) {
      assert.equal(text(literalOf(kind, `2024-01-01T00:00:00${zone}`)), '2024-01-01T00:00:00');
      assert.equal(text(literalOf(kind, `2024-01-01T00:00:00.5${zone}`)), '2024-01-01T00:00:00.5');
    }
  const elsewhere = '2024-01-01T00:00:00+02:00';
  assert.equal(text(literalOf('timestamp', elsewhere)), elsewhere);
  assert.equal(text(literalOf('text', '2024-01-01T00:00:00Z')), '2024-01-01T00:00:00Z');
});
