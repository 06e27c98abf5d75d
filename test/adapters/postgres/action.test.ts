// Goal: an action is checked completely before anything is claimed, copied, and described the same
// however it is written. Method: every shape and every refusal; what was checked runs on a real
// server and arrives as it was meant.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  type ActionTools,
  describeAction,
  isProbe,
  parseAction,
  probeAction,
} from '../../../src/adapters/postgres/action.ts';
import { demandEntries } from '../../../src/adapters/postgres/entry.ts';
import { loadGate } from '../../../src/adapters/postgres/statement-gate.ts';
import { sqlName } from '../../../src/postgres/identifier.ts';
import { openDatabase } from './session.ts';

const SETUP = `
create schema "My App";
create table t (n int primary key, v text);
create type mood as enum ('sad', 'happy');
create function "My App"."Add it"(a int, b mood default 'sad', out c text) language sql as $$ select a || '/' || b $$;
create procedure move(a int, out done boolean, inout b text) language plpgsql as
  $$ begin insert into t values (a, b); done := true; end $$;
create function twice(int) returns int language sql as 'select $1 * 2';
create function twice(text) returns text language sql as 'select $1 || $1';
create function many(variadic int[]) returns int language sql as 'select 1';
`;

let database: Awaited<ReturnType<typeof openDatabase>>;
let tools: ActionTools;

before(async () => {
  database = await openDatabase(SETUP);
  const names = [
    { schema: 'My App', name: 'Add it' },
    { schema: 'public', name: 'move' },
  ];
  const entries = await demandEntries(database.control, names);
  tools = {
    gate: await loadGate(),
    entries: new Map(entries.map((entry) => [sqlName(entry), entry])),
  };
});

after(() => database[Symbol.asyncDispose]());

const parse = (input: unknown) => parseAction(tools, input);

/** Runs a checked action in a transaction that is rolled back; the rows of its last statement. */
async function run(input: unknown) {
  const { statements } = parse(input);
  await database.control.query('begin');
  try {
    const replies = [];
    for (const { sql, values } of statements)
      replies.push(await database.control.query(sql, values));
    return replies.at(-1)?.rows;
  } finally {
    await database.control.query('rollback');
  }
}

test('values arrive as they were meant', async () => {
  const sql =
    'select $1::int, $2::bigint, $3::boolean, $4::bytea, $5::text[], $6::float8, $7::numeric, $8::text';
  const values = [
    1,
    2n ** 62n,
    true,
    Uint8Array.of(0, 255),
    ['a,b', null, '"\\', 'NULL'],
    -0,
    { $dec: '1.50' },
    null,
  ];
  const text = '{"a,b",NULL,"\\"\\\\","NULL"}';
  assert.deepEqual(await run({ sql, values }), [
    ['1', '4611686018427387904', 't', '\\x00ff', text, '-0', '1.50', null],
  ]);
  assert.deepEqual(
    await run({
      sql: 'select $1::int[][]',
      values: [
        [
          [1, 2],
          [3, 4],
        ],
      ],
    }),
    [['{{1,2},{3,4}}']],
  );
});

test('entry points are called with their types, and what a procedure returns needs no value', async () => {
  assert.deepEqual(await run({ call: '"My App"."Add it"', values: [7, 'happy'] }), [['7/happy']]);
  assert.deepEqual(
    await run({ statements: [{ call: 'public.move', values: [1, 'x'] }, { sql: 'table t' }] }),
    [['1', 'x']],
  );
  assert.deepEqual(
    await run({
      statements: [{ sql: "call move($1, null, 'y')", values: [2] }, { sql: 'table t' }],
    }),
    [['2', 'y']],
  );
});

test('the same action has the same description however it is written', () => {
  const one = parse({ sql: 'select $1', values: [5] });
  assert.deepEqual(describeAction(one), { statements: [{ sql: 'select $1', values: ['5'] }] });
  assert.deepEqual(
    describeAction(parse({ statements: [{ sql: 'select $1', values: [5n] }] })),
    describeAction(one),
  );
  assert.deepEqual(describeAction(parse({ call: 'public.move', values: [1, null] })), {
    statements: [{ call: 'move', values: ['1', null] }],
  });
});

test('the copy does not follow what the agent still holds', () => {
  const bytes = Uint8Array.of(1);
  const values = [bytes, ['a']];
  const action = parse({ sql: 'select $1, $2', values });
  bytes[0] = 9;
  values.length = 0;
  assert.deepEqual(action.statements[0]?.values, ['\\x01', '{"a"}']);
});

test('a probe is nothing that an action can be', () => {
  const probe = probeAction('token');
  assert.equal(isProbe(probe), true);
  assert.throws(() => parse({ sql: probe.statements[0]?.sql, values: ['token'] }), {
    code: 'ERR_EM_ACTION_INVALID',
  });
  assert.equal(isProbe(parse({ sql: 'select 1' })), false);
});

const hostile = new Proxy(
  {},
  {
    getPrototypeOf: () => {
      throw new Error('no');
    },
  },
);

for (const [what, input, message] of [
  ['nothing', undefined, /plain object/],
  ['a text', 'select 1', /plain object/],
  ['an unknown field', { sql: 'select 1', params: [] }, /unknown field "params"/],
  [
    'an accessor',
    {
      get sql() {
        return 'select 1';
      },
    },
    /without accessors/,
  ],
  ['a proxy that throws', hostile, /not plain data/],
  ['no statements', { statements: [] }, /list of 1 to 1000/],
  ['a nested list', { statements: [{ statements: [] }] }, /unknown field "statements"/],
  ['an empty text', { sql: ' ' }, /one statement/],
  ['a NUL character', { sql: 'select 1\0' }, /sql has a NUL character/],
  ['a long text', { sql: `select ${'1'.repeat(1024 * 1024)}` }, /longer than/],
  [
    'a refused statement',
    { statements: [{ sql: 'select 1' }, { sql: 'commit' }] },
    /statement 2: COMMIT/,
  ],
  [
    'too few values',
    { sql: 'select $1, $2', values: [1] },
    /the statement takes 2 values, but 1 was given/,
  ],
  [
    'too many values',
    { sql: 'select 1', values: [1] },
    /the statement takes no values, but 1 was given/,
  ],
  ['named values', { sql: 'select $1', values: { a: 1 } }, /no named parameters/],
  ['an integer that may have been rounded', { sql: 'select $1', values: [2 ** 53] }, /BigInt/],
  ['one in a list', { sql: 'select $1', values: [[1, 2 ** 53]] }, /BigInt/],
  ['NaN', { sql: 'select $1', values: [Number.NaN] }, /NaN/],
  [
    'a value that is undefined',
    { sql: 'select $1', values: [undefined] },
    /value 1: a value is null/,
  ],
  ['a date', { sql: 'select $1', values: [new Date(0)] }, /value 1 must be a plain object/],
  ['an object', { sql: 'select $1', values: [{ a: 1 }] }, /JSON is text/],
  ['a text with NUL', { sql: 'select $1', values: ['\0'] }, /NUL/],
  ['a lone surrogate', { sql: 'select $1', values: ['\ud800'] }, /lone surrogate/],
  [
    'lists in lists without end',
    { sql: 'select $1', values: [[[[[[[[1]]]]]]]] },
    /at most 6 dimensions/,
  ],
  [
    'an unknown entry point',
    { call: 'twice', values: [1] },
    /registered are "My App"\."Add it", move/,
  ],
  ['a call with sql', { call: 'move', sql: 'x' }, /unknown field "sql"/],
  [
    'a call with too few values',
    { call: 'move', values: [1] },
    /move takes 2 values, but 1 was given/,
  ],
  ['a call that is no name', { call: 'move(1); commit' }, /must name a registered entry point/],
] as const) {
  test(`${what} is refused`, () => {
    assert.throws(
      () => parse(input),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'ERR_EM_ACTION_INVALID');
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('entry points that a name does not identify are refused', async () => {
  const names = ['twice', 'many', 'mov', 'count'].map((name) => ({
    schema: name === 'count' ? 'pg_catalog' : 'public',
    name,
  }));
  const why: string[] = [];
  for (const name of names)
    await demandEntries(database.control, [name]).then(
      () => why.push('usable'),
      (error: Error) => why.push(error.message),
    );
  assert.match(
    why[0] ?? '',
    /there are 2 of this name; write one of twice\(integer\), twice\(text\)/,
  );
  assert.match(why[1] ?? '', /any number of arguments/);
  assert.match(why[2] ?? '', /no such function or procedure \(did you mean "move"/);
  assert.match(why[3] ?? '', /there are 2 of this name/);
});
