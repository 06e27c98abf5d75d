// Goal: a value is read as a type without code of the application, or it is said which code that
// would be. Method: types written by hand; `types.test.ts` reads them from a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TypeGraph } from '../../../src/adapters/postgres/types.ts';

type Found = ConstructorParameters<typeof TypeGraph>[0][number];
const type = (oid: number, name: string, more: Partial<Found> = {}): Found => ({
  ...{
    oid,
    schema: 'app',
    name,
    kind: 'b',
    base: null,
    element: null,
    parts: [],
    code: null,
    ...more,
  },
});
const CODE = 'has a check';
const STRICT = type(20_000, 'strict', {
  kind: 'd',
  base: { oid: 23, text: 'integer' },
  code: CODE,
});
const CALM = type(20_001, 'calm', { kind: 'd', base: { oid: 23, text: 'integer' } });
const SHAPE = type(20_002, 'shape', { code: 'has functions' });
const graphOf = (...types: readonly Found[]) => new TypeGraph([STRICT, CALM, SHAPE, ...types]);
const builtIn = (text: string) => ({ kind: 'built-in', text });

test('types of the server, and those without code, are read as themselves', () => {
  assert.deepEqual(graphOf().readingOf(23, 'integer'), builtIn('integer'));
  assert.deepEqual(graphOf().readingOf(CALM.oid, 'app.calm'), builtIn('app.calm'));
  assert.deepEqual(
    graphOf(type(23, 'int4', { code: CODE })).readingOf(23, 'integer'),
    builtIn('integer'),
  );
});

test('a domain with code is read as what is beneath it, also in an array', () => {
  const outer = type(20_010, 'outer', {
    kind: 'd',
    base: { oid: STRICT.oid, text: 'app.strict' },
    code: CODE,
  });
  const array = type(20_011, '_strict', {
    element: { oid: STRICT.oid, text: 'app.strict' },
    parts: [STRICT.oid],
  });
  const graph = graphOf(outer, array);
  assert.deepEqual(graph.readingOf(outer.oid, 'app.outer'), builtIn('integer'));
  assert.deepEqual(graph.readingOf(array.oid, 'app.strict[]'), builtIn('integer[]'));
});

test('a type with functions of its own cannot be read, nor an array of it', () => {
  const array = type(20_011, '_shape', {
    element: { oid: SHAPE.oid, text: 'app.shape' },
    parts: [SHAPE.oid],
  });
  const code = { kind: 'code', why: 'type app.shape has functions' };
  assert.deepEqual(graphOf().readingOf(SHAPE.oid, 'app.shape'), code);
  assert.deepEqual(graphOf(array).readingOf(array.oid, 'app.shape[]'), code);
  assert.deepEqual(graphOf().readingOf(30_000, 'x'), {
    kind: 'code',
    why: 'type 30000 was not found',
  });
});

test('the code behind a type is that of its parts too, and what leads back to itself ends', () => {
  const pair = type(20_010, 'pair', { kind: 'c', parts: [CALM.oid, 20_011] });
  const inner = type(20_011, 'inner', { kind: 'c', parts: [20_010, STRICT.oid] });
  assert.equal(graphOf(pair, inner).codeBehind(pair.oid), 'domain app.strict has a check');
  const round = [type(20_010, 'a', { parts: [20_011] }), type(20_011, 'b', { parts: [20_010] })];
  assert.equal(graphOf(...round).codeBehind(20_010), undefined);
  for (const [kind, word] of Object.entries({
    d: 'domain',
    c: 'composite type',
    r: 'range',
    m: 'multirange',
    b: 'type',
  })) {
    assert.equal(
      graphOf(type(20_010, 'x', { kind, code: CODE })).codeBehind(20_010),
      `${word} app.x ${CODE}`,
    );
  }
});
