// Goal: what JSON Schema says about a schema is what the schema accepts, so that a document made
// from it does not mislead. Method: each kind of schema with its description; random values that a
// small reader of those keywords and the schema itself must judge alike.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  checked,
  choice,
  closed,
  copyOnce,
  dictionary,
  either,
  form,
  integer,
  jsonSchemaOf,
  list,
  nullable,
  oneField,
  optional,
  plain,
  type Schema,
  type SchemaDocument,
  text,
  variants,
} from '../../src/protocol/schema.ts';

const word = form(/^[a-z]{1,3}$/, 'a word');
const SCHEMAS: Readonly<Record<string, Schema<unknown>>> = {
  plain,
  text: text(1, 3),
  anyText: text(),
  word,
  integer: integer(1, 4),
  choice: choice<string | number | boolean>('a', 2, true),
  nullable: nullable(word),
  list: list(integer(0, 3), 1, 2),
  endless: list(word),
  dictionary: dictionary(text(), integer(0)),
  closed: closed({ a: word, b: optional(integer(0, 9)) }),
  variants: variants('kind', { one: { a: word }, two: { b: integer(0) } }),
  oneField: oneField({ a: word, b: integer(0) }),
  either: either(word, integer(0, 1)),
};

/** Whether a value fits what JSON Schema says, for the keywords that descriptions use. */
function fits(schema: SchemaDocument, value: unknown): boolean {
  const { anyOf, oneOf, enum: choices } = schema as Record<string, readonly SchemaDocument[]>;
  if (anyOf !== undefined) return anyOf.some((one) => fits(one, value));
  if (oneOf !== undefined) return oneOf.filter((one) => fits(one, value)).length === 1;
  if (choices !== undefined) return choices.includes(value as SchemaDocument);
  switch (schema.type) {
    case undefined:
      return true;
    case 'null':
      return value === null;
    case 'string':
      return typeof value === 'string' && fitsText(schema, value);
    case 'integer':
      return Number.isInteger(value) && within(schema, 'imum', Number(value));
    case 'array':
      return (
        Array.isArray(value) &&
        within(schema, 'Items', value.length) &&
        value.every((item) => fits(schema.items as SchemaDocument, item))
      );
    default:
      return (
        typeof value === 'object' &&
        value !== null &&
        !Array.isArray(value) &&
        fitsObject(schema, { ...value })
      );
  }
}

function within(schema: SchemaDocument, what: string, size: number): boolean {
  const [min = -Infinity, max = Infinity] = [schema[`min${what}`], schema[`max${what}`]];
  return size >= Number(min) && size <= Number(max);
}

function fitsText(schema: SchemaDocument, value: string): boolean {
  const { pattern = '' } = schema;
  return within(schema, 'Length', Array.from(value).length) && new RegExp(`${pattern}`).test(value);
}

function fitsObject(schema: SchemaDocument, value: Record<string, unknown>): boolean {
  const { properties = {}, required = [], additionalProperties } = schema;
  const known = properties as Record<string, SchemaDocument>;
  return (
    (required as readonly string[]).every((name) => Object.hasOwn(value, name)) &&
    Object.entries(value).every(([name, inner]) =>
      Object.hasOwn(known, name)
        ? fits(known[name] as SchemaDocument, inner)
        : additionalProperties !== false && fits(additionalProperties as SchemaDocument, inner),
    )
  );
}

const leaf = fc.oneof(
  fc.constantFrom('', 'a', 'abc', 'abcd', 'one', 'two', 2, true, null, 0, 1, 4, 9, 10, -1, 1.5),
  fc.string({ maxLength: 4 }),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('any'), { maxLength: 3 }),
    fc.record({ a: leaf, b: leaf, kind: fc.constantFrom('one', 'two') }, { requiredKeys: [] }),
    fc.dictionary(fc.constantFrom('a', 'b', 'kind', 'x'), tie('any'), { maxKeys: 3 }),
  ),
})).any;

/** Each schema accepts one of these, so that acceptance does not depend on chance. */
const ACCEPTED = ['a', 1, [1], ['a'], { a: 1 }, { a: 'a' }, { kind: 'one', a: 'a' }];

for (const [name, schema] of Object.entries(SCHEMAS)) {
  test(`property: ${name} and its description accept the same`, () => {
    const described = jsonSchemaOf(schema);
    let accepted = 0;
    fc.assert(
      fc.property(value, (input) => {
        const isRead = 'copy' in copyOnce(schema, input, Number.POSITIVE_INFINITY);
        if (isRead) accepted += 1;
        assert.equal(fits(described, input), isRead, JSON.stringify({ input, described }));
      }),
      { numRuns: 2000, examples: ACCEPTED.map((one) => [one] as [never]) },
    );
    assert.ok(accepted > 0, 'some value was accepted');
  });
}

test('a schema that has a name is referred to, and one without a description accepts anything', () => {
  const outer = closed({ inner: word, list: list(word) });
  const refOf = (schema: Schema<unknown>) => (schema === word ? '#/word' : undefined);
  const described = jsonSchemaOf(outer, refOf) as { properties: Record<string, SchemaDocument> };
  assert.deepEqual(described.properties.inner, { $ref: '#/word' });
  assert.deepEqual(described.properties.list?.items, { $ref: '#/word' });
  assert.deepEqual(
    jsonSchemaOf((input) => input),
    {},
  );
  const stricter = checked(word, (one) => one !== 'no', 'must not be no');
  assert.deepEqual(jsonSchemaOf(stricter), jsonSchemaOf(word));
});
