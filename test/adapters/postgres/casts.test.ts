// Goal: a stated value is cast once and only with built-in code; what cannot be stored is refused
// before a server is asked. Method: columns written by hand and a session that answers each cast;
// `value.test.ts` casts on a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { CastBatch } from '../../../src/adapters/postgres/cast.ts';
import type { ColumnType, PostgresColumn } from '../../../src/adapters/postgres/relation.ts';
import type { Connection, ParameterValue } from '../../../src/postgres/connection.ts';

const TYPE: ColumnType = {
  ...{ oid: 23, text: 'integer', domain: false, base: 'int4', baseSchema: 'pg_catalog', kind: 'b' },
  reading: { kind: 'built-in', text: 'integer' },
};
const column = (type: Partial<ColumnType> = {}, more: Partial<PostgresColumn> = {}) =>
  ({
    name: 'c',
    type: { ...TYPE, ...type },
    notNull: false,
    defaultBuiltIn: true,
    ...more,
  }) as PostgresColumn;
const invalid = (message: RegExp) => ({ code: 'ERR_EM_MANIFEST_INVALID', message });

/** Answers every text with itself, and every constant with 42, in the form of `select n, text`. */
function session(texts: string[] = [], cast: (text: string) => string = (text) => text) {
  const query = async (text: string, values: readonly ParameterValue[] = []) => {
    texts.push(text);
    const lists = values as unknown as readonly (readonly (string | null)[])[];
    const rows: (string | null)[][] = [...text.matchAll(/select '(\d+)'::/g)].map(
      ([, index = '']) => [index, '42'],
    );
    for (let at = 0; at < lists.length; at += 2) {
      for (const [place, index] of (lists[at] ?? []).entries())
        rows.push([index, cast(lists[at + 1]?.[place] ?? '')]);
    }
    return { rows };
  };
  return { query, script: async () => {} } as unknown as Connection;
}

test('before the casts a value comes back as stated, and after them as it was cast', async () => {
  const casts = new CastBatch();
  const domain = column({ domain: true, text: 'app.d' });
  const ask = () => [
    casts.value(column(), '7', 'it'),
    casts.value(column(), '8', 'it'),
    casts.value(domain, null, 'it'),
    casts.constant(column(), '42', 'it'),
  ];
  assert.ok(casts.isEmpty);
  assert.deepEqual(ask(), ['7', '8', null, null]);
  assert.ok(!casts.isEmpty);
  const texts: string[] = [];
  await casts.run(session(texts));
  assert.equal(texts.length, 1, 'all of them in one round trip');
  assert.deepEqual(ask(), [7, 8, null, 42]);
  assert.throws(() => casts.value(column(), '9', 'it'), { code: 'ERR_EM_INVARIANT' });
});

test('NULL needs no cast, except for a domain, and is refused where it cannot be', () => {
  const casts = new CastBatch();
  assert.equal(casts.value(column(), null, 'it'), null);
  assert.ok(casts.isEmpty);
  assert.throws(
    () => casts.value(column({}, { notNull: true }), null, 'it'),
    invalid(/it: it is NOT NULL/),
  );
  casts.value(column({ domain: true }), null, 'it');
  assert.ok(!casts.isEmpty);
  casts.value(column({}, { notNull: true }), 5, 'it');
});

test('what the type cannot hold, and what only code of the application could read, is refused', () => {
  const casts = new CastBatch();
  assert.throws(
    () => casts.value(column(), { a: 1 }, 'it'),
    invalid(/an object belongs in a json/),
  );
  const code = column({ reading: { kind: 'code', why: 'domain app.d has a check' } });
  assert.throws(
    () => casts.value(code, 5, 'it'),
    invalid(/because domain app\.d has a check; state any\(\)/),
  );
  assert.throws(
    () => casts.constant(code, '5', 'it'),
    invalid(/because domain app\.d has a check/),
  );
  const computed = column({}, { defaultBuiltIn: false });
  assert.throws(
    () => casts.constant(computed, 'f()', 'it'),
    invalid(/its default \(f\(\)\) runs code/),
  );
  assert.ok(casts.isEmpty);
});

test('only JSON of the server is cast by its text alone; everything else is read as an assignment reads it', async () => {
  const textOf = async (type: Partial<ColumnType>) => {
    const casts = new CastBatch();
    casts.value(column({ base: 'text', ...type }), '1', 'it');
    const texts: string[] = [];
    await casts.run(session(texts));
    return texts[0] ?? '';
  };
  for (const base of ['json', 'jsonb'])
    assert.doesNotMatch(await textOf({ base }), /json_to_record/);
  for (const type of [
    {},
    { base: 'text' },
    { base: 'json', baseSchema: 'app' },
    { base: 'jsonpath' },
  ]) {
    assert.match(await textOf(type), /json_to_record/, JSON.stringify(type));
  }
});

/** Refuses some texts as a server does, and anything else it is asked for with them. */
function refusing(refused: readonly string[], error: (text: string) => Error = databaseError) {
  const answers = session();
  const query = async (text: string, values: readonly ParameterValue[] = []) => {
    const found = refused.find((one) => JSON.stringify(values).includes(`"${one}"`));
    if (found !== undefined) throw error(found);
    return await answers.query(text, values);
  };
  return { query, script: async () => {} } as unknown as Connection;
}
const databaseError = (text: string) =>
  Object.assign(new pg.DatabaseError(`invalid input: ${text}`, 9, 'error'), { code: '22P02' });

test('a value that the server refuses is named by the place where it was stated first', async () => {
  const casts = new CastBatch();
  for (const text of ['1', '2', 'bad', '4']) casts.value(column(), text, `at ${text}`);
  casts.value(column(), 'bad', 'elsewhere');
  await assert.rejects(casts.run(refusing(['bad'])), invalid(/^at bad: .*invalid input: bad/));
});

test('a server that is gone is a fault, and so is one that does not answer everything or answers nonsense', async () => {
  const batch = () => {
    const casts = new CastBatch();
    casts.value(column(), '1', 'it');
    return casts;
  };
  const gone = refusing(['1'], () => new Error('the connection broke'));
  await assert.rejects(batch().run(gone), {
    code: 'ERR_EM_ADAPTER_UNAVAILABLE',
    message: /values could not be cast: .*the connection broke/,
  });
  const answering = (rows: readonly unknown[]) =>
    ({ query: async () => ({ rows }), script: async () => {} }) as unknown as Connection;
  await assert.rejects(batch().run(answering([])), { code: 'ERR_EM_INVARIANT' });
  await assert.rejects(batch().run(answering([['0', 'x']])), /integer/);
});

test('constants, texts and NULL of one type are different questions, and parameters are only for texts', async () => {
  const domain = column({
    domain: true,
    text: 'app.d',
    base: 'text',
    reading: { kind: 'built-in', text: 'text' },
  });
  const casts = new CastBatch();
  const ask = () => [casts.value(domain, null, 'it'), casts.value(domain, 'null', 'it')];
  ask();
  await casts.run(session([], (text) => `${text} as cast`));
  assert.deepEqual(ask(), [null, 'null as cast']);

  const constants = new CastBatch();
  constants.constant(column(), '1', 'it');
  constants.constant(column(), '2', 'it');
  let bound: readonly unknown[] = [];
  let asked = '';
  const query = async (text: string, values: readonly unknown[] = []) => {
    [asked, bound] = [text, values];
    return {
      rows: [
        ['0', '1'],
        ['1', '2'],
      ],
    };
  };
  await constants.run({ query, script: async () => {} } as unknown as Connection);
  assert.deepEqual(bound, []);
  assert.doesNotMatch(asked, /unnest/);
  assert.deepEqual(
    [constants.constant(column(), '1', 'it'), constants.constant(column(), '2', 'it')],
    [1, 2],
  );
});
