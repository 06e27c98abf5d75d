// Goal: what the decoder says about a changeset is what happened to the rows, and a damaged
// changeset is refused. Method: random writes to real tables, with typeof() and hex() before and
// after as the oracle; cuts and mutations.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeChangeset } from '../../../src/adapters/sqlite/changeset.ts';
import { nameRecords } from '../../../src/adapters/sqlite/records.ts';
import { EffectMatchError } from '../../../src/errors.ts';
import { describe, difference, photograph } from './oracle.ts';

const TABLES = {
  plain: {
    ddl: '(id integer primary key, a, b text, c real, d integer, e blob)',
    columns: ['id', 'a', 'b', 'c', 'd', 'e'],
    key: ['id'],
  },
  keyed: {
    ddl: '(b, x text not null, y blob not null, primary key (y, x))',
    columns: ['b', 'x', 'y'],
    key: ['y', 'x'],
  },
  flat: {
    ddl: '(x text, n numeric, v, primary key (x)) without rowid',
    columns: ['x', 'n', 'v'],
    key: ['x'],
  },
  typed: {
    ddl: '(id integer primary key, r real, t text, z any) strict',
    columns: ['id', 'r', 't', 'z'],
    key: ['id'],
  },
  made: {
    ddl: '(id integer primary key, g text as (hex(b)) stored, b blob, v as (length(b)), c text)',
    columns: ['id', 'b', 'c'],
    key: ['id'],
  },
} as const;
type Table = keyof typeof TABLES;

/**
 * SQL literals of every storage class. -0.0 has a test of its own: the session extension does not
 * see its sign.
 */
const literal = fc.oneof(
  fc.constant('null'),
  fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n }).map(String),
  fc.constantFrom(
    '-9223372036854775807 - 1',
    '9007199254740993',
    '0',
    '1',
    '1.0',
    '0.0',
    '9e999',
    '-9e999',
    '1e300',
    '5e-324',
  ),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .filter((n) => n !== 0)
    .map((n) => `${n}`.replace(/^(-?\d+)$/, '$1.0')),
  fc
    .string({ unit: 'binary', maxLength: 6 })
    .map((s) => `cast(x'${Buffer.from(s.toWellFormed()).toString('hex')}' as text)`),
  fc.uint8Array({ maxLength: 5 }).map((b) => `cast(x'${Buffer.from(b).toString('hex')}' as text)`),
  fc.uint8Array({ maxLength: 200 }).map((b) => `x'${Buffer.from(b).toString('hex')}'`),
);
const smallKey = fc.constantFrom('1', '2', '3', "'1'", "'k'", "x'31'", "x'00ff'", "''");

const statement = fc.record({
  table: fc.constantFrom(...(Object.keys(TABLES) as Table[])),
  op: fc.constantFrom('insert', 'replace', 'update', 'delete', 'rekey'),
  keys: fc.array(smallKey, { minLength: 2, maxLength: 2 }),
  values: fc.array(literal, { minLength: 6, maxLength: 6 }),
});

function sqlOf({
  table,
  op,
  keys,
  values,
}: {
  table: Table;
  op: string;
  keys: string[];
  values: string[];
}): string {
  const { columns, key } = TABLES[table];
  const row = columns.map((name, index) => {
    const place = (key as readonly string[]).indexOf(name);
    return place >= 0 ? keys[place % 2] : values[index];
  });
  switch (op) {
    case 'insert':
      return `insert or ignore into ${table} (${columns}) values (${row})`;
    case 'replace':
      return `replace into ${table} (${columns}) values (${row})`;
    case 'update': {
      const column = columns.find((name) => !(key as readonly string[]).includes(name));
      return `update ${table} set ${column} = ${values[0]} where ${key[0]} > ${keys[0]}`;
    }
    case 'rekey':
      return `update or ignore ${table} set ${key[0]} = ${keys[0]} where ${key[0]} = ${keys[1]}`;
    default:
      return `delete from ${table} where ${key[0]} = ${keys[0]}`;
  }
}

const SHAPES = new Map(
  Object.entries(TABLES).map(([target, { columns, key }]) => [
    target,
    { target, columns: columns.map((name) => ({ name })), key },
  ]),
);

test('property: decoded records are the difference that typeof() and hex() show', () => {
  let seen = 0;
  fc.assert(
    fc.property(
      fc.array(statement, { maxLength: 8 }),
      fc.array(statement, { maxLength: 8 }),
      (seed, writes) => {
        using db = new DatabaseSync(':memory:');
        for (const [name, { ddl }] of Object.entries(TABLES))
          db.exec(`create table ${name} ${ddl}`);
        for (const write of seed) tryRun(db, sqlOf(write));
        const before = photograph(db, TABLES);
        const session = db.createSession();
        db.exec('begin');
        for (const write of writes) tryRun(db, sqlOf(write));
        const named = nameRecords(decodeChangeset(session.changeset()), SHAPES);
        assert.equal(named.kind, 'records');
        const records = named.kind === 'records' ? named.records : [];
        seen += records.length;
        assert.deepEqual(
          describe(TABLES, records),
          difference(TABLES, before, photograph(db, TABLES)),
        );
      },
    ),
    { numRuns: 400 },
  );
  assert.ok(seen > 100, `only ${seen} records were seen`);
});

/** Statements may break a type or a constraint; what they leave is what counts. */
function tryRun(db: DatabaseSync, sql: string): void {
  try {
    db.exec(sql);
  } catch (error) {
    assert.match(String(error), /constraint failed|datatype mismatch|cannot store/, sql);
  }
}

/** A changeset with every operation and every storage class in it. */
function sampleChangeset(): Uint8Array {
  using db = new DatabaseSync(':memory:');
  db.exec(
    `create table one (id integer primary key, v); create table two (a text not null, b, c, primary key (a)) without rowid`,
  );
  db.exec(
    `insert into one values (1, 'x'), (2, 7), (3, null); insert into two values ('k', 1.5, x'c0ffee')`,
  );
  const session = db.createSession();
  db.exec(
    `update one set v = x'00' where id = 1; delete from one where id = 2; insert into one values (9, -1.25)`,
  );
  db.exec(`update two set b = null; insert into two values ('ü', 'text', 300)`);
  return session.changeset();
}

test('every cut of a changeset is refused or ends between two records', () => {
  const whole = sampleChangeset();
  const count = (bytes: Uint8Array) =>
    decodeChangeset(bytes).reduce((sum, table) => sum + table.changes.length, 0);
  assert.equal(count(whole), 5);
  let refused = 0;
  for (let length = 0; length < whole.length; length += 1) {
    try {
      assert.ok(count(whole.subarray(0, length)) < 5);
    } catch (error) {
      assert.ok(
        error instanceof EffectMatchError && error.code === 'ERR_EM_CHANGESET_INVALID',
        String(error),
      );
      refused += 1;
    }
  }
  assert.ok(refused > whole.length - 10, 'only the few ends of whole records may decode');
});

test('property: a damaged changeset decodes to something or fails with the one code, and never hangs', () => {
  const whole = sampleChangeset();
  const damage = fc.array(
    fc.record({ at: fc.nat(whole.length - 1), byte: fc.integer({ min: 0, max: 255 }) }),
    {
      minLength: 1,
      maxLength: 4,
    },
  );
  fc.assert(
    fc.property(damage, fc.uint8Array({ maxLength: 12 }), (edits, tail) => {
      const bytes = Uint8Array.from([...whole, ...tail]);
      for (const { at, byte } of edits) bytes[at] = byte;
      assertDecodes(bytes);
    }),
    { numRuns: 5000 },
  );
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), assertDecodes), { numRuns: 2000 });
});

function assertDecodes(bytes: Uint8Array): void {
  try {
    decodeChangeset(bytes);
  } catch (error) {
    assert.ok(
      error instanceof EffectMatchError && error.code === 'ERR_EM_CHANGESET_INVALID',
      String(error),
    );
  }
}

test('what is not a changeset of today is refused', () => {
  const invalid: { readonly [why: string]: number[] } = {
    'a patchset': [0x50, 1, 1, 0x74, 0],
    'no columns': [0x54, 0, 0x74, 0],
    'no key': [0x54, 1, 0, 0x74, 0],
    'a key with a gap': [0x54, 2, 1, 3, 0x74, 0],
    'an empty table name': [0x54, 1, 1, 0],
    'a table name without end': [0x54, 1, 1, 0x74],
    'a table name that is not UTF-8': [0x54, 1, 1, 0xff, 0],
    'an unknown operation': [0x54, 1, 1, 0x74, 0, 19, 0, 5],
    'an unknown flag': [0x54, 1, 1, 0x74, 0, 18, 2, 5],
    'an unknown storage class': [0x54, 1, 1, 0x74, 0, 18, 0, 6],
    'an insert without a value': [0x54, 1, 1, 0x74, 0, 18, 0, 0],
    'an update without its key': [0x54, 1, 1, 0x74, 0, 23, 0, 0, 0],
    'an update with half a column': [0x54, 2, 1, 0, 0x74, 0, 23, 0, 5, 5, 0, 0],
    NaN: [0x54, 1, 1, 0x74, 0, 18, 0, 2, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0],
    'a length with leading zeros': [0x54, 1, 1, 0x74, 0, 18, 0, 3, 0x80, 1, 0x61],
    'a length beyond 31 bits': [0x54, 1, 1, 0x74, 0, 18, 0, 3, 0x88, 0x80, 0x80, 0x80, 0],
    'a length of nine bytes': [
      0x54, 1, 1, 0x74, 0, 18, 0, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    ],
    'a length that is not there': [0x54, 1, 1, 0x74, 0, 18, 0, 4, 5, 1, 2],
    'a byte too many': [0x54, 1, 1, 0x74, 0, 18, 0, 5, 0],
  };
  for (const [why, bytes] of Object.entries(invalid)) {
    assert.throws(
      () => decodeChangeset(Uint8Array.from(bytes)),
      { code: 'ERR_EM_CHANGESET_INVALID' },
      why,
    );
  }
  assert.deepEqual(decodeChangeset(new Uint8Array()), []);
});

test('a changeset that does not fit the schema, or respells a key, is unclear and not guessed at', () => {
  const shape = { target: 't', columns: [{ name: 'a' }, { name: 'b' }], key: ['a'] };
  const of = (bytes: number[]) =>
    nameRecords(decodeChangeset(Uint8Array.from(bytes)), new Map([['t', shape]]));
  const header = [0x54, 2, 1, 0, 0x74, 0];
  assert.equal(of([...header, 18, 0, 5, 5]).kind, 'records');
  assert.equal(of([0x54, 2, 1, 0, 0x75, 0, 18, 0, 5, 5]).kind, 'unclear', 'another table');
  assert.equal(of([0x54, 1, 1, 0x74, 0, 18, 0, 5]).kind, 'unclear', 'fewer columns');
  assert.equal(of([0x54, 2, 0, 1, 0x74, 0, 18, 0, 5, 5]).kind, 'unclear', 'another key');
  assert.equal(of([...header, 18, 0, 5, 5, 18, 0, 5, 5]).kind, 'unclear', 'the same key twice');
  assert.equal(
    of([...header, 23, 0, 3, 1, 0x41, 0, 3, 1, 0x61, 0]).kind,
    'unclear',
    'a key changed in place',
  );
});
