// Goal: what two rehearsals explain fits every honest run and no other. Method: runs made from a
// template with identifiers and times filled in anew; the comparison of the protocol judges a third
// run. Directed cases for what must stay exact.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { approvedOutcome } from '../../src/protocol/approve.ts';
import type { ApprovedEffect, Effect } from '../../src/protocol/effect.ts';
import { prepareApproved } from '../../src/protocol/match.ts';
import { classify } from '../../src/protocol/outcome.ts';
import type { Registration } from '../../src/protocol/registration.ts';
import { explainRehearsals, type Rehearsal } from '../../src/protocol/rehearsal.ts';
import type { Value } from '../../src/protocol/value.ts';

const REGISTRATION: Registration = {
  profile: 'net-state',
  values: 'plain',
  targets: [
    { name: 'order', columns: ['id', 'note', 'at', 'seen'], key: ['id'], volatile: ['seen'] },
    { name: 'line', columns: ['id', 'order', 'qty'], key: ['id'], volatile: [] },
  ],
};

const START_MS = Date.UTC(2026, 0, 1, 10);

/**
 * A template: orders with notes, and lines that refer to one of them or to none, with a quantity.
 */
interface Template {
  readonly notes: readonly string[];
  readonly lines: readonly { readonly order: number | null; readonly qty: number }[];
}

/** One honest run: identifiers from `ids` on, lines shuffled as a backend might report them. */
function run(
  { notes, lines }: Template,
  ids: { order: number; line: number },
  atMs: number,
): Rehearsal {
  const orderId = (index: number) => ids.order + index;
  const time = new Date(atMs).toISOString();
  const effects: Effect[] = [
    ...notes.map((note, index) => ({
      op: 'insert' as const,
      target: 'order',
      key: { id: orderId(index) },
      after: { note, at: time, seen: atMs % 97 },
    })),
    ...lines.map(({ order, qty }, index) => ({
      op: 'insert' as const,
      target: 'line',
      key: { id: ids.line + index },
      after: { order: order === null ? null : orderId(order % notes.length), qty },
    })),
  ];
  return {
    effects: ids.order % 2 === 0 ? effects : effects.reverse(),
    assigned: [
      {
        target: 'order',
        column: 'id',
        above: String(ids.order - 1),
        upTo: String(ids.order + notes.length),
      },
      {
        target: 'line',
        column: 'id',
        above: String(ids.line - 1),
        upTo: String(ids.line + lines.length),
      },
    ],
    window: { fromMs: atMs, toMs: atMs + 5 },
  };
}

function judge(effects: readonly ApprovedEffect[], rehearsal: Rehearsal): string {
  const manifest = {
    version: 1 as const,
    adapter: 'a',
    task: 't',
    planRevision: 1,
    requires: [],
    watch: [],
  };
  const approved = approvedOutcome(
    { ...manifest, effects: [...effects] },
    REGISTRATION,
    '0'.repeat(32),
  );
  return classify(
    prepareApproved(approved),
    { kind: 'complete', effects: rehearsal.effects },
    rehearsal,
  ).kind;
}

function explain(first: Rehearsal, second: Rehearsal): readonly ApprovedEffect[] {
  const explained = explainRehearsals(first, second, REGISTRATION);
  assert.equal(explained.kind, 'explained', JSON.stringify(explained));
  return explained.kind === 'explained' ? explained.effects : assert.fail();
}

const template: fc.Arbitrary<Template> = fc.record({
  notes: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 }),
  lines: fc.array(fc.record({ order: fc.option(fc.nat(2)), qty: fc.integer({ min: 1, max: 5 }) }), {
    maxLength: 4,
  }),
});
/** Far from quantities and from each other, so that equal values are no chance. */
const ids = fc.record({
  order: fc.integer({ min: 1000, max: 2000 }),
  line: fc.integer({ min: 5000, max: 6000 }),
});

test('property: what two rehearsals explain fits both and every other honest run', () => {
  fc.assert(
    fc.property(template, ids, ids, ids, fc.boolean(), (made, one, two, three, repeats) => {
      const first = run(made, one, START_MS);
      const second = run(made, repeats ? one : two, START_MS + 1234);
      const effects = explain(first, second);
      for (const rehearsal of [first, second, run(made, three, START_MS + 99_999)]) {
        assert.equal(judge(effects, rehearsal), 'EXACT', JSON.stringify(effects));
      }
    }),
    { numRuns: 500 },
  );
});

test('property: a run that differs in one value that nothing explains does not fit', () => {
  fc.assert(
    fc.property(template, ids, ids, ids, fc.nat(), (made, one, two, three, which) => {
      const effects = explain(run(made, one, START_MS), run(made, two, START_MS + 10));
      const honest = run(made, three, START_MS + 20);
      const at = which % honest.effects.length;
      const damaged = honest.effects.map((effect, index) => {
        if (index !== at) return effect;
        const change: Record<string, Value> =
          effect.target === 'order'
            ? { note: 'other' }
            : which % 2 === 0
              ? { qty: 99 }
              : { order: 77 };
        return { ...effect, after: { ...effect.after, ...change } };
      });
      assert.equal(judge(effects, { ...honest, effects: damaged }), 'DIVERGED');
      assert.equal(judge(effects, { ...honest, effects: honest.effects.slice(1) }), 'DIVERGED');
      const stale = { ...honest, window: { fromMs: START_MS + 60_000, toMs: START_MS + 60_005 } };
      assert.equal(judge(effects, stale), 'DIVERGED', 'a time that is not now');
    }),
    { numRuns: 500 },
  );
});

test('a row of its own identifier by chance stays exact; so does what two identifiers could explain', () => {
  const made = { notes: ['a'], lines: [{ order: 0, qty: 3 }] };
  const [order, line] = explain(
    run(made, { order: 8, line: 3 }, START_MS),
    run(made, { order: 8, line: 3 }, START_MS),
  );
  assert.deepEqual(order?.key, { id: { generated: 'new order.id 1' } });
  assert.deepEqual(line?.after, { order: { generated: 'new order.id 1' }, qty: { is: 3 } });
  const both = {
    notes: ['a'],
    lines: [
      { order: 0, qty: 1 },
      { order: null, qty: 9 },
    ],
  };
  const ambiguous = explain(
    run(both, { order: 8, line: 7 }, START_MS),
    run(both, { order: 8, line: 7 }, START_MS),
  );
  const first = ambiguous.find(({ after }) => JSON.stringify(after).includes('"qty":{"is":1}'));
  assert.deepEqual(first?.after?.order, { is: 8 }, 'order 8 and line 8 are both new');
});

test('identifiers that do not correspond one to one are a difference', () => {
  const insert = (id: number, note: string): Effect => ({
    op: 'insert',
    target: 'order',
    key: { id },
    after: { note },
  });
  const base = { window: { fromMs: 0, toMs: 0 } };
  const assigned = [{ target: 'order', column: 'id', above: '0', upTo: '9' }];
  const twice = { ...base, assigned, effects: [insert(1, 'a'), insert(2, 'b')] };
  const swapped = { ...base, assigned, effects: [insert(1, 'b'), insert(2, 'a')] };
  assert.equal(explainRehearsals(twice, swapped, REGISTRATION).kind, 'unexplained');
  const touch = (id: number): Effect => ({
    op: 'update',
    target: 'order',
    key: { id },
    before: { note: 'x' },
    after: { note: 'y' },
  });
  const one = { ...base, assigned, effects: [...twice.effects, touch(1)] };
  const other = { ...base, assigned, effects: [...twice.effects, touch(2)] };
  assert.equal(explainRehearsals(one, one, REGISTRATION).kind, 'explained');
  assert.equal(
    explainRehearsals(one, other, REGISTRATION).kind,
    'unexplained',
    'another of the new rows',
  );
  const chosen = { ...base, assigned: [], effects: [insert(1, 'a'), insert(3, 'b')] };
  assert.equal(
    explainRehearsals(twice, chosen, REGISTRATION).kind,
    'unexplained',
    'assigned once, chosen once',
  );
});

test('what was there before the action stays exact, even a time within the window', () => {
  const time = new Date(START_MS).toISOString();
  const touch: Effect = {
    op: 'update',
    target: 'order',
    key: { id: 7 },
    before: { at: time },
    after: { at: 'x' },
  };
  const gone: Effect = {
    op: 'delete',
    target: 'line',
    key: { id: 7 },
    before: { order: 7, qty: 1 },
  };
  const made: Effect = {
    op: 'insert',
    target: 'line',
    key: { id: 7 },
    after: { order: null, qty: 2 },
  };
  const assigned = [{ target: 'line', column: 'id', above: '6', upTo: '7' }];
  const rehearsal = {
    effects: [touch, gone],
    assigned: [],
    window: { fromMs: START_MS, toMs: START_MS },
  };
  assert.deepEqual(explain(rehearsal, rehearsal)[0]?.before, { at: { is: time } });
  const beside = { ...rehearsal, assigned, effects: [touch, made] };
  assert.deepEqual(
    explain(beside, beside)[0]?.key,
    { id: { is: 7 } },
    'the key of a row that existed',
  );
});

const WINDOW = { fromMs: START_MS, toMs: START_MS };

function insertLine(id: number, order: number, qty: number): Effect {
  return { op: 'insert', target: 'line', key: { id }, after: { order, qty } };
}

function touchOrder(id: number, note = 'new'): Effect {
  return { op: 'update', target: 'order', key: { id }, before: { note: 'old' }, after: { note } };
}

test('rows that existed are paired by their keys, also where new identifiers equal the keys', () => {
  const rehearse = (from: number): Rehearsal => ({
    effects: [
      touchOrder(100, 'a'),
      touchOrder(101, 'b'),
      insertLine(from, 100, 1),
      insertLine(from + 1, 101, 1),
    ],
    assigned: [{ target: 'line', column: 'id', above: String(from - 1), upTo: String(from + 1) }],
    window: WINDOW,
  });
  for (const [one, two] of [
    [101, 103],
    [99, 101],
    [100, 102],
    [98, 100],
  ] as const) {
    const first = rehearse(one);
    const second = rehearse(two);
    const effects = explain(first, second);
    const keys = effects.filter(({ target }) => target === 'order').map(({ key }) => key);
    assert.deepEqual(keys, [{ id: { is: 100 } }, { id: { is: 101 } }]);
    for (const run of [first, second, rehearse(500)]) assert.equal(judge(effects, run), 'EXACT');
  }
});

test('the key of a row that existed is exact, even among numbers that the backend handed out', () => {
  const assigned = [{ target: 'order', column: 'id', above: '6', upTo: '9' }];
  const updated = { effects: [touchOrder(7)], assigned, window: WINDOW };
  assert.deepEqual(explain(updated, updated)[0]?.key, { id: { is: 7 } });
  const other = { effects: [touchOrder(8)], assigned, window: WINDOW };
  assert.equal(explainRehearsals(updated, other, REGISTRATION).kind, 'unexplained');
});

test('a row that got its key in the rehearsal is followed through later events on it', () => {
  const events = (id: number, moved: number): Rehearsal => ({
    effects: [
      { op: 'insert', target: 'order', key: { id }, after: { note: 'old' } },
      { op: 'update', target: 'order', key: { id }, before: { id }, after: { id: moved } },
      touchOrder(moved),
    ],
    assigned: [{ target: 'order', column: 'id', above: String(id - 1), upTo: String(moved) }],
    window: WINDOW,
  });
  const effects = explain(events(11, 12), events(13, 14));
  const [first, second] = ['new order.id 1', 'new order.id 2'].map((generated) => ({ generated }));
  assert.deepEqual(
    effects.map(({ op, key }) => [op, key?.id]),
    [
      ['insert', first],
      ['update', first],
      ['update', second],
    ],
  );
});

const LINES_REFER = [{ target: 'line', columns: ['order'] }];

/** One new order and lines, with numbers of their own tables from 1 on, as in fresh tables. */
function freshTables(effects: readonly Effect[], referred: boolean): Rehearsal {
  const range = { above: '0', upTo: '9' };
  const orders = { target: 'order', column: 'id', ...range };
  const lines = { target: 'line', column: 'id', ...range };
  const assigned = [
    { ...orders, ...(referred && { referredBy: LINES_REFER }) },
    { ...lines, ...(referred && { referredBy: [{ target: 'line', columns: [] }] }) },
  ];
  return { effects, assigned, window: WINDOW };
}

const NEW_ORDER: Effect = { op: 'insert', target: 'order', key: { id: 1 }, after: { note: 'a' } };

test('where the schema declares references, numbers that equal a new identifier stay numbers', () => {
  const effects = [NEW_ORDER, insertLine(1, 1, 1), insertLine(2, 1, 2), insertLine(3, 1, 1)];
  const run = freshTables(effects, true);
  const order = { generated: 'new order.id 1' };
  assert.deepEqual(
    explain(run, run)
      .slice(1)
      .map(({ after }) => after),
    [
      { order, qty: { is: 1 } },
      { order, qty: { is: 2 } },
      { order, qty: { is: 1 } },
    ],
  );
});

test('where the schema declares no reference, an identifier is followed by its value', () => {
  const run = freshTables([NEW_ORDER, insertLine(5, 1, 3)], false);
  assert.deepEqual(explain(run, run)[1]?.after, {
    order: { generated: 'new order.id 1' },
    qty: { is: 3 },
  });
});

test('a table without foreign keys refers by value only to what no foreign key refers to', () => {
  const note = (text: number): Effect => ({ ...NEW_ORDER, key: { id: 4 }, after: { note: text } });
  const run = freshTables([note(7), insertLine(7, 4, 1)], true);
  const seen = explain(run, run);
  assert.deepEqual(seen[0]?.after, { note: { generated: 'new line.id 1' } });
  const declared = run.assigned.map((one) => ({ ...one, referredBy: LINES_REFER }));
  const strict = { ...run, assigned: declared };
  assert.deepEqual(explain(strict, strict)[0]?.after, { note: { is: 7 } });
});

test('a declared reference of a row to itself is followed', () => {
  const run = {
    effects: [insertLine(5, 5, 5)],
    assigned: [{ target: 'line', column: 'id', above: '4', upTo: '5', referredBy: LINES_REFER }],
    window: WINDOW,
  };
  assert.deepEqual(explain(run, run)[0]?.after, {
    order: { generated: 'new line.id 1' },
    qty: { is: 5 },
  });
});

test('a value that changes with the identifier is followed where no foreign key is declared', () => {
  const rehearse = (id: number): Rehearsal => ({
    effects: [
      { ...NEW_ORDER, key: { id } },
      { op: 'insert', target: 'line', key: { id: id + 50 }, after: { order: null, qty: id } },
    ],
    assigned: [
      {
        target: 'order',
        column: 'id',
        above: String(id - 1),
        upTo: String(id),
        referredBy: LINES_REFER,
      },
      { target: 'line', column: 'id', above: String(id + 49), upTo: String(id + 50) },
    ],
    window: WINDOW,
  });
  const line = explain(rehearse(10), rehearse(20)).find(({ target }) => target === 'line');
  assert.deepEqual(line?.after, { order: { is: null }, qty: { generated: 'new order.id 1' } });
});

test('columns that are not compared are not approved', () => {
  const made = { notes: ['a'], lines: [] };
  const [order] = explain(
    run(made, { order: 8, line: 1 }, START_MS),
    run(made, { order: 8, line: 1 }, START_MS + 1),
  );
  assert.deepEqual(Object.keys(order?.after ?? {}), ['note', 'at']);
});

test('large rehearsals are explained in reasonable time', () => {
  const lines = Array.from({ length: 5000 }, (_, index) => ({ order: index % 3, qty: index % 5 }));
  const made = { notes: ['a', 'b', 'c'], lines };
  const effects = explain(
    run(made, { order: 100, line: 10_000 }, START_MS),
    run(made, { order: 200, line: 20_000 }, START_MS),
  );
  assert.equal(effects.length, 5003);
});
