// Goal: an identifier counts as drawn by the database only if it was inserted and no row had it
// before. Method: records written by hand, and a table that is asked which identifiers it has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freshIdentifiers, randomColumns } from '../../../src/adapters/postgres/fresh.ts';
import type { PostgresRelation } from '../../../src/adapters/postgres/relation.ts';
import type { ChangeRecord } from '../../../src/protocol/effect.ts';

const column = (
  name: string,
  base = 'uuid',
  defaultText: string | undefined = 'gen_random_uuid()',
) => ({
  ...{ name, type: { base, baseSchema: 'pg_catalog' }, defaultText },
});
const relation = (key: readonly string[]) =>
  ({
    target: 'link',
    key,
    columns: [column('id'), column('note', 'text'), column('token')],
  }) as unknown as PostgresRelation;
const KEYED = relation(['id']);

const record = (
  op: ChangeRecord['op'],
  before: object | null,
  after: object | null,
  target = 'link',
) => ({ op, target, key: null, before, after }) as unknown as ChangeRecord;
const added = (after: object, target?: string) => record('insert', null, after, target);

/** What is fresh in each column, and what the table was asked for. */
async function freshIn(records: readonly ChangeRecord[], used: readonly string[] = [], of = KEYED) {
  const asked: (readonly string[])[] = [];
  const evidence = await freshIdentifiers(randomColumns(of), records, async (_, identifiers) => {
    asked.push(identifiers);
    return new Set(used);
  });
  return { fresh: evidence.map((one) => ('fresh' in one ? one.fresh : [])), asked };
}

test('the columns are those that a default fills with identifiers, and the key is known as one', () => {
  const found = (key: readonly string[]) =>
    randomColumns(relation(key)).map((one) => [one.column, one.isKey]);
  assert.deepEqual(found(['id']), [
    ['id', true],
    ['token', false],
  ]);
  for (const key of [['id', 'note'], ['note'], []]) {
    assert.deepEqual(
      found(key).map(([, isKey]) => isKey),
      [false, false],
    );
  }
});

test('inserted identifiers are fresh unless a row had them, and only doubtful ones are asked for', async () => {
  const records = [added({ id: 'a', token: 't' }), added({ id: 'b', token: 'u' })];
  assert.deepEqual(await freshIn(records), {
    fresh: [
      ['a', 'b'],
      ['t', 'u'],
    ],
    asked: [[], ['t', 'u']],
  });
  assert.deepEqual((await freshIn(records, ['t'])).fresh, [['a', 'b'], ['u']]);
  const apart = await freshIn(records, ['a'], relation(['id', 'note']));
  assert.deepEqual(apart, {
    fresh: [['b'], ['t', 'u']],
    asked: [
      ['a', 'b'],
      ['t', 'u'],
    ],
  });
});

test('updates, deletions, other tables and rows without an identifier add nothing', async () => {
  const records = [
    record('update', { id: 'a', token: 't' }, { id: 'a', token: 'u' }),
    record('delete', { id: 'b', token: 'v' }, null),
    added({ id: 'c', token: 'w' }, 'other'),
    added({ token: null }),
    record('insert', null, null),
  ];
  assert.deepEqual(await freshIn(records), { fresh: [[], []], asked: [[], []] });
});

test('a key that the action freed, or gave to several rows, is doubtful', async () => {
  const freed = [record('delete', { id: 'a' }, null), added({ id: 'a' })];
  assert.deepEqual((await freshIn(freed)).asked[0], ['a']);
  const moved = [
    record('update', { id: 'a' }, { id: 'b' }),
    added({ id: 'a' }),
    added({ id: 'c' }),
  ];
  assert.deepEqual((await freshIn(moved)).asked[0], ['a']);
  const elsewhere = [record('delete', { id: 'a' }, null, 'other'), added({ id: 'a' })];
  assert.deepEqual((await freshIn(elsewhere)).asked[0], []);
  const changed = [added({ id: 'a' }), record('update', { id: 'a' }, { id: 'a' })];
  assert.deepEqual((await freshIn(changed)).asked[0], []);
  const twice = [added({ id: 'a' }), added({ id: 'a' })];
  assert.deepEqual((await freshIn(twice)).asked[0], ['a', 'a']);
});
