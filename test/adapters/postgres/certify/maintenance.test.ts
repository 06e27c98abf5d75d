// Goal: every expression that maintenance evaluates on rows of an operation is judged, with the
// statement that removes it. Method: small catalogues written by hand, in which one function
// writes; `delayed.test.ts` does the same on a server.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  ConstraintRow,
  FunctionRow,
  RelationRow,
  SystemCatalog,
} from '../../../../src/adapters/postgres/certify/catalog.ts';
import { indexCatalog } from '../../../../src/adapters/postgres/certify/catalog-index.ts';
import { surveyDelayed } from '../../../../src/adapters/postgres/certify/delayed.ts';
import { type BoundaryFacts, Outlets } from '../../../../src/adapters/postgres/certify/facts.ts';
import type { Reach } from '../../../../src/adapters/postgres/certify/reach.ts';
import { catalogOf, fn, index, operator, relation, rule, type, use } from './rows.ts';

/** Writes somewhere, so that whatever maintenance calls it is a finding. */
const WRITER = fn('w', 'insert into elsewhere values (1) returning 1');
const TABLE = relation('t', 'r', { owner: 'Owner' });
const OTHER = relation('other', 'r');

interface Place {
  readonly facts?: Partial<BoundaryFacts>;
  readonly executable?: readonly FunctionRow[];
}

/** What is found in a catalogue in which operations reach the table. */
async function surveyOf(
  parts: Partial<SystemCatalog>,
  { facts = {}, executable = [] }: Place = {},
) {
  const catalog = catalogOf({
    ...parts,
    functions: [WRITER, ...(parts.functions ?? [])],
    relations: [TABLE, OTHER, ...(parts.relations ?? [])],
  });
  const reach = { relations: new Map([[TABLE, {}]]) } as unknown as Reach;
  const outlets = new Outlets();
  const control = { query: async () => ({ rows: [['[{"name":"nextval"},{"name":"random"}]']] }) };
  const given = { executor: 'exec', relations: [], ...facts } as unknown as BoundaryFacts;
  const known = indexCatalog(catalog, given, new Set(executable.map(({ oid }) => oid)));
  const rest = { reach, outlets, given: '', unclosed: new Map<string, string>() };
  await surveyDelayed({ control, catalog, facts: given, index: known, ...rest });
  return outlets;
}

const problemsOf = async (...asked: Parameters<typeof surveyOf>) =>
  (await surveyOf(...asked)).problems;

/** The only finding. */
async function foundIn(...asked: Parameters<typeof surveyOf>) {
  const problems = await problemsOf(...asked);
  assert.equal(problems.length, 1, problems.map(({ outlet }) => outlet).join(', '));
  return problems[0] ?? assert.fail();
}

const uses = (kind: string, object: number, called = WRITER) => [
  use(called, { class: kind, object }),
];
const constraint = (more: Partial<ConstraintRow>) =>
  ({
    ...{
      oid: 77,
      relation: 0,
      type: 0,
      object: 'positive',
      kind: 'c',
      domain: null,
      definition: 'CHECK (w(a) > 0)',
    },
    ...more,
  }) as ConstraintRow;

describe('stored expressions', () => {
  const byIndex = index('i', TABLE, 'CREATE INDEX i ON app.t USING btree (w(a))');

  test('an index of a reached table is told with who evaluates it, why, and how to remove it', async () => {
    assert.deepEqual(await foundIn({ indexes: [byIndex], uses: uses('pg_class', byIndex.oid) }), {
      outlet: 'maintenance of index app.i',
      object: 'app.t',
      why:
        'ANALYZE, REINDEX or autovacuum evaluates it after the commit, where nothing observes it, and app.w() may ' +
        `write (INSERT) (or have it read and declare its digest ${await digestOf()})`,
      fix: ['DROP INDEX app.i'],
      needs: '"Owner" or a superuser',
      behind: 'relation app.t',
    });
  });

  test('what an index uses is what counts, and the table must be reached', async () => {
    for (const [kind, object] of [
      ['pg_rewrite', byIndex.oid],
      ['pg_class', 1],
    ] as const) {
      assert.deepEqual(await problemsOf({ indexes: [byIndex], uses: uses(kind, object) }), []);
    }
    const unreached = index('j', OTHER, 'CREATE INDEX j ON app.other USING btree (w(a))');
    assert.deepEqual(
      await problemsOf({ indexes: [unreached], uses: uses('pg_class', unreached.oid) }),
      [],
    );
    for (const kind of ['pg_opclass', 'pg_statistic_ext', 'pg_constraint']) {
      assert.equal(
        (await foundIn({ indexes: [byIndex], uses: uses(kind, byIndex.oid) })).object,
        'app.t',
      );
    }
  });

  test('how many were judged is told', async () => {
    const pure = index('p', TABLE, 'CREATE INDEX p ON app.t USING btree (a)');
    const { listed } = await surveyOf({
      indexes: [byIndex, pure, pure],
      uses: uses('pg_class', byIndex.oid),
    });
    const told = listed.filter(({ disposition }) => disposition === 'denied').map(({ by }) => by);
    assert.deepEqual(told, ['2 expressions that it evaluates only read and compute']);
  });

  test('an index that a constraint needs goes with the constraint', async () => {
    const fixOf = async (more: Partial<ConstraintRow>) => {
      const constraints = [
        constraint({ relation: TABLE.oid, object: 'i', definition: '', ...more }),
      ];
      return (
        await foundIn({ indexes: [byIndex], constraints, uses: uses('pg_class', byIndex.oid) })
      ).fix;
    };
    for (const kind of ['x', 'u', 'p']) {
      assert.deepEqual(await fixOf({ kind }), ['ALTER TABLE app.t DROP CONSTRAINT i']);
    }
    for (const more of [
      { kind: 'c' },
      { kind: 'u', relation: OTHER.oid },
      { kind: 'u', object: 'other' },
    ]) {
      assert.deepEqual(await fixOf(more), ['DROP INDEX app.i']);
    }
  });

  test('statistics, partition keys and checks that are still to be validated', async () => {
    const statistics = [index('s', TABLE, 'CREATE STATISTICS s ON (w(a)) FROM app.t')];
    const byStatistics = await foundIn({
      statistics,
      uses: uses('pg_statistic_ext', statistics[0]?.oid ?? 0),
    });
    assert.equal(byStatistics.outlet, 'maintenance of statistics app.s');
    assert.match(byStatistics.why, /^ANALYZE or autovacuum /);
    assert.deepEqual(byStatistics.fix, ['DROP STATISTICS app.s']);

    const parted = relation('parted', 'p', { partitionKey: "RANGE (nextval('s'))" });
    const listed = { relations: [parted, relation('whole', 'p')] };
    assert.deepEqual(await problemsOf(listed), [], 'it is not reached');
    const key = await foundIn({ relations: [{ ...parted, oid: TABLE.oid }] });
    assert.equal(key.outlet, 'maintenance of partition key of app.parted');
    assert.match(key.why, /^ATTACH PARTITION .* it calls nextval/);

    const unvalidated = constraint({
      relation: TABLE.oid,
      definition: "CHECK (nextval('s') > 0) NOT VALID",
    });
    const check = await foundIn({ constraints: [unvalidated] });
    assert.equal(check.outlet, 'maintenance of constraint positive');
    assert.match(check.why, /^VALIDATE CONSTRAINT /);
    assert.deepEqual(check.fix, ['ALTER TABLE app.t DROP CONSTRAINT positive']);
    for (const more of [{ kind: 'f' }, { definition: "CHECK (nextval('s') > 0)" }]) {
      assert.deepEqual(await problemsOf({ constraints: [{ ...unvalidated, ...more }] }), []);
    }
  });

  test('the unvalidated check of a domain belongs to no table', async () => {
    const definition = "CHECK (nextval('s') > 0) NOT VALID";
    const { object, fix, needs } = await foundIn({
      constraints: [constraint({ domain: 'app.d', definition })],
    });
    assert.deepEqual(
      { object, fix, needs },
      {
        object: 'constraint positive',
        fix: ['ALTER DOMAIN app.d DROP CONSTRAINT positive'],
        needs: 'the owner of the domain or a superuser',
      },
    );
  });
});

async function digestOf(): Promise<string> {
  const { digestFunction } = await import('../../../../src/adapters/postgres/certify/reviews.ts');
  return digestFunction(WRITER);
}

describe('rights that only such an expression needs', () => {
  const byIndex = index('i', TABLE, 'CREATE INDEX i ON app.t USING btree (w(a))');
  const parts = { indexes: [byIndex], uses: uses('pg_class', byIndex.oid) };
  const revoke = 'REVOKE EXECUTE ON ROUTINE app.w() FROM PUBLIC, "exec"';

  test('are revoked with it, unless the function is used elsewhere or cannot be executed', async () => {
    const executable = [WRITER];
    assert.deepEqual((await foundIn(parts, { executable })).fix, ['DROP INDEX app.i', revoke]);
    assert.deepEqual((await foundIn(parts)).fix, ['DROP INDEX app.i']);
    const elsewhere = { ...parts, uses: [...parts.uses, ...uses('pg_attrdef', 5)] };
    assert.deepEqual((await foundIn(elsewhere, { executable })).fix, ['DROP INDEX app.i']);
    const others = { ...parts, uses: [...parts.uses, ...uses('pg_attrdef', 5, fn('other'))] };
    assert.deepEqual((await foundIn(others, { executable })).fix, ['DROP INDEX app.i', revoke]);
    const twice = { ...parts, uses: [...parts.uses, ...uses('pg_class', byIndex.oid)] };
    assert.deepEqual((await foundIn(twice, { executable })).fix, ['DROP INDEX app.i', revoke]);
  });

  test('are left to functions of the server and of trusted extensions', async () => {
    const trusted = fn('trusted', 'lib', { extension: 'citext', language: 'c' });
    const builtin = fn('builtin');
    const all = [
      ...parts.uses,
      ...uses('pg_class', byIndex.oid, trusted),
      ...uses('pg_class', byIndex.oid, builtin),
    ];
    const found = await foundIn(
      { ...parts, functions: [trusted], uses: all },
      { executable: [trusted, builtin] },
    );
    assert.deepEqual(found.fix, ['DROP INDEX app.i']);
  });
});

describe('comparisons of column types', () => {
  const description = 'function 1 app.w() of operator family app.ops for access method btree';
  const compares = (more: object = {}) => [
    use(WRITER, { class: 'pg_amproc', description, ...more }),
  ];

  test('are judged, with the operator family as what to drop', async () => {
    for (const kind of ['pg_amproc', 'pg_amop']) {
      const { outlet, object, fix, needs } = await foundIn({ uses: compares({ class: kind }) });
      assert.equal(outlet, `maintenance of ${description}`);
      assert.deepEqual([object, needs], ['app.w()', 'superuser']);
      assert.deepEqual(fix, ['DROP OPERATOR FAMILY app.ops USING btree CASCADE']);
    }
  });

  test('of the server, of trusted extensions, or of something else are not', async () => {
    assert.deepEqual(await problemsOf({ uses: compares({ function: 42 }) }), []);
    assert.deepEqual(await problemsOf({ uses: compares({ class: 'pg_proc' }) }), []);
    assert.deepEqual(await problemsOf({ uses: compares({ description: 'function app.w()' }) }), []);
    const trusted = fn('x', 'insert', { extension: 'ours' });
    const { listed, problems } = await surveyOf(
      { functions: [trusted], uses: compares({ function: trusted.oid }) },
      { facts: { trustedCode: ['ours'] } },
    );
    assert.deepEqual(problems, []);
    assert.match(JSON.stringify(listed), /"0 expressions/, 'it is not even counted');
  });
});

describe('materialized views', () => {
  const stored = relation('m', 'm');
  const calls = (called: FunctionRow) => use(called, { class: 'pg_rewrite', relation: stored.oid });
  /** A view that calls what writes, with this query. */
  const viewOf = (
    query: string,
    parts: Partial<SystemCatalog> = {},
    view: RelationRow = stored,
  ) => ({
    ...parts,
    relations: [view, ...(parts.relations ?? [])],
    rules: [rule(view, query), ...(parts.rules ?? [])],
    uses: [calls(WRITER), ...(parts.uses ?? [])],
  });
  const reader = fn('g', 'select a from t');

  test('one over a reached table is told with how to remove it', async () => {
    const { outlet, object, why, fix, needs } = await foundIn(viewOf('SELECT w(a) FROM app.t'));
    assert.deepEqual([outlet, object], ['maintenance of materialized view app.m', 'app.m']);
    assert.match(why, /^REFRESH evaluates it .* app\.w\(\) may write/);
    assert.deepEqual(
      [fix, needs],
      [['DROP MATERIALIZED VIEW app.m CASCADE'], '"app" or a superuser'],
    );
    const { fix: revoking } = await foundIn(viewOf('SELECT w(a) FROM app.t'), {
      executable: [WRITER],
    });
    assert.equal(revoking.length, 2);
    const apart = { uses: [use(WRITER, { class: 'pg_class', relation: stored.oid })] };
    const { fix: kept } = await foundIn(viewOf('SELECT w(a) FROM app.t', apart), {
      executable: [WRITER],
    });
    assert.equal(kept.length, 1, 'the function is also in an index');
    const shared = { uses: [use(WRITER, { class: 'pg_rewrite', relation: OTHER.oid })] };
    const { fix: lent } = await foundIn(viewOf('SELECT w(a) FROM app.t', shared), {
      executable: [WRITER],
    });
    assert.equal(lent.length, 1, 'the function is also in another view');
  });

  test('one over other tables is not refreshed from what an operation wrote', async () => {
    assert.deepEqual(await problemsOf(viewOf('SELECT w(a) FROM app.other')), []);
    const ordinary = relation('m', 'v', { oid: stored.oid });
    assert.deepEqual(await problemsOf(viewOf('SELECT w(a) FROM app.t', {}, ordinary)), []);
  });

  test('its own indexes are judged when it is', async () => {
    const over = index('i', stored, 'CREATE INDEX i ON app.m USING btree (w(a))');
    const parts = { relations: [stored], indexes: [over], uses: uses('pg_class', over.oid) };
    const reached = { ...parts, rules: [rule(stored, 'SELECT a FROM app.t')] };
    assert.equal((await foundIn(reached)).outlet, 'maintenance of index app.i');
    assert.deepEqual(
      await problemsOf({ ...parts, rules: [rule(stored, 'SELECT a FROM app.other')] }),
      [],
    );
  });

  const through = relation('v', 'v');
  const back = relation('back', 'v');
  const step = fn('step', '', { sqlBody: 'select g()' });
  const domain = type('d');
  const WAYS: Readonly<Record<string, Partial<SystemCatalog>>> = {
    'a view': {
      relations: [through, back],
      rules: [rule(through, 'SELECT a FROM app.back'), rule(back, 'SELECT a FROM app.v, app.t')],
    },
    'the body of a function': { functions: [reader], rules: [rule(through, 'x')] },
    'a function that only the server knows it calls': {
      functions: [reader],
      uses: [calls(reader)],
    },
    'a function of a function': { functions: [step, reader], uses: [calls(step)] },
    'a function that only the server knows a function to call': {
      functions: [{ ...step, sqlBody: 'select 1' }, reader],
      uses: [calls(step), use(reader, { class: 'pg_proc', object: step.oid })],
    },
    'a cast': {
      functions: [reader],
      casts: [{ function: reader.oid } as SystemCatalog['casts'][number]],
    },
    'a check of a domain': {
      functions: [reader],
      types: [domain],
      uses: [use(reader, { type: domain.oid })],
    },
    'an operator': { functions: [reader], operators: [operator('###', reader.oid)] },
  };
  for (const [way, parts] of Object.entries(WAYS)) {
    const query = { 'a view': 'SELECT w(a) FROM app.v', 'an operator': 'SELECT w(a ### b)' }[way];
    const text = query ?? (way === 'the body of a function' ? 'SELECT w(g())' : 'SELECT w(1)');
    test(`one that reads a reached table through ${way} is judged`, async () => {
      assert.equal((await foundIn(viewOf(text, parts))).object, 'app.m');
    });
  }

  test('what is not named, called or used by it leads nowhere', async () => {
    const parts: Partial<SystemCatalog> = {
      functions: [reader, fn('h', 'select 1')],
      relations: [through],
      rules: [rule(through, 'SELECT a FROM app.t')],
      operators: [operator('###', reader.oid)],
      uses: [
        use(reader, { class: 'pg_rewrite', relation: through.oid }),
        use(reader, { class: 'pg_policy', relation: stored.oid }),
        use(reader, { class: 'pg_proc', object: 1 }),
        use(reader, { class: 'pg_class', object: WRITER.oid }),
      ],
    };
    assert.deepEqual(await problemsOf(viewOf('SELECT w(a), h() FROM app.other', parts)), []);
  });

  test('views and functions that lead back to themselves, and functions of the server, lead nowhere', async () => {
    const parts: Partial<SystemCatalog> = {
      functions: [fn('f', 'select h()'), fn('h', 'select f()')],
      relations: [through, back],
      rules: [rule(through, 'SELECT a FROM app.back'), rule(back, 'SELECT a FROM app.v')],
      operators: [operator('###', 42)],
      casts: [{ function: 42 } as SystemCatalog['casts'][number]],
    };
    assert.deepEqual(await problemsOf(viewOf('SELECT w(a ### f(b)) FROM app.v', parts)), []);
  });

  test('a function whose reading cannot be known may read everything', async () => {
    for (const [blind, isBlind] of [
      [fn('g', 'lib', { language: 'c' }), true],
      [fn('g', 'lib', { language: 'c', extension: 'other' }), false],
      [fn('g', 'aggregate_dummy', { language: 'internal', kind: 'a' }), false],
      [fn('g', 'begin execute x; end', { language: 'plpgsql' }), true],
      [fn('g', 'begin return x; end', { language: 'plpgsql' }), false],
      [fn('g', 'select a from t', { sqlBody: 'select 1' }), false],
    ] as const) {
      const problems = await problemsOf(
        viewOf('SELECT w(1)', { functions: [blind], uses: [calls(blind)] }),
      );
      assert.equal(
        problems.length,
        isBlind ? 1 : 0,
        JSON.stringify([blind.language, blind.source]),
      );
    }
  });
});
