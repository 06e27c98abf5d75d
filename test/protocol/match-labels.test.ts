// Goal: generated identifiers mean one thing everywhere: swapped, crossed or invented references
// are never equal. Method: graph isomorphism by permutation as an independent oracle, hand-made
// adversarial cases, step counts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import type { ApprovedEffect, CellRow, Effect } from '../../src/protocol/effect.ts';
import type { MatchContext } from '../../src/protocol/match.ts';
import { any, compare, gen, is } from './match-cases.ts';

// Rows that refer to each other: vertices in t with a generated id, edges in u with two references
// and their own id. With nothing else to tell the rows apart, comparing the bags is deciding
// whether two directed multigraphs are isomorphic, which is as hard as labels can get.

type Edge = readonly [from: number, to: number];
interface GraphShape {
  readonly vertices: number;
  readonly edges: readonly Edge[];
}

const GRAPH_EVIDENCE: MatchContext['assigned'] = [
  { target: 't', column: 'id', above: '0', upTo: '100000' },
  { target: 'u', column: 'id', above: '0', upTo: '100000' },
];

function approveGraph({ vertices, edges }: GraphShape): readonly ApprovedEffect[] {
  return [
    ...Array.from({ length: vertices }, (_, vertex) =>
      insertion('t', { id: gen(`v${vertex}`) }, is({ a: 0, b: 0 })),
    ),
    ...edges.map(([from, to], edge) =>
      insertion('u', { id: gen(`e${edge}`) }, { a: gen(`v${from}`), b: gen(`v${to}`) }),
    ),
  ];
}

function insertion(target: string, key: CellRow, after: CellRow, count = 1): ApprovedEffect {
  return { op: 'insert', target, key, after, count };
}

/**
 * The same rows as the backend would report them; `ids` are the identifiers that it assigned to the
 * vertices.
 */
function observeGraph(
  { vertices, edges }: GraphShape,
  ids: readonly number[] = identity(vertices),
): readonly Effect[] {
  const id = (vertex: number) => 10 + (ids[vertex] as number);
  return [
    ...edges.map(
      ([from, to], edge): Effect => ({
        op: 'insert',
        target: 'u',
        key: { id: 1000 + edge },
        after: { a: id(from), b: id(to) },
      }),
    ),
    ...identity(vertices).map(
      (vertex): Effect => ({
        op: 'insert',
        target: 't',
        key: { id: id(vertex) },
        after: { a: 0, b: 0 },
      }),
    ),
  ];
}

const identity = (length: number) => Array.from({ length }, (_, index) => index);
const compareGraphs = (approved: GraphShape, observed: readonly Effect[], budget?: number) =>
  compare(approveGraph(approved), observed, {
    assigned: GRAPH_EVIDENCE,
    ...(budget !== undefined && { budget }),
  });

function* permutations(items: readonly number[]): Iterable<readonly number[]> {
  if (items.length === 0) yield [];
  for (const first of items) {
    for (const rest of permutations(items.filter((item) => item !== first))) yield [first, ...rest];
  }
}

function isomorphic(one: GraphShape, other: GraphShape): boolean {
  const drawn = (edges: readonly Edge[], ids: readonly number[]) =>
    edges
      .map(([from, to]) => `${ids[from]}>${ids[to]}`)
      .sort()
      .join();
  if (one.vertices !== other.vertices) return false;
  const wanted = drawn(other.edges, identity(other.vertices));
  for (const ids of permutations(identity(one.vertices)))
    if (drawn(one.edges, ids) === wanted) return true;
  return false;
}

const graph = fc.integer({ min: 1, max: 5 }).chain((vertices) => {
  const vertex = fc.integer({ min: 0, max: vertices - 1 });
  return fc.record({
    vertices: fc.constant(vertices),
    edges: fc.array(fc.tuple(vertex, vertex), { maxLength: 7 }),
  });
});

test('property: rows that refer to each other compare like isomorphic graphs', () => {
  const verdicts = { equal: 0, different: 0 };
  const near = graph.chain((one) =>
    fc.record({
      one: fc.constant(one),
      rewired: fc.record({ edge: fc.nat(), to: fc.nat() }),
      ids: fc.shuffledSubarray(identity(one.vertices), { minLength: one.vertices }),
    }),
  );
  fc.assert(
    fc.property(near, ({ one, rewired, ids }) => {
      const edges = one.edges.map(
        ([from, to], index): Edge =>
          index === rewired.edge % one.edges.length
            ? [from, rewired.to % one.vertices]
            : [from, to],
      );
      const other = { ...one, edges };
      const expected = isomorphic(one, other) ? 'equal' : 'different';
      assert.equal(compareGraphs(one, observeGraph(other, ids)).kind, expected);
      verdicts[expected] += 1;
    }),
    { numRuns: 2000 },
  );
  assert.ok(
    Math.min(verdicts.equal, verdicts.different) > 300,
    `both verdicts occur often: ${canonical(verdicts)}`,
  );
});

/**
 * Lengths of the cycles of a permutation: two permutations are the same web of references exactly
 * if these agree.
 */
function cycleLengths(successors: readonly number[]): readonly number[] {
  const seen = new Set<number>();
  return identity(successors.length)
    .map((start) => {
      let length = 0;
      for (let at = start; !seen.has(at); at = successors[at] as number) {
        seen.add(at);
        length += 1;
      }
      return length;
    })
    .sort((a, b) => a - b);
}

test('property: rows that each refer to one other row compare by the lengths of their cycles', () => {
  const verdicts = { equal: 0, different: 0 };
  const size = 9;
  const permutation = fc.shuffledSubarray(identity(size), { minLength: size });
  const renamed = permutation.chain((web) =>
    fc.tuple(fc.constant(web), permutation).map(([one, ids]) => [one, one, ids]),
  );
  const drawn = (successors: readonly number[]): GraphShape => ({
    vertices: size,
    edges: successors.map((to, from): Edge => [from, to]),
  });
  fc.assert(
    fc.property(
      fc.oneof(renamed, fc.tuple(permutation, permutation, permutation)),
      ([one = [], other = [], ids]) => {
        const expected =
          canonical(cycleLengths(one)) === canonical(cycleLengths(other)) ? 'equal' : 'different';
        assert.equal(compareGraphs(drawn(one), observeGraph(drawn(other), ids)).kind, expected);
        verdicts[expected] += 1;
      },
    ),
    { numRuns: 600 },
  );
  assert.ok(
    Math.min(verdicts.equal, verdicts.different) > 100,
    `both verdicts occur often: ${canonical(verdicts)}`,
  );
});

const cycle = (length: number, from = 0): readonly Edge[] =>
  identity(length).map((vertex) => [from + vertex, from + ((vertex + 1) % length)]);

test('one long cycle of references is not two short ones, though every row looks alike', () => {
  const twoShort = { vertices: 8, edges: [...cycle(4), ...cycle(4, 4)] };
  const oneLong = { vertices: 8, edges: cycle(8) };
  for (const [approved, left] of [
    [twoShort, oneLong],
    [oneLong, twoShort],
  ] as const) {
    const references = approveGraph(approved).toReversed();
    const result = compare(references, observeGraph(left), { assigned: GRAPH_EVIDENCE });
    assert.ok(result.kind === 'different' && result.reason === 'labels');
    const { missing, extra } = result.diff;
    assert.ok(missing.length > 0 && missing.length === extra.length);
    for (const effect of [...missing, ...extra])
      assert.equal(effect.target, 'u', 'the references are what is wrong');
  }
  assert.equal(
    compareGraphs(twoShort, observeGraph(twoShort, [7, 2, 5, 0, 1, 6, 3, 4])).kind,
    'equal',
  );
});

test('regular graphs that only a full search tells apart are never equal', () => {
  const both = (edges: readonly Edge[]) =>
    edges.flatMap(([from, to]): Edge[] => [
      [from, to],
      [to, from],
    ]);
  const prism = { vertices: 6, edges: both([...cycle(3), ...cycle(3, 3), [0, 3], [1, 4], [2, 5]]) };
  const utility = {
    vertices: 6,
    edges: both(
      [0, 1, 2].flatMap((from): Edge[] => [
        [from, 3],
        [from, 4],
        [from, 5],
      ]),
    ),
  };
  assert.equal(compareGraphs(prism, observeGraph(utility)).kind, 'different');
  assert.equal(compareGraphs(utility, observeGraph(prism)).kind, 'different');
  assert.equal(compareGraphs(utility, observeGraph(utility, [3, 0, 4, 1, 5, 2])).kind, 'equal');
});

const random = (seed: number) => () => {
  // A small linear congruential generator: the cases are the same on every run.
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
  return seed / 2 ** 32;
};

function shuffled(length: number, next: () => number): readonly number[] {
  const items = identity(length);
  for (let last = length - 1; last > 0; last -= 1) {
    const other = Math.floor(next() * (last + 1));
    [items[last], items[other]] = [items[other] as number, items[last] as number];
  }
  return items;
}

test('a large web with two swapped references is different or undecided, never equal', () => {
  const kinds = new Set<string>();
  for (let seed = 1; seed <= 12; seed += 1) {
    const next = random(seed);
    const vertices = 40;
    // Three permutations: every row is referred to three times and nothing but the web itself tells
    // rows apart.
    const edges = [0, 1, 2].flatMap(() =>
      shuffled(vertices, next).map((to, from): Edge => [from, to]),
    );
    const web = { vertices, edges };
    const ids = shuffled(vertices, next);
    assert.equal(compareGraphs(web, observeGraph(web, ids)).kind, 'equal');
    const [first, second] = [edges[seed], edges[vertices + 3 * seed]] as [Edge, Edge];
    const crossed = edges.map((edge): Edge => {
      if (edge === first) return [first[0], second[1]];
      return edge === second ? [second[0], first[1]] : edge;
    });
    // The number of closed walks tells most non-isomorphic webs apart without any search.
    if (canonical(closedWalks({ vertices, edges: crossed })) === canonical(closedWalks(web)))
      continue;
    const { kind } = compareGraphs(web, observeGraph({ vertices, edges: crossed }, ids));
    assert.notEqual(kind, 'equal', `seed ${seed}`);
    kinds.add(kind);
  }
  assert.ok(kinds.has('different'));
});

/** How many closed walks of each length there are: the same for isomorphic graphs. */
function closedWalks({ vertices, edges }: GraphShape): readonly number[] {
  let reach: number[][] = identity(vertices).map((from) =>
    identity(vertices).map((to) => (from === to ? 1 : 0)),
  );
  return [1, 2, 3, 4, 5, 6].map(() => {
    const longer = reach.map((row) => row.map(() => 0));
    reach.forEach((row, start) => {
      for (const [from, to] of edges)
        (longer[start] as number[])[to] = (longer[start]?.[to] ?? 0) + (row[from] ?? 0);
    });
    reach = longer;
    return reach.reduce((sum, row, index) => sum + (row[index] ?? 0), 0);
  });
}

test('a wrong guess leaves no trace: webs of many parts are found equal under every renaming', () => {
  // Cycles of different lengths: most first guesses put a short cycle on a long one and have to be
  // taken back.
  const edges = [...cycle(2), ...cycle(3, 2), ...cycle(5, 5), [0, 2], [2, 5]] as const;
  const web = { vertices: 10, edges };
  for (let seed = 1; seed <= 150; seed += 1) {
    const next = random(seed);
    const observed = observeGraph(web, shuffled(10, next));
    const inAnyOrder = shuffled(observed.length, next).map(
      (position) => observed[position] as Effect,
    );
    assert.equal(compareGraphs(web, inAnyOrder).kind, 'equal', `seed ${seed}`);
  }
});

test('tables that refer to each other in a circle are told apart from tables that refer crosswise', () => {
  const approved = ['x', 'y'].flatMap((name) => [
    insertion('t', { id: gen(`t${name}`) }, { a: gen(`u${name}`), b: { is: 0 } }),
    insertion('u', { id: gen(`u${name}`) }, { a: gen(`t${name}`), b: { is: 0 } }),
  ]);
  const row = (target: string, id: number, a: number): Effect => ({
    op: 'insert',
    target,
    key: { id },
    after: { a, b: 0 },
  });
  const circles = [row('t', 1, 11), row('t', 2, 12), row('u', 11, 1), row('u', 12, 2)];
  const crossed = [row('t', 1, 11), row('t', 2, 12), row('u', 11, 2), row('u', 12, 1)];
  assert.equal(compare(approved, circles, { assigned: GRAPH_EVIDENCE }).kind, 'equal');
  const result = compare(approved, crossed, { assigned: GRAPH_EVIDENCE });
  assert.ok(result.kind === 'different' && result.reason === 'labels');
  assert.ok(
    result.diff.missing.length > 0 && result.diff.missing.length === result.diff.extra.length,
  );
});

test('a label stands for a value that the backend assigned', () => {
  const approved = [insertion('t', { id: gen('new') }, is({ a: 0, b: 0 }))];
  const observed = (id: number): Effect[] => [
    { op: 'insert', target: 't', key: { id }, after: { a: 0, b: 0 } },
  ];
  const range = [{ target: 't', column: 'id', above: '6', upTo: '7' }];
  assert.equal(compare(approved, observed(7), { assigned: range }).kind, 'equal');
  assert.equal(
    compare(approved, observed(6), { assigned: range }).kind,
    'different',
    'the range is open below',
  );
  assert.equal(
    compare(approved, observed(8), { assigned: range }).kind,
    'different',
    'beyond what was assigned',
  );
  assert.equal(
    compare(approved, observed(7)).kind,
    'different',
    'without evidence anybody may have chosen it',
  );
  const fresh = [{ target: 't', column: 'id', fresh: [7, 9] }];
  assert.equal(compare(approved, observed(9), { assigned: fresh }).kind, 'equal');
  assert.equal(compare(approved, observed(8), { assigned: fresh }).kind, 'different');
  assert.equal(
    compare(approved, observed(9), { assigned: [...range, ...fresh] }).kind,
    'different',
    'all evidence counts',
  );
});

test('one cell with evidence is enough for a label, and references need none of their own', () => {
  const approved = [
    insertion('t', { id: gen('new') }, is({ a: 0, b: 0 })),
    insertion('u', is({ id: 1 }), { a: gen('new'), b: gen('new') }),
  ];
  const observed = (id: number, a: number, b: number): Effect[] => [
    { op: 'insert', target: 't', key: { id }, after: { a: 0, b: 0 } },
    { op: 'insert', target: 'u', key: { id: 1 }, after: { a, b } },
  ];
  const assigned = [{ target: 't', column: 'id', above: '0', upTo: '9' }];
  assert.equal(compare(approved, observed(5, 5, 5), { assigned }).kind, 'equal');
  assert.equal(compare(approved, observed(5, 5, 4), { assigned }).kind, 'different');
  assert.equal(compare(approved, observed(5, 4, 4), { assigned }).kind, 'different');
});

test('different labels of one column have different values, of different columns they need not', () => {
  const assigned = [
    { target: 't', column: 'a', above: '0', upTo: '9' },
    { target: 't', column: 'b', above: '0', upTo: '9' },
  ];
  const row = (id: number, a: number, b: number): Effect => ({
    op: 'insert',
    target: 't',
    key: { id },
    after: { a, b },
  });
  const column = ['x', 'y'].map((name, index) =>
    insertion('t', is({ id: index }), { a: gen(name), b: any }),
  );
  assert.equal(compare(column, [row(0, 4, 0), row(1, 5, 0)], { assigned }).kind, 'equal');
  assert.equal(compare(column, [row(0, 4, 0), row(1, 4, 0)], { assigned }).kind, 'different');
  const columns = [insertion('t', is({ id: 0 }), { a: gen('x'), b: gen('y') })];
  assert.equal(compare(columns, [row(0, 4, 4)], { assigned }).kind, 'equal');
});

test('an update whose two labels of one column have the same value is shown as the row that breaks them', () => {
  const update = (id: number, a: number): Effect => ({
    ...{ op: 'update', target: 't', key: { id } },
    ...{ before: { a }, after: { a } },
  });
  const approve = (id: CellRow, before: CellRow, after: CellRow): ApprovedEffect => ({
    ...{ op: 'update', target: 't', key: id },
    ...{ before, after, count: 1 },
  });
  const broken = approve({ id: gen('row') }, { a: gen('was') }, { a: gen('is') });
  const approved = [broken, approve({ id: any }, is({ a: 2 }), is({ a: 2 }))];
  const assigned = ['id', 'a'].map((column) => ({ target: 't', column, above: '0', upTo: '9' }));
  const result = compare(approved, [update(2, 2), update(1, 3)], { assigned });
  assert.ok(result.kind === 'different' && result.reason === 'labels');
  assert.deepEqual(result.diff.missing, [broken]);
  assert.deepEqual(
    result.diff.extra.map(({ key }) => key),
    [{ id: 1 }],
  );
});

test('labels that share nothing but a column still compete for its values', () => {
  // x may take 1 or 2, the three others 1, 3 or 4: x has to take 2, which only shows when the
  // others are tried.
  const approved = [
    insertion('u', { id: any }, { a: gen('x'), b: { is: 0 } }),
    insertion('u', { id: any }, { a: any, b: { is: 0 } }),
    ...['l', 'm', 'n'].map((label) => insertion('u', { id: any }, { a: gen(label), b: { is: 1 } })),
    insertion('u', { id: any }, { a: any, b: { is: 1 } }, 3),
  ];
  const assigned = [{ target: 'u', column: 'a', above: '0', upTo: '9' }];
  const rows = (values: readonly number[], b: number) =>
    values.map(
      (a, index): Effect => ({
        op: 'insert',
        target: 'u',
        key: { id: 10 * b + index },
        after: { a, b },
      }),
    );
  for (const first of [
    [1, 2],
    [2, 1],
  ]) {
    const enough = [...rows(first, 0), ...rows([1, 1, 3, 3, 4, 4], 1)];
    assert.equal(compare(approved, enough, { assigned }).kind, 'equal');
    assert.equal(compare(approved, enough.toReversed(), { assigned }).kind, 'equal');
    const scarce = [...rows(first, 0), ...rows([1, 1, 1, 3, 3, 3], 1)];
    assert.equal(
      compare(approved, scarce, { assigned }).kind,
      'different',
      'three labels, two values',
    );
  }
});

test('labels that share nothing but a row still compete for it', () => {
  // The three labels of b need three values, so one of them needs the row with b = 1, which x could
  // take as well.
  const approved = [
    insertion('u', { id: any }, { a: gen('x'), b: any }),
    ...['l', 'm', 'n'].map((label) => insertion('u', { id: any }, { a: any, b: gen(label) })),
    insertion('u', { id: any }, { a: any, b: any }),
  ];
  const assigned = [
    { target: 'u', column: 'a', fresh: [7, 8] },
    { target: 'u', column: 'b', above: '0', upTo: '9' },
  ];
  const observed = [
    [7, 1],
    [8, 2],
    [9, 2],
    [9, 3],
    [9, 3],
  ].map(
    ([a = 0, b = 0], id): Effect => ({ op: 'insert', target: 'u', key: { id }, after: { a, b } }),
  );
  assert.equal(compare(approved, observed, { assigned }).kind, 'equal');
  assert.equal(compare(approved, observed.toReversed(), { assigned }).kind, 'equal');
  const taken = [{ target: 'u', column: 'a', fresh: [7] }, ...assigned.slice(1)];
  assert.equal(
    compare(approved, observed, { assigned: taken }).kind,
    'different',
    'x must take it',
  );
});

test('a label that is still open cannot take what another label certainly has', () => {
  const approved = [
    insertion('u', { id: any }, { a: gen('sure'), b: { is: 0 } }),
    insertion('u', { id: any }, { a: gen('open'), b: { is: 1 } }),
    insertion('u', { id: any }, { a: any, b: { is: 1 } }),
  ];
  const assigned = [{ target: 'u', column: 'a', above: '0', upTo: '9' }];
  const rows = (...values: readonly number[]) =>
    values.map(
      (a, id): Effect => ({
        op: 'insert',
        target: 'u',
        key: { id },
        after: { a, b: id === 0 ? 0 : 1 },
      }),
    );
  assert.equal(compare(approved, rows(1, 1, 2), { assigned }).kind, 'equal');
  assert.equal(compare(approved, rows(1, 2, 1), { assigned }).kind, 'equal');
  assert.equal(compare(approved, rows(1, 1, 1), { assigned }).kind, 'different');
});

test('a label without evidence is not carried by another label that has some', () => {
  const approved = [
    insertion('t', { id: gen('x') }, is({ a: 0, b: 0 })),
    insertion('u', { id: any }, { a: gen('x'), b: { is: 0 } }),
    insertion('u', { id: any }, { a: gen('y'), b: { is: 0 } }),
  ];
  const observed: Effect[] = [
    { op: 'insert', target: 't', key: { id: 5 }, after: { a: 0, b: 0 } },
    { op: 'insert', target: 'u', key: { id: 1 }, after: { a: 5, b: 0 } },
    { op: 'insert', target: 'u', key: { id: 2 }, after: { a: 6, b: 0 } },
  ];
  const id = { target: 't', column: 'id', above: '0', upTo: '9' };
  assert.equal(compare(approved, observed, { assigned: [id] }).kind, 'different');
  assert.equal(
    compare(approved, observed, { assigned: [id, { ...id, target: 'u', column: 'a' }] }).kind,
    'equal',
  );
});

test('a label with a multiplicity has one value in all copies', () => {
  const approved = [insertion('t', { id: any }, { a: gen('x'), b: { is: 0 } }, 2)];
  const assigned = [{ target: 't', column: 'a', above: '0', upTo: '9' }];
  const row = (id: number, a: number): Effect => ({
    op: 'insert',
    target: 't',
    key: { id },
    after: { a, b: 0 },
  });
  assert.equal(compare(approved, [row(1, 4), row(2, 4)], { assigned }).kind, 'equal');
  assert.equal(compare(approved, [row(1, 4), row(2, 5)], { assigned }).kind, 'different');
});

test('a wrong reference shows as the row that has it, not as the row it should refer to', () => {
  const approved = [
    insertion('u', is({ id: 7 }), { a: gen('one'), b: { is: 0 } }),
    insertion('t', { id: gen('one') }, is({ a: 1, b: 0 })),
    insertion('t', { id: gen('two') }, is({ a: 2, b: 0 })),
  ];
  const result = compare(
    approved,
    [
      { op: 'insert', target: 'u', key: { id: 7 }, after: { a: 12, b: 0 } },
      { op: 'insert', target: 't', key: { id: 11 }, after: { a: 1, b: 0 } },
      { op: 'insert', target: 't', key: { id: 12 }, after: { a: 2, b: 0 } },
    ],
    { assigned: [{ target: 't', column: 'id', above: '10', upTo: '12' }] },
  );
  assert.ok(result.kind === 'different');
  assert.deepEqual(result.diff, {
    extra: [],
    missing: [],
    altered: [
      {
        approved: approved[0],
        observed: { op: 'insert', target: 'u', key: { id: 7 }, after: { a: 12, b: 0 }, count: 1 },
      },
    ],
    omitted: 0,
  });
});

test('crossed references between rows that are alike show as the rows that have them', () => {
  const approved = ['x', 'y'].flatMap((name, index) => [
    ...[0, 1].map((part) =>
      insertion('u', is({ id: 2 * index + part }), { a: gen(name), b: { is: part } }),
    ),
    insertion('t', { id: gen(name) }, is({ a: 0, b: 0 })),
  ]);
  const line = (id: number, a: number): Effect => ({
    op: 'insert',
    target: 'u',
    key: { id },
    after: { a, b: id % 2 },
  });
  const parent = (id: number): Effect => ({
    op: 'insert',
    target: 't',
    key: { id },
    after: { a: 0, b: 0 },
  });
  const assigned = [{ target: 't', column: 'id', above: '0', upTo: '9' }];
  const parents = [parent(5), parent(6)];
  assert.equal(
    compare(approved, [line(0, 6), line(1, 6), line(2, 5), line(3, 5), ...parents], { assigned })
      .kind,
    'equal',
  );
  const result = compare(approved, [line(0, 6), line(1, 5), line(2, 5), line(3, 6), ...parents], {
    assigned,
  });
  assert.ok(result.kind === 'different' && result.reason === 'labels');
  assert.ok(result.diff.altered.length > 0);
  assert.deepEqual([...result.diff.missing, ...result.diff.extra], []);
  for (const { approved: wanted } of result.diff.altered) assert.equal(wanted.target, 'u');
});

test('usual approvals with labels cost a number of steps in proportion to their size', () => {
  const assigned = GRAPH_EVIDENCE;
  for (const size of [100, 1000, 4000]) {
    const budget = 40 * size;
    const rows = identity(size);
    const parentAndChild = rows.flatMap((n) => [
      insertion('t', { id: gen(`p${n}`) }, is({ a: n, b: 0 })),
      insertion('u', { id: gen(`c${n}`) }, { a: gen(`p${n}`), b: { is: 'same in every row' } }),
    ]);
    const left = rows.flatMap((n): Effect[] => [
      {
        op: 'insert',
        target: 'u',
        key: { id: size - n },
        after: { a: n + 1, b: 'same in every row' },
      },
      { op: 'insert', target: 't', key: { id: n + 1 }, after: { a: n, b: 0 } },
    ]);
    assert.equal(compare(parentAndChild, left, { assigned, budget }).kind, 'equal');
    const alike = rows.map((n) => insertion('t', { id: gen(`r${n}`) }, is({ a: 0, b: 0 })));
    const inserted = rows.map(
      (n): Effect => ({ op: 'insert', target: 't', key: { id: n + 1 }, after: { a: 0, b: 0 } }),
    );
    assert.equal(compare(alike, inserted, { assigned, budget }).kind, 'equal');
  }
});

test('of orders that only their lines tell apart, hundreds are decided and the rest is given up', () => {
  const kindOf = (size: number) => {
    const rows = identity(size);
    const approved = rows.flatMap((n) => [
      insertion('t', { id: gen(`p${n}`) }, is({ a: 0, b: 0 })),
      ...[0, 1].map((line) =>
        insertion('u', { id: gen(`c${n}.${line}`) }, { a: gen(`p${n}`), b: { is: line } }),
      ),
    ]);
    const observed = rows.flatMap((n): Effect[] => [
      { op: 'insert', target: 't', key: { id: n + 1 }, after: { a: 0, b: 0 } },
      ...[0, 1].map(
        (line): Effect => ({
          op: 'insert',
          target: 'u',
          key: { id: 2 * n + line + 1 },
          after: { a: n + 1, b: line },
        }),
      ),
    ]);
    return compare(approved, observed, { assigned: GRAPH_EVIDENCE }).kind;
  };
  assert.equal(kindOf(300), 'equal');
  assert.equal(kindOf(400), 'budget');
});

test('a search that would take too long is given up and says so', () => {
  const next = random(99);
  const vertices = 60;
  const edges = [0, 1, 2].flatMap(() =>
    shuffled(vertices, next).map((to, from): Edge => [from, to]),
  );
  const result = compareGraphs({ vertices, edges }, observeGraph({ vertices, edges }), 5000);
  assert.ok(result.kind === 'budget' && result.steps > 5000 && result.steps < 50_000);
});
