// Goal: an approval says what the columns would store, with exactly the columns that a changeset
// reports. Method: manifests through the adapter, compared with what real inserts into the real
// tables leave.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { bindValue } from '../../../src/adapters/sqlite/value.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import {
  absent,
  any,
  between,
  draftManifest,
  from,
  generated,
  insert,
  matches,
  now,
  oneOf,
  read,
  remove,
  row,
  to,
  update,
  writes,
} from '../../../src/protocol/draft.ts';
import type { ApprovedEffect, Requirement, StateRead } from '../../../src/protocol/effect.ts';
import type { Manifest } from '../../../src/protocol/manifest.ts';
import type { Value } from '../../../src/protocol/value.ts';
import { freshFile, gapsOf, observe, open, type SqliteAdapter } from './database.ts';
import { cellText } from './oracle.ts';

const TYPES = [
  '',
  'integer',
  'int',
  'bigint unsigned',
  'varchar(10)',
  'text',
  'character(3)',
  'clob',
  'blob',
  'real',
  'double precision',
  'floating point',
  'numeric',
  'decimal(10,2)',
  'boolean',
  'date',
  'json',
  'any',
  'xyz',
  '"we ird"',
];
const STRICT_TYPES = ['int', 'integer', 'real', 'text', 'blob', 'any'];
const SCHEMA = `
  create table plain (id integer primary key, ${TYPES.map((type, at) => `c${at} ${type}`).join(', ')});
  create table tight (id integer primary key, ${STRICT_TYPES.map((type, at) => `c${at} ${type}`).join(', ')}) strict;
  create table pair (a text not null, b integer not null, n numeric, seen text, g as (a || b), primary key (b, a));
  create table filled (id integer primary key, a text not null default 'it''s', b default -1.50, c int default '7',
    d default null, e blob default x'C0', f default true, g text not null, h default (1 + 1), i default current_timestamp,
    j real default 5, k default 0x10);
  create table free (name text primary key not null, v);
  insert into free values ('x', 1);
`;
const RELATIONS = ['plain', 'tight', { name: 'pair', volatile: ['seen'] }, 'filled'];

function manifest(
  effects: readonly ApprovedEffect[],
  state: { requires?: readonly Requirement[]; watch?: readonly StateRead[] } = {},
): Manifest {
  return draftManifest({ adapter: 'books', task: 'task', planRevision: 1, effects, ...state });
}

async function normaliseOne(
  adapter: SqliteAdapter,
  effect: ApprovedEffect,
): Promise<ApprovedEffect> {
  const { effects } = await adapter.normalise(manifest([effect]));
  return effects[0] ?? assert.fail('an effect was lost');
}

async function assertInvalid(adapter: SqliteAdapter, input: Manifest, why: RegExp): Promise<void> {
  await assert.rejects(adapter.normalise(input), { code: 'ERR_EM_MANIFEST_INVALID', message: why });
}

const value: fc.Arbitrary<Value> = fc.oneof(
  fc.constantFrom<Value>(
    null,
    true,
    false,
    0,
    1,
    1.5,
    35,
    '35',
    '35.00',
    '1e3',
    ' 7 ',
    'x',
    '',
    '0x10',
    'inf',
    '9223372036854775808',
    '-0',
  ),
  fc.constantFrom<Value>(
    { $real: '35.0' },
    { $real: '-0.0' },
    { $real: 'Infinity' },
    { $int: '9007199254740993' },
    { $bytes: '' },
    { $bytes: '3335' },
    { $text: 'ff' },
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
  fc.maxSafeInteger(),
  fc.string({ maxLength: 5 }).map((text) => text.toWellFormed()),
);

test('property: a normalised value is what the real column stores, in every declared type', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  using db = new DatabaseSync(':memory:');
  db.exec(SCHEMA);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('plain', 'tight'),
      fc.nat(TYPES.length - 1),
      value,
      async (table, at, given) => {
        const column = `c${table === 'tight' ? at % STRICT_TYPES.length : at}`;
        const stored = storeReally(db, table, column, given);
        const effect: ApprovedEffect = {
          op: 'update',
          target: table,
          key: { id: { is: 1 } },
          before: { [column]: { any: true } },
          after: { [column]: { is: given } },
          count: 1,
        };
        if (stored === undefined) {
          await assertInvalid(adapter, manifest([effect]), /STRICT table does not take it/);
          return;
        }
        const after = (await normaliseOne(adapter, effect)).after?.[column];
        assert.ok(after !== undefined && 'is' in after);
        assert.equal(cellText(after.is), stored);
      },
    ),
    { numRuns: 600 },
  );
});

/** typeof() and hex() of what the column keeps; undefined where it does not take the value. */
function storeReally(
  db: DatabaseSync,
  table: string,
  column: string,
  given: Value,
): string | undefined {
  const bound = bindValue(given) ?? assert.fail();
  db.exec(`delete from ${table}`);
  try {
    db.prepare(
      `insert into ${table} (id, ${column}) values (1, ${bound.isText ? 'cast(? as text)' : '?'})`,
    ).run(bound.parameter);
  } catch {
    return undefined;
  }
  const found = db
    .prepare(
      `select typeof(${column}) as t, hex(cast(${column} as blob)) as h, case typeof(${column}) when 'real' then ${column} end as r from ${table}`,
    )
    .get();
  const real = found?.r;
  if (typeof real !== 'number') return `${found?.t} ${found?.h}`;
  const bits = Buffer.alloc(8);
  bits.writeDoubleBE(real);
  return `real ${bits.toString('hex')}`;
}

test('an insert gets key and columns apart and its constant defaults, as a real insert leaves them', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const effect = await normaliseOne(
    adapter,
    insert('filled', { id: 5, g: 'given', h: 2, i: any() }),
  );
  assert.deepEqual(effect.key, { id: { is: 5 } });
  assert.deepEqual(Object.keys(effect.after ?? {}), [
    'a',
    'b',
    'c',
    'd',
    'e',
    'f',
    'g',
    'h',
    'i',
    'j',
    'k',
  ]);
  const { records } = await observe(adapter, {
    sql: "insert into filled (id, g) values (5, 'given')",
  });
  for (const [column, cell] of Object.entries(effect.after ?? {})) {
    if ('is' in cell) assert.deepEqual(cell.is, [...records][0]?.after?.[column], column);
  }
  assert.deepEqual(effect.after?.a, { is: "it's" });
  assert.deepEqual(effect.after?.b, { is: { $real: '-1.5' } });
  assert.deepEqual(effect.after?.j, { is: { $real: '5.0' } });
});

test('updates and deletes get exactly the columns that a changeset reports', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  assert.deepEqual(
    await normaliseOne(adapter, update('pair', { a: 7, b: '1' }, { n: to('5.0'), seen: 'now' })),
    {
      op: 'update',
      target: 'pair',
      key: { a: { is: '7' }, b: { is: 1 } },
      before: { n: { any: true } },
      after: { n: { is: 5 } },
      count: 1,
    },
  );
  assert.deepEqual(
    await normaliseOne(
      adapter,
      update('pair', { a: 'x', b: 1 }, { n: [oneOf(1, '2'), between('3', '4.5')] }),
    ),
    {
      op: 'update',
      target: 'pair',
      key: { a: { is: 'x' }, b: { is: 1 } },
      before: { n: { oneOf: [1, 2] } },
      after: { n: { between: [3, { $real: '4.5' }] } },
      count: 1,
    },
  );
  assert.deepEqual(
    await normaliseOne(adapter, update('pair', { a: 'x', b: 1 }, { n: from(true, any()) })),
    {
      op: 'update',
      target: 'pair',
      key: { a: { is: 'x' }, b: { is: 1 } },
      before: { n: { is: 1 } },
      after: { n: { any: true } },
      count: 1,
    },
  );
  assert.deepEqual(await normaliseOne(adapter, remove('pair', { b: 1, a: 'x' })), {
    op: 'delete',
    target: 'pair',
    key: { a: { is: 'x' }, b: { is: 1 } },
    before: { n: { any: true } },
    count: 1,
  });
  assert.deepEqual(
    (await normaliseOne(adapter, remove('pair', { b: 1, a: 'x' }, { n: '2', seen: 'x' }))).before,
    {
      n: { is: 2 },
    },
  );
});

test('constraints pass through, and a label needs a key that SQLite assigns', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const effects = [
    insert('plain', { id: generated('new'), c5: matches('a*'), c15: now({ within: 5 }) }),
    insert('pair', { a: 'ref', b: generated('new'), n: generated('new') }),
  ];
  const normal = await adapter.normalise(manifest(effects));
  assert.deepEqual(normal.effects[1]?.after, { n: { generated: 'new' } });
  assert.deepEqual(normal.effects[0]?.after?.c5, { matches: 'a*' });
  await assertInvalid(
    adapter,
    manifest([insert('pair', { a: 'x', b: generated('other') })]),
    /INTEGER PRIMARY KEY/,
  );
});

test('normalising twice changes nothing, and nothing is written', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const once = await adapter.normalise(
    manifest(
      [
        insert('filled', { id: generated('n'), g: 1, h: any(), i: now({ within: '1s' }) }),
        insert('tight', { id: 1, c0: '5', c2: '2.5', c5: 1.5 }),
        update('pair', { a: 'x', b: 1 }, { n: '1' }),
        remove('plain', { id: '3' }, { c8: new Uint8Array([1]) }),
      ],
      {
        requires: [row('pair', { a: 1, b: '2' }, { n: true }), absent('free', { name: 5 })],
        watch: [read('free', { name: 'x' }, ['v'])],
      },
    ),
  );
  assert.equal(canonical(await adapter.normalise(once)), canonical(once));
  assert.deepEqual(once.requires, [
    { target: 'pair', key: { a: '1', b: 2 }, row: { n: 1 } },
    { target: 'free', key: { name: '5' }, row: null },
  ]);
  assert.deepEqual(once.watch, [{ target: 'free', key: { name: 'x' }, columns: ['v'] }]);
});

test('columns with names that every object has are columns like any other', async () => {
  const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf'];
  const file = freshFile(
    `create table odd (id integer primary key, ${names.map((name) => `"${name}" default 1`)}); insert into odd (id) values (1)`,
  );
  await using adapter = await open({ file, relations: ['odd'] });
  const inserted = await normaliseOne(adapter, insert('odd', { id: 2 }));
  assert.deepEqual(inserted.after, Object.fromEntries(names.map((name) => [name, { is: 1 }])));
  const removed = await normaliseOne(adapter, remove('odd', { id: 1 }));
  assert.deepEqual(removed.before, Object.fromEntries(names.map((name) => [name, { any: true }])));
  const { records } = await observe(adapter, { sql: 'update odd set "constructor" = 2' });
  assert.deepEqual([...records][0]?.after, { constructor: 2 });
});

test('what cannot be meant is refused with what to change', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const key = { a: 'x', b: 1 };
  const refused: readonly (readonly [ApprovedEffect, RegExp])[] = [
    [insert('plane', {}), /"plane" is not registered \(did you mean "plain"\?\)/],
    [insert('free', { name: 'y' }), /"free" is not registered/],
    [insert('filled', { id: 1, gg: 1 }), /no column "gg" \(did you mean "/],
    [insert('filled', { id: 1, g: 'x', i: 1 }), /column "h".*computed.*now\(\)/],
    [insert('filled', { id: 1, h: 1, i: 1 }), /column "g".*NOT NULL/],
    [insert('filled', { g: 'x', h: 1, i: 1 }), /generated\('new filled'\)/],
    [insert('filled', { id: 'five', g: 'x', h: 1, i: 1 }), /INTEGER PRIMARY KEY holds integers/],
    [insert('filled', { id: null, g: 'x', h: 1, i: 1 }), /INTEGER PRIMARY KEY holds integers/],
    [insert('pair', { ...key, g: 'x1' }), /"g" is computed from other columns/],
    [insert('plain', { id: 1, c5: { json: true } }), /write JSON as the text/],
    [insert('plain', { id: 1, c5: [1] }), /write JSON as the text/],
    [insert('plain', { id: 1, c1: 2n ** 70n }), /SQLite stores|cannot store/],
    [insert('tight', { id: 1, c0: 'five' }), /STRICT/],
    [update('pair', { a: 'x' }, { n: 1 }), /lacks "b"/],
    [update('pair', { ...key, n: 1 }, { n: 1 }), /"n" is not a key column.*"b", "a"/],
    [update('pair', key, { a: ['x', 'y'] }), /part of the key; state a delete and an insert/],
    [update('pair', key, { seen: 'x' }), /volatile/],
    [update('pair', key, {}), /changes no column/],
    [update('pair', key, { n: [5, '5.0'] }), /same before and after/],
    [remove('pair', key, { a: 'x' }), /part of the key/],
    [remove('pair', null, { n: 1 }), /lacks "b", "a"/],
    [writes('insert', 'plain', 3), /need the profile relation-write/],
    [update('pair', key, { n: between('10', '9') }), /column "n": between/],
    [insert('pair', { a: between(9, 10), b: 1 }), /column "a": between/],
  ];
  for (const [effect, why] of refused) await assertInvalid(adapter, rawManifest([effect]), why);
  const state = (part: object) => ({ ...manifest([]), ...part });
  await assertInvalid(
    adapter,
    state({ requires: [row('nowhere', { id: 1 }, {})] }),
    /no such table/,
  );
  await assertInvalid(
    adapter,
    state({ requires: [row('pair', { a: 1 }, {})] }),
    /requires\[0\].*lacks/,
  );
  await assertInvalid(
    adapter,
    state({ requires: [row('pair', { a: 1, b: 1 }, { nope: 1 })] }),
    /no column "nope"/,
  );
  await assertInvalid(
    adapter,
    state({ watch: [read('pair', { a: 1, b: 1 }, ['g'])] }),
    /computed from other columns/,
  );
  await assertInvalid(
    adapter,
    state({ watch: [read('effectmatch_marker', { occurrence: 'x' })] }),
    /belongs to EffectMatch/,
  );
});

/** Past the checks of drafts, as a manifest from elsewhere would come. */
function rawManifest(effects: readonly ApprovedEffect[]): Manifest {
  return { ...manifest([]), effects: [...effects] };
}

test('reads find a row by exactly its key and return what is stored', async () => {
  const file = freshFile(`create table nc (k text primary key not null collate nocase, v);
    create table loose (k not null primary key, v); create table raw (k text primary key not null, v);
    insert into nc values ('Ann', x'00ff'), ('bob', 9007199254740993);
    insert into loose values (1, 'int'), ('1', 'text'), (x'31', 'blob'), (2.5, -0.0);
    insert into raw values (cast(x'ff41' as text), cast(x'fe' as text))`);
  await using adapter = await open({ file, relations: ['nc', 'loose', 'raw'] });
  const rowOf = async (target: string, k: Value) =>
    (await adapter.read([{ target, key: { k }, columns: ['v'] }]))[0]?.row;
  assert.deepEqual(await rowOf('nc', 'Ann'), { v: { $bytes: '00ff' } });
  assert.equal(await rowOf('nc', 'ann'), null, 'another spelling is another key');
  assert.deepEqual(await rowOf('nc', 'bob'), { v: { $int: '9007199254740993' } });
  assert.deepEqual(await rowOf('loose', 1), { v: 'int' });
  assert.equal(await rowOf('loose', { $real: '1.0' }), null);
  assert.deepEqual(await rowOf('loose', '1'), { v: 'text' });
  assert.deepEqual(await rowOf('loose', { $bytes: '31' }), { v: 'blob' });
  assert.deepEqual(await rowOf('loose', 2.5), { v: { $real: '-0.0' } });
  assert.deepEqual(await rowOf('raw', { $text: 'ff41' }), { v: { $text: 'fe' } });
  assert.deepEqual(await adapter.read([{ target: 'raw', key: { k: { $text: 'ff41' } } }]), [
    {
      target: 'raw',
      key: { k: { $text: 'ff41' } },
      row: { k: { $text: 'ff41' }, v: { $text: 'fe' } },
    },
  ]);
  await assert.rejects(adapter.read([{ target: 'raw', key: {} }]), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
  assert.deepEqual(gapsOf(adapter, await observe(adapter, { sql: 'update raw set v = null' })), []);
});
