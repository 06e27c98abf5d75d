// Goal: what a stage takes from what it knows already is what it would have found the long way.
// Method: random states, actions and changes against code that looks at everything; other writers
// and other files.
import assert from 'node:assert/strict';
import { copyFileSync, renameSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { chosenBy, parseAction } from '../../../src/adapters/snapshot/action.ts';
import { diffViews } from '../../../src/adapters/snapshot/diff.ts';
import { writeDocument } from '../../../src/adapters/snapshot/document.ts';
import { assignedValues } from '../../../src/adapters/snapshot/evidence.ts';
import type { SnapshotOptions } from '../../../src/adapters/snapshot/index.ts';
import { admitLayout } from '../../../src/adapters/snapshot/layout.ts';
import { type DocumentView, viewDocument } from '../../../src/adapters/snapshot/view.ts';
import { durable, freshPath, hold, open } from './store.ts';
import { toolModule } from './tool-module.ts';

const layout = admitLayout({
  file: 'unused',
  tools: 'unused',
  collections: {
    orders: {
      path: '/orders',
      key: 'id',
      fields: ['ref', 'n'],
      generated: ['id', 'ref'],
      references: { '/tags': {} },
    },
    stock: {
      path: '/stock',
      key: 'sku',
      map: true,
      fields: ['constructor'],
      generated: ['sku', 'constructor'],
    },
  },
  references: { '/links': { fields: ['to', 'n'], generated: ['to'] } },
});

const identifier = fc.oneof(
  fc.integer({ min: 0, max: 6 }),
  fc.constantFrom('0', '1', 'ord-1', 'ord-22', 'x'),
);
const field = fc.oneof(identifier, fc.constantFrom(null, true, ['x']));
const document = fc.record({
  orders: fc.uniqueArray(
    fc.record(
      { id: identifier, ref: field, n: field, tags: fc.array(field, { maxLength: 2 }) },
      { requiredKeys: ['id'] },
    ),
    { maxLength: 5, selector: ({ id }) => `${typeof id}${id}` },
  ),
  stock: fc.dictionary(
    fc.constantFrom('0', 'x', 'ord-1', 'toString'),
    fc.record({ constructor: field, n: field }, { requiredKeys: [] }),
    { noNullPrototype: true },
  ),
  links: fc.array(fc.record({ to: field, n: field }, { requiredKeys: [] }), { maxLength: 4 }),
});
const written = fc.array(identifier, { maxLength: 3 });

test('property: values that a backend may have made are those that no record had before', () => {
  fc.assert(
    fc.property(document, document, written, (was, is, args) => {
      const calls = [{ tool: 'any', args, mayFail: false }];
      const [before, after] = [was, is].map((state) =>
        viewDocument(layout, JSON.parse(writeDocument(state))),
      ) as [DocumentView, DocumentView];
      const found = assignedValues(layout, calls, [before], diffViews(layout, before, after));
      const expected = layout.relations.flatMap(({ target, columns }) =>
        columns.flatMap(({ name: column, generated }) => {
          const fresh = generated ? newIdentifiers(before, after, target, column, args) : [];
          return [{ target, column, fresh }];
        }),
      );
      const sorted = ({ fresh, ...place }: { fresh: readonly unknown[] }) => ({
        ...place,
        fresh: fresh.map((value) => JSON.stringify(value)).sort(),
      });
      assert.deepEqual(
        found.map((assigned) => sorted(assigned as { fresh: readonly unknown[] })),
        expected.filter(({ fresh }) => fresh.length > 0).map(sorted),
      );
    }),
    { numRuns: 1000 },
  );
});

function newIdentifiers(
  before: DocumentView,
  after: DocumentView,
  target: string,
  column: string,
  args: readonly unknown[],
) {
  const used = allValues(before, target, column);
  const added = allValues(after, target, column).filter(
    (value) => (typeof value === 'string' || typeof value === 'number') && !used.includes(value),
  );
  const highest = Math.max(0, ...used.filter((value) => typeof value === 'number'));
  const isNext = (value: unknown) =>
    typeof value === 'number' && value > highest && value <= highest + added.length;
  const isChosen = (value: unknown) =>
    args.some(
      (arg) =>
        String(arg) === String(value) ||
        (String(value).length >= 4 && String(arg).includes(String(value))),
    );
  return added.filter((value) => isNext(value) || !isChosen(value));
}

function allValues(view: DocumentView, target: string, column: string): unknown[] {
  const records = [...(view.collections.get(target)?.records.values() ?? [])];
  const rows = [
    ...records.map(({ key, fields }) => ({ ...fields, ...key })),
    ...(view.elements.get(target) ?? []),
  ];
  return rows
    .filter((row) => Object.hasOwn(row, column))
    .map((row) => (row as Record<string, unknown>)[column]);
}

test('property: what the agent wrote is recognised in any case and form, wherever it stands among the arguments', () => {
  const fold = (text: string) => text.normalize('NFKC').toUpperCase().toLowerCase().trim();
  const text = fc.string({
    unit: fc.constantFrom('a', 'B', '7', ' ', 'ß', 'ﬀ', 'Σ', 'é', 'e\u0301', '\u0301', '"', '\\'),
    maxLength: 8,
  });
  const args = fc.dictionary(text, fc.oneof(text, fc.array(text), fc.integer(), fc.boolean()), {
    noNullPrototype: true,
  });
  fc.assert(
    fc.property(fc.array(args, { minLength: 1, maxLength: 3 }), text, (given, asked) => {
      const isChosen = chosenBy(
        parseAction({ calls: given.map((one) => ({ tool: 'any', args: one })) }, ['any']).calls,
      );
      const texts = given.flatMap((one) => Object.entries(one).flat(2).map(String));
      for (const id of [
        asked,
        ...texts,
        ...texts.map((one) => one.slice(1)),
        ...texts.map((one) => one.slice(0, -1)),
        ...texts.map((one) => one.toUpperCase()),
      ]) {
        const long = fold(id).length >= 4;
        const quotes = (one: string) =>
          fold(one).includes(fold(id)) || one.toUpperCase().includes(id.trim().toUpperCase());
        const expected = texts.some((one) => (long ? quotes(one) : fold(one) === fold(id)));
        assert.equal(isChosen(id), expected, JSON.stringify(id));
      }
    }),
    { numRuns: 200 },
  );
});

const counter = (file: string): SnapshotOptions => ({
  file,
  initial: { n: 0, list: [] },
  collections: { list: { path: '/list', key: 'id' } },
  tools: toolModule({
    add(state: { n: number }, { by }: { by: number }) {
      state.n += by;
    },
  }),
});

test('property: a stage starts from the durable state, whoever promoted it and whatever was discarded before', async () => {
  const step = fc.record({
    other: fc.boolean(),
    by: fc.integer({ min: 0, max: 3 }),
    promotes: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const file = freshPath();
      const adapters = [await open(counter(file)), await open(counter(file))] as const;
      let n = 0;
      for (const [index, { other, by, promotes }] of steps.entries()) {
        const adapter = adapters[other ? 1 : 0];
        const { stage, proofs } = await hold(adapter, `step ${index}`, {
          calls: [{ tool: 'add', args: { by } }],
        });
        const evidence = await stage.observe();
        const [change] = evidence.records;
        assert.deepEqual(change?.before ?? null, by === 0 ? null : { value: n });
        assert.deepEqual(change?.after ?? null, by === 0 ? null : { value: n + by });
        if (!promotes) {
          await stage.discard();
          continue;
        }
        assert.equal((await stage.promote(proofs.permit(evidence))).kind, 'confirmed');
        n += by;
        assert.deepEqual(durable(file).state, { n, list: [] });
      }
    }),
    { numRuns: 30 },
  );
});

test('a candidate of a file that is no longer the one at the path is not promoted, and the survey says why', async () => {
  const file = freshPath();
  const adapter = await open(counter(file));
  const survey = await adapter.survey();
  assert.deepEqual(await adapter.survey(), survey);
  copyFileSync(file, `${file}.copy`);
  renameSync(`${file}.copy`, file);
  const { stage, proofs } = await hold(adapter, 'replaced', {
    calls: [{ tool: 'add', args: { by: 1 } }],
  });
  const { outlets, credentials } = await adapter.survey();
  assert.match(
    outlets.find(({ disposition }) => disposition === 'unclassified')?.by ?? '',
    /another file/,
  );
  assert.notEqual(credentials, survey.credentials);
  const promotion = await stage.promote(proofs.permit(await stage.observe()));
  assert.equal(promotion.kind === 'refused' && promotion.reason, 'backend-replaced');
});
