// Goal: values survive the way into a column and out of it, and what is stored differently reads
// differently. Method: real columns of every type, generated and listed values; the oracle is the
// binary form that PostgreSQL sends.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { readRelations } from '../../../src/adapters/postgres/catalog.ts';
import { queryPinned } from '../../../src/adapters/postgres/formats.ts';
import { parseImage } from '../../../src/adapters/postgres/image.ts';
import { decoderOf, encodeValue } from '../../../src/adapters/postgres/value.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import type { Value } from '../../../src/protocol/value.ts';
import { isValue } from '../../protocol/is-value.ts';
import { formatImage } from './image-text.ts';
import { openDatabase } from './session.ts';

const SETUP = `
create extension citext; create extension hstore; create extension ltree;
create type mood as enum ('sad', 'happy', 'Très, "gai"', '');
create type pair as (a int, b text);
create domain cents as numeric(12, 2) check (value >= 0);
create domain tag as text; create domain short_tag as tag check (length(value) < 9);
create domain stamp as timestamptz; create domain raw as bytea;
create type span as range (subtype = float8);
`;

let database: Awaited<ReturnType<typeof openDatabase>>;

before(async () => {
  database = await openDatabase(SETUP);
});

after(() => database[Symbol.asyncDispose]());

interface Stored {
  readonly value: Value;
  /** Binary form, as the type's send function writes it. */
  readonly sent: string;
  readonly text: string;
}

let tables = 0;

/** Stores texts in a fresh column of the type and reads them back as images. */
async function store(type: string, texts: readonly (string | null)[]): Promise<readonly Stored[]> {
  const name = `t${tables++}`;
  await database.control.query(`create table public.${name} (n int primary key, v ${type})`);
  const [inspection] = await readRelations(database.control, [{ schema: 'public', name }]);
  assert.ok(inspection?.kind === 'usable');
  const column = inspection.relation.columns[1];
  assert.ok(column !== undefined);
  await insert(name, texts);
  const decode = decoderOf(column.type);
  const read = async (from: string): Promise<readonly Stored[]> => {
    const { rows } = await queryPinned(
      database.control,
      `select concat(t.*), encode(record_send(row(t.v)), 'hex') from public.${from} t order by n`,
    );
    return rows.map(([image = '', sent = '']) => {
      assert.ok(image !== null && sent !== null);
      const fields = parseImage(image, 2);
      assert.equal(formatImage(fields), image, 'the image is written as the server writes it');
      const text = fields[1] ?? null;
      return { value: text === null ? null : decode(text), sent, text: text ?? 'NULL' };
    });
  };
  const first = await read(name);
  await database.control.query(`create table public.${name}_again (n int primary key, v ${type})`);
  const again = first.map(({ value }) => {
    assert.ok(isValue(value), `${type}: ${JSON.stringify(value)} is a value`);
    const encoded = encodeValue(column.type, value);
    assert.ok(
      encoded === null || typeof encoded === 'string',
      `${type}: ${JSON.stringify(value)} can be bound`,
    );
    return encoded;
  });
  await insert(`${name}_again`, again);
  const second = await read(`${name}_again`);
  for (const [n, { value, sent, text }] of first.entries()) {
    assert.deepEqual(second[n]?.value, value);
    if (!SCALED.test(type))
      assert.equal(second[n]?.sent, sent, `${type} ${text} is stored the same again`);
  }
  await database.control.query(`drop table public.${name}, public.${name}_again`);
  return first;
}

async function insert(table: string, texts: readonly (string | null)[]): Promise<void> {
  const rows = texts.map((_, n) => `(${n}, $${n + 1})`).join(', ');
  await database.control.query(`insert into public.${table} values ${rows}`, [...texts]);
}

/** The scale of a plain numeric is not part of the value. */
const SCALED = /^(?:numeric|cents)/;

function assertFaithful(type: string, stored: readonly Stored[]): void {
  const bySent = new Map<string, string>();
  const byValue = new Map<string, string>();
  for (const { value, sent, text } of stored) {
    const shown = canonical(value);
    assert.equal(
      bySent.get(sent) ?? shown,
      shown,
      `${type} ${text}: one representation has one value`,
    );
    bySent.set(sent, shown);
    if (SCALED.test(type)) continue;
    assert.equal(
      byValue.get(shown) ?? sent,
      sent,
      `${type} ${text}: ${shown} stands for one representation`,
    );
    byValue.set(shown, sent);
  }
}

const TEXTS = [
  '',
  ' ',
  'NULL',
  'null',
  '"',
  '""',
  '\\',
  '\\\\"',
  '(',
  ')',
  ',',
  '(,)',
  '{a}',
  'a\nb',
  '\t',
  'é',
  'e\u0301',
  '🦊',
  '\u00a0',
  '\u0085',
];

const LISTED: Readonly<Record<string, readonly (string | null)[]>> = {
  bool: ['t', 'f', null],
  int2: ['-32768', '0', '32767', null],
  int4: ['-2147483648', '2147483647'],
  int8: [
    '-9223372036854775808',
    '9223372036854775807',
    '9007199254740991',
    '9007199254740992',
    '-9007199254740993',
  ],
  oid: ['0', '4294967295'],
  numeric: [
    'NaN',
    'Infinity',
    '-Infinity',
    '0',
    '0.000',
    '-0.5',
    '1e300',
    '1e-300',
    '100',
    '0.10',
    '123456789012345678901234567890.12345',
  ],
  'numeric(10,2)': ['1.005', '99999999.99', '-0.001', 'NaN'],
  float4: ['0', '-0', 'NaN', 'Infinity', '-Infinity', '0.1', '1e-45', '3.4028235e38', '16777217'],
  float8: [
    '0',
    '-0',
    'NaN',
    'Infinity',
    '-Infinity',
    '0.1',
    '5e-324',
    '1.7976931348623157e308',
    '1e21',
    '123456789.125',
  ],
  money: ['0', '-1.5', '92233720368547758.07'],
  text: [...TEXTS, null],
  'varchar(5)': ['', 'a', 'a  ', 'abcde'],
  'char(4)': ['', 'a', 'abcd'],
  '"char"': ['', 'a', '\\377'],
  name: ['', 'a', 'Ünï'],
  bytea: ['\\x', '\\x00', '\\xdeadbeef', '\\x5c', null],
  date: ['2026-01-31', '0044-03-15 BC', 'infinity', '-infinity', '5874897-12-31'],
  time: ['00:00', '24:00:00', '12:34:56.789012'],
  timetz: ['10:00+02', '08:00+00', '10:00:00.5-15:59:59'],
  timestamp: [
    '2026-01-31 10:00',
    '2026-01-31 10:00:00.5',
    '0044-03-15 10:00 BC',
    '294276-12-31 23:59:59.999999',
    'infinity',
    '-infinity',
  ],
  timestamptz: [
    '2026-01-31 10:00+00',
    '2026-01-31 10:00+02',
    '2026-01-31 10:00:00.123456Z',
    '0001-01-01 00:00:00Z BC',
    '10000-01-01Z',
    '9999-12-31 23:59:59Z',
    'infinity',
    '-infinity',
  ],
  interval: [
    '1 month',
    '30 days',
    '720 hours',
    '24:00:00',
    '1 day',
    '-1 day +1 hour',
    '0',
    '1 year -1 month',
    '-0.000001 seconds',
  ],
  'interval day to second(3)': ['1 day 00:00:00.0005', '-1 day'],
  uuid: ['00000000-0000-0000-0000-000000000000', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'],
  inet: ['10.0.0.1', '10.0.0.1/8', '::1', '::ffff:10.0.0.1', 'fe80::/10'],
  cidr: ['10.0.0.0/8', '10.0.0.0/16'],
  macaddr: ['08:00:2b:01:02:03'],
  macaddr8: ['08:00:2b:01:02:03:04:05'],
  'bit(3)': ['101', '000'],
  varbit: ['', '0', '00', '101'],
  json: ['{"a": 1}', '{"a":1}', '{"a":1,"a":2}', '1.0', '1', '"x"', 'null', null],
  jsonb: [
    '{"a": 1}',
    '{"b":1,"a":[1,2,{"$int":"1"}]}',
    '1.0',
    '1',
    '"x"',
    'null',
    '"1"',
    null,
    '1e400',
  ],
  jsonpath: ['$.a', 'strict $.a[*]'],
  xml: ['<a/>', '<a></a>', 'text', '<?xml version="1.0"?><a/>'],
  tsvector: ['a b', 'a:1 b:2A', "'it''s':3", ''],
  tsquery: ['a & b', 'a & b & c', '!a | (b <-> c)', 'a:*B', ''],
  point: ['(1,2)', '(-0,0)', '(0,-0)', '(NaN,Infinity)'],
  box: ['(1,2),(0,0)'],
  path: ['[(0,0),(1,1)]', '((0,0),(1,1))'],
  polygon: ['((0,0),(1,1),(1,0))'],
  circle: ['<(0,0),1>'],
  pg_lsn: ['16/B374D848', '0/0'],
  'int4[]': ['{}', '{1,2}', '[2:3]={1,2}', '{{1,2},{3,4}}', '{NULL}', null],
  'text[]': ['{}', '{""}', '{NULL}', '{"NULL"}', '{"a,b","\\"","\\\\"}'],
  'float8[]': ['{0}', '{-0}', '{NaN}'],
  'numeric[]': ['{1.5}', '{1.50}'],
  'varchar(2)[]': ['{ab,c}'],
  'bytea[]': ['{"\\\\xde"}'],
  'box[]': ['{(1,2),(0,0);(3,4),(1,1)}'],
  int4range: ['[1,5)', 'empty', '(,)', '[1,)', null],
  numrange: ['[1.0,2)', '[1.00,2)', '(1.0,2]'],
  tstzrange: ['[2026-01-01Z,2026-01-02Z)', '[-infinity,infinity]', '(,)'],
  int4multirange: ['{}', '{[1,3),[5,7)}'],
  span: ['[0,1)', '[-0,1)'],
  mood: ['sad', 'happy', 'Très, "gai"', '', null],
  'mood[]': ['{sad,"Très, \\"gai\\""}'],
  pair: ['(1,a)', '(,)', '(1,"")', '(,"(""x"")")', null],
  'pair[]': ['{"(1,a)","(,)"}'],
  cents: ['1.005', '0'],
  short_tag: ['', 'A', 'a'],
  stamp: ['2026-01-31 10:00+00'],
  raw: ['\\x00ff'],
  citext: ['A', 'a', ''],
  hstore: ['a=>1', 'a=>NULL', '"a b"=>"c\\"d"', ''],
  ltree: ['Top.Science', ''],
  regclass: ['pg_class', '0', '4000000000'],
  xid8: ['18446744073709551615'],
};

for (const [type, texts] of Object.entries(LISTED)) {
  test(`${type} values come out as they went in`, async () => {
    assertFaithful(type, await store(type, texts));
  });
}

const micros = (low: bigint, high: bigint) => fc.bigInt({ min: low, max: high });
const nested = fc.letrec((tie) => ({
  text: fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\0', '')),
  json: fc.jsonValue({ maxDepth: 3 }).map((json) => JSON.stringify(json).replaceAll('\\u0000', '')),
  any: fc.oneof(tie('text'), tie('json')),
}));

const GENERATED: Readonly<Record<string, fc.Arbitrary<string>>> = {
  int8: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  numeric: fc
    .tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.integer({ min: -40, max: 40 }))
    .map(([digits, scale]) => `${digits}e${scale}`),
  float4: fc.float({ noNaN: true }).map((real) => (Object.is(real, -0) ? '-0' : String(real))),
  float8: fc.double({ noNaN: true }).map((real) => (Object.is(real, -0) ? '-0' : String(real))),
  text: nested.text as fc.Arbitrary<string>,
  jsonb: nested.json as fc.Arbitrary<string>,
  bytea: fc
    .uint8Array({ maxLength: 20 })
    .map((bytes) => `\\x${Buffer.from(bytes).toString('hex')}`),
  timestamptz: micros(-210_866_803_200n * 1_000_000n, 9_223_000_000_000n * 1_000_000n).map(
    (at) => `epoch +${at} microseconds`,
  ),
  interval: fc
    .tuple(
      fc.integer({ min: -40, max: 40 }),
      fc.integer({ min: -70, max: 70 }),
      micros(-200_000_000_000n, 200_000_000_000n),
    )
    .map(([months, days, us]) => `${months} months ${days} days ${us} microseconds`),
  inet: fc
    .tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }))
    .map(([host, bits]) => `${host}/${bits}`),
  uuid: fc.uuid(),
};

for (const [type, arbitrary] of Object.entries(GENERATED)) {
  test(`property: generated ${type} values come out as they went in`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(arbitrary, { minLength: 1, maxLength: 80 }), async (texts) => {
        const plain = type === 'timestamptz' ? await shift(texts) : texts;
        assertFaithful(type, await store(type, plain));
      }),
      { numRuns: 4 },
    );
  });
}

/**
 * Instants over the whole range of the type, computed by the server so that no calendar of ours is
 * involved.
 */
async function shift(texts: readonly string[]): Promise<readonly string[]> {
  const { rows } = await queryPinned(
    database.control,
    `select format('%s', 'epoch'::timestamptz + split_part(t, '+', 2)::interval) from unnest($1::text[]) t`,
    [texts],
  );
  return rows.map(([text]) => String(text));
}

test('texts of instants have the order of the instants, fractions included', async () => {
  const texts = ['10:00:00', '10:00:00.4', '10:00:00.45', '10:00:00.5', '10:00:01'].map(
    (time) => `2026-01-31 ${time}+00`,
  );
  const values = (await store('timestamptz', texts)).map(({ value }) => String(value));
  assert.deepEqual(values.toSorted(), values);
  assert.equal(values[1], '2026-01-31T10:00:00.4+00:00');
});
