// Goal: a manifest states what a table or sequence can have, and is told in words what it cannot.
// Method: columns and sequences written by hand, without a server; what is cast is only handed
// through.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CastBatch } from '../../../src/adapters/postgres/cast.ts';
import { describeColumn, type FoundColumn } from '../../../src/adapters/postgres/catalog.ts';
import { keyedRelation } from '../../../src/adapters/postgres/reading.ts';
import {
  assignedBy,
  type ColumnType,
  type PostgresColumn,
  type PostgresRelation,
} from '../../../src/adapters/postgres/relation.ts';
import { PostgresSchema } from '../../../src/adapters/postgres/schema.ts';
import { TypeGraph } from '../../../src/adapters/postgres/types.ts';
import { between, oneOf, unused } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect, Cell } from '../../../src/protocol/effect.ts';
import type { Value } from '../../../src/protocol/value.ts';

const TYPE: ColumnType = {
  oid: 23,
  text: 'integer',
  reading: { kind: 'built-in', text: 'integer' },
  domain: false,
  base: 'int4',
  baseSchema: 'pg_catalog',
  kind: 'b',
};

function column(name: string, more: Partial<PostgresColumn> = {}): PostgresColumn {
  const none = { defaultText: undefined, sequence: undefined, draws: [] };
  return {
    name,
    type: TYPE,
    notNull: false,
    defaultBuiltIn: true,
    generated: false,
    identity: false,
    ...none,
    ...more,
  };
}

function relation(
  target: string,
  columns: readonly PostgresColumn[],
  more: Partial<PostgresRelation> = {},
): PostgresRelation {
  const name = { schema: 'public', name: target };
  return { ...name, oid: 1, target, columns, key: ['id'], leaves: [], partitioned: false, ...more };
}

const SEQUENCE = {
  schema: 'public',
  name: 'invoice_id_seq',
  oid: 2,
  increment: '1',
  start: '1',
  cache: '1',
};
const INVOICE = relation('invoice', [column('id', { sequence: SEQUENCE })]);
const AUDIT = relation('audit', [column('id')]);

/** Values are cast by the server; here it is only seen what would be cast. */
const casts = {
  value: (_: PostgresColumn, value: Value) => ({ cast: value }),
  constant: (_: PostgresColumn, text: string) => ({ constant: text }),
} as unknown as CastBatch;
const target = (name: string) => ({ name, columns: [], key: [], volatile: [] });
const schema = new PostgresSchema(
  {
    registration: {
      profile: 'row-event',
      values: 'plain',
      targets: [target('invoice'), target('invoice_id_seq'), target('Sales.Seq')],
    },
    relations: new Map([INVOICE, AUDIT].map((one) => [one.target, one])),
    views: [
      { schema: 'public', name: 'pending' },
      { schema: 'sales', name: 'open' },
    ],
  },
  casts,
);
const invalid = (message: RegExp) => ({ code: 'ERR_EM_MANIFEST_INVALID', message });
const effectOn = (name: string) => ({ op: 'update', target: name, count: 1 }) as ApprovedEffect;

describe('relations', () => {
  test('only a registered table is one, and a view is answered with what to state', () => {
    assert.equal(schema.registered(effectOn('invoice'), 'it'), INVOICE);
    assert.equal(schema.registered(effectOn('public.invoice'), 'it'), INVOICE);
    assert.equal(
      schema.registered(effectOn('audit'), 'it'),
      undefined,
      'it is known and not registered',
    );
    assert.equal(schema.registered(effectOn('nowhere'), 'it'), undefined);
    for (const view of ['pending', 'public.pending', 'sales.open']) {
      assert.throws(() => schema.registered(effectOn(view), 'it'), invalid(/is a view/));
    }
    for (const none of ['sales.pending', 'open', 'public.open', '..']) {
      assert.equal(schema.registered(effectOn(none), 'it'), undefined);
    }
    const without = new PostgresSchema(
      { registration: schema.registration, relations: new Map() },
      casts,
    );
    assert.equal(without.registered(effectOn('pending'), 'it'), undefined);
  });

  test('a row is read by its key, and only where it can be read', () => {
    assert.equal(schema.readable({ target: 'audit' }, 'it'), AUDIT);
    const known = new Map([
      ['loose', relation('loose', [], { key: [] })],
      ['hidden', relation('hidden', [], { unreadable: 'is hidden by a policy; grant it' })],
    ]);
    assert.throws(() => keyedRelation(known, 'loose', 'it'), invalid(/has no primary key/));
    assert.throws(
      () => keyedRelation(known, 'hidden', 'it'),
      invalid(/"hidden" is hidden by a policy; grant it/),
    );
    assert.throws(
      () => keyedRelation(known, 'hiden', 'it'),
      invalid(/"hiden" cannot be read.*hidden/),
    );
  });
});

describe('columns that an insert leaves out', () => {
  const fill = (more: Partial<PostgresColumn>) => schema.fill(INVOICE, column('c', more), 'it');
  const type = (base: string) => ({ ...TYPE, base });

  test('what the server computes, assigns or fills in', () => {
    assert.deepEqual(fill({ generated: true, notNull: true }), { any: true });
    assert.deepEqual(fill({}), { is: { cast: null } });
    assert.deepEqual(fill({ notNull: false, defaultText: 'NULL::integer' }), {
      is: { cast: null },
    });
    assert.deepEqual(fill({ notNull: true, defaultText: '5' }), { is: { constant: '5' } });
    assert.throws(
      () => fill({ sequence: SEQUENCE }),
      invalid(/write c: generated\('new invoice'\)/),
    );
    assert.throws(() => fill({ notNull: true }), invalid(/NOT NULL and has no default/));
    assert.throws(
      () => fill({ notNull: true, defaultText: 'NULL' }),
      invalid(/NOT NULL and has no default/),
    );
    assert.throws(
      () => fill({ defaultText: 'clock_timestamp()' }),
      invalid(/is computed \(clock_timestamp\(\)\)/),
    );
  });

  test('a label is for an insert, on a column that the server assigns', () => {
    const { assigns } = schema.labels;
    const drawn = column('token', { type: type('uuid'), defaultText: 'gen_random_uuid()' });
    assert.ok(assigns(INVOICE, column('id', { sequence: SEQUENCE }), 'insert'));
    assert.ok(assigns(INVOICE, drawn, 'insert'));
    assert.ok(!assigns(INVOICE, drawn, 'update'));
    assert.ok(!assigns(INVOICE, column('id'), 'insert'));
  });

  test('identifiers are assigned by a function without arguments, and by nothing else', () => {
    const by = (base: string, defaultText: string | undefined, baseSchema = 'pg_catalog') =>
      assignedBy(column('c', { type: { ...type(base), baseSchema }, defaultText }));
    assert.equal(by('uuid', 'gen_random_uuid()'), 'uuid');
    assert.equal(by('uuid', undefined), undefined);
    assert.equal(by('uuid', "'11111111-1111-4111-8111-111111111111'::uuid"), undefined);
    assert.equal(by('uuid', "f('x')()"), undefined);
    assert.equal(by('uuid', 'gen_random_uuid()', 'app'), undefined);
    assert.equal(by('text', 'gen_random_uuid()'), undefined);
    assert.equal(assignedBy(column('c', { sequence: SEQUENCE })), 'sequence');
  });
});

test('between is for types whose values have an order of their own', () => {
  const check = (base: string, cell: Cell, baseSchema = 'pg_catalog') =>
    schema.checkConstraint(column('c', { type: { ...TYPE, base, baseSchema } }), cell, 'it');
  const range: Cell = { between: [1, 2] };
  for (const base of ['int4', 'numeric', 'text', 'date', 'timestamptz', 'uuid']) check(base, range);
  for (const base of ['interval', 'jsonb', 'inet', 'int42']) {
    assert.throws(() => check(base, range), invalid(/between would compare/));
    check(base, { oneOf: [1] });
  }
  assert.throws(() => check('int4', range, 'app'), invalid(/between would compare/));
});

describe('sequences', () => {
  const numbers = unused('invoice_id_seq', 3);
  const normalise = (effect: object) => schema.normaliseOther(effect as ApprovedEffect, 'it');

  test('how many of its numbers no row has can be stated, in every form of a number', () => {
    assert.deepEqual(normalise(numbers), numbers);
    assert.deepEqual(normalise({ ...numbers, target: 'public.invoice_id_seq' }), numbers);
    for (const cell of [oneOf(1, 3), between(1, 3)]) {
      const stated = unused('invoice_id_seq', cell);
      assert.deepEqual(normalise(stated), stated);
    }
  });

  test('nothing else can be stated about one', () => {
    const { after: _after, ...without } = numbers;
    const { before: _before, ...unbased } = numbers;
    const cell = (stated: object) => ({ ...numbers, after: { unused: stated } });
    for (const wrong of [
      ...[without, unbased, { ...numbers, after: {} }, { ...numbers, before: {} }],
      ...[
        { ...numbers, op: 'insert' },
        { ...numbers, op: 'delete' },
        { ...numbers, count: 2 },
      ],
      { ...numbers, key: { id: { is: 1 } } },
      { ...numbers, after: { last_value: { is: 3 } } },
      { ...numbers, after: { ...numbers.after, last_value: { is: 3 } } },
      { ...numbers, before: { ...numbers.before, last_value: { is: 3 } } },
      { ...numbers, before: { unused: { is: 1 } } },
      { ...numbers, before: { unused: { oneOf: [0] } } },
      ...[
        cell({ is: 0 }),
        cell({ is: -1 }),
        cell({ is: 1.5 }),
        cell({ is: '3' }),
        cell({ is: null }),
      ],
      ...[cell({ oneOf: [1, 0] }), cell({ generated: 'numbers' })],
    ]) {
      assert.throws(
        () => normalise(wrong),
        invalid(/is a sequence; write unused\('invoice_id_seq', 3\)/),
      );
    }
  });

  test('a table is no sequence, and what is not registered is nothing', () => {
    assert.equal(normalise({ ...numbers, target: 'invoice' }), undefined);
    assert.equal(normalise({ ...numbers, target: 'audit' }), undefined);
    assert.equal(normalise({ ...numbers, target: 'other_seq' }), undefined);
    assert.equal(normalise({ ...numbers, target: '..' }), undefined);
  });
});

describe('columns as the catalogue has them', () => {
  const type = { ...TYPE, schema: 'app', name: 'strict', formatted: null };
  const found: FoundColumn = {
    ...{
      name: 'c',
      notNull: false,
      generated: '',
      identity: false,
      defaultText: 'f()',
      defaultBuiltIn: true,
    },
    ...{ defaultTypes: [], type, sequence: null, draws: [] },
  };
  const code = {
    schema: 'app',
    name: 'strict',
    kind: 'd',
    base: null,
    element: null,
    parts: [],
    code: 'has a check',
  };
  const types = new TypeGraph([
    { ...code, oid: 20_000 },
    { ...code, oid: 20_001, code: null },
  ]);

  test('a type is named by the key words of SQL, or with its schema', () => {
    assert.equal(describeColumn(found, types).type.text, '"app"."strict"');
    const worded = { ...found, type: { ...type, formatted: 'character varying(3)' } };
    assert.equal(describeColumn(worded, types).type.text, 'character varying(3)');
  });

  test('a default is built in when its functions are and no type in it runs code', () => {
    const isBuiltIn = (more: Partial<FoundColumn>) =>
      describeColumn({ ...found, ...more }, types).defaultBuiltIn;
    assert.equal(isBuiltIn({}), true);
    assert.equal(isBuiltIn({ defaultTypes: [20_001] }), true);
    assert.equal(isBuiltIn({ defaultTypes: [20_001, 20_000] }), false);
    assert.equal(isBuiltIn({ defaultBuiltIn: false }), false);
  });
});
