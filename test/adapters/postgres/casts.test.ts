// Goal: a stated value is cast once and only with built-in code; what cannot be stored is refused
// before a server is asked. Method: columns written by hand and a session that answers each cast;
// `value.test.ts` casts on a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
function session(texts: string[] = []) {
  const query = async (text: string, values: readonly ParameterValue[] = []) => {
    texts.push(text);
    const lists = values as unknown as readonly (readonly (string | null)[])[];
    const rows: (string | null)[][] = [...text.matchAll(/select '(\d+)'::/g)].map(
      ([, index = '']) => [index, '42'],
    );
    for (let at = 0; at < lists.length; at += 2) {
      for (const [place, index] of (lists[at] ?? []).entries())
        rows.push([index, lists[at + 1]?.[place] ?? '']);
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
  casts.value(column({}, { notNull: true }), 5, 'it');
  casts.value(column({ domain: true }), null, 'it');
  assert.ok(!casts.isEmpty);
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
