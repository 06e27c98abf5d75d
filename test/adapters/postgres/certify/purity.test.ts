// Goal: of whatever leads to more than reading and computing, the reason is found; of nothing else.
// Method: small catalogues written by hand, in which one function writes, and one way to it at a
// time.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  FunctionRow,
  RelationRow,
  SystemCatalog,
  TypeRow,
} from '../../../../src/adapters/postgres/certify/catalog.ts';
import { indexCatalog } from '../../../../src/adapters/postgres/certify/catalog-index.ts';
import type {
  BoundaryFacts,
  SurveyContext,
} from '../../../../src/adapters/postgres/certify/facts.ts';
import { Purity } from '../../../../src/adapters/postgres/certify/purity.ts';
import { digestFunction } from '../../../../src/adapters/postgres/certify/reviews.ts';
import { catalogOf, check, column, fn, operator, relation, rule, type, use } from './rows.ts';

const VOLATILE = ['nextval', 'random', 'pg_notify', 'from_a_later_release'];
/** The function that everything leads to. */
const WRITER = fn('w', 'insert into t values (1) returning 1');
const WRITES = /^app\.w\(\) may write \(INSERT\) /;

function purityOf(parts: Partial<SystemCatalog>, facts: Partial<BoundaryFacts> = {}): Purity {
  const catalog = catalogOf(parts);
  const given = { relations: [], ...facts } as unknown as BoundaryFacts;
  const index = indexCatalog(catalog, given, new Set());
  const context = { catalog, facts: given, index } as unknown as SurveyContext;
  return new Purity(context, new Set(VOLATILE));
}

const judge = (
  row: FunctionRow,
  parts: Partial<SystemCatalog> = {},
  facts: Partial<BoundaryFacts> = {},
) =>
  purityOf({ ...parts, functions: [row, WRITER, ...(parts.functions ?? [])] }, facts).ofFunction(
    row,
  );
const body = (source: string, language = 'sql', parts: Partial<SystemCatalog> = {}) =>
  judge(fn('f', source, { language }), parts);

function assertWhy(why: string | undefined, pattern: RegExp): void {
  assert.match(why ?? 'only reads and computes', pattern);
}

describe('the text of a function', () => {
  for (const [what, source, language] of [
    ['reading', 'select a, "update", comment from t where b > 1 order by 1', 'sql'],
    [
      'reading into a variable',
      'declare r text; begin select a into r from t; return r; end',
      'plpgsql',
    ],
    ['names in quotes and texts', `select 'insert', 'nextval', "delete", "w" from t`, 'sql'],
    ['a function that is not called', 'select w from t', 'sql'],
    ['a column with the name of a command', `select ';' analyze from t`, 'sql'],
    ['chance', 'select random()', 'sql'],
    ['a name that only other servers have', 'select pg_terminate_backend from t', 'sql'],
    ['a call of something unknown', 'select elsewhere(1), (x).y', 'sql'],
  ] as const) {
    test(`${what} is pure`, () => assert.equal(body(source, language), undefined));
  }

  for (const [source, language, why] of [
    [
      'with x as (delete from t returning 1) select 1 from x',
      'sql',
      /^app\.f\(\) may write \(DELETE\) \(or have it read/,
    ],
    ['select 1 into t', 'sql', /may write \(INTO\)/],
    ['create table t ()', 'sql', /may write \(CREATE\)/],
    ['begin if true then lock table t; end if; end', 'plpgsql', /may write \(LOCK\)/],
    ['begin perform 1; grant a to b; end', 'plpgsql', /may write \(GRANT\)/],
    ['begin notify leak; end', 'plpgsql', /NOTIFY/],
    ['select 1', 'plperl', /is written in plperl, which is not judged/],
    [`select nextval('s')`, 'sql', /calls nextval, which moves a sequence/],
    [`select "nextval"('s')`, 'sql', /calls nextval, which moves a sequence/],
    [`select 's'::regclass . nextval`, 'sql', /calls nextval/],
    [`select setval('s', 1)`, 'sql', /setval/],
    [
      `select xml(query_to_xml('x', true, true, ''))`,
      'sql',
      /query_to_xml, which runs SQL that it is told/,
    ],
    [`select query_to_xmlschema('x', true, true, '')`, 'sql', /query_to_xmlschema, which runs SQL/],
    [
      `select query_to_xml_and_xmlschema('x', true, true, '')`,
      'sql',
      /xml_and_xmlschema, which runs SQL/,
    ],
    [`select pg_input_is_valid('x', 'app.d')`, 'sql', /reads a value as any type/],
    [`select pg_input_error_info('x', 'app.d')`, 'sql', /reads a value as any type/],
    [`select pg_notify('leak', 'x')`, 'sql', /calls pg_notify, which signals/],
    ['select from_a_later_release()', 'sql', /calls from_a_later_release, which/],
    ['select w()', 'sql', WRITES],
    ['select (x).w from t x', 'sql', WRITES],
    ['select "w"()', 'sql', WRITES],
    [`select random(), w()`, 'sql', WRITES],
  ] as const) {
    test(`${source} is not`, () => assertWhy(body(source, language), why));
  }

  test('setval moves a sequence, also as a part of an aggregate', () => {
    assertWhy(
      judge(fn('f', '', { kind: 'a', parts: ['random', 'setval'] })),
      /app\.f\(\) calls setval, which moves/,
    );
  });

  test('names are folded as the server may fold them, and quoted ones are not split', () => {
    assertWhy(body('select ÉCRIT()', 'sql', { functions: [fn('écrit', 'select w()')] }), WRITES);
    assertWhy(body('select "a b"()', 'sql', { functions: [fn('a b', 'select w()')] }), WRITES);
    assert.equal(body('select "a b"()', 'sql', { functions: [fn('b', 'select w()')] }), undefined);
  });

  test('the body that the server parsed counts, not the text beside it', () => {
    assert.equal(judge(fn('f', 'select w(), 1 into t', { sqlBody: 'select 1' })), undefined);
    assertWhy(judge(fn('f', '', { sqlBody: 'select w()' })), WRITES);
    assertWhy(judge(fn('f', '', { sqlBody: 'update t set a = 1' })), /may write \(UPDATE\)/);
  });

  test('an aggregate has no text of its own', () => {
    const aggregate = fn('f', 'update w()', { kind: 'a', language: 'internal' });
    assert.equal(judge(aggregate), undefined);
    assertWhy(
      judge(aggregate, { uses: [use(WRITER, { class: 'pg_proc', object: aggregate.oid })] }),
      WRITES,
    );
  });
});

describe('who vouches for a function', () => {
  const digest = digestFunction(WRITER);
  const review = { function: WRITER.object, digest, by: 'a person' };

  test('our own functions are not judged', () => {
    assert.equal(judge(fn('f', 'insert', { schema: 'effectmatch' })), undefined);
  });

  test('those of a trusted extension neither, but for those with a text', () => {
    assert.equal(judge(fn('f', 'lib', { language: 'c', extension: 'citext' })), undefined);
    assertWhy(judge(fn('f', 'lib', { language: 'c', extension: 'other' })), /is written in c/);
    assertWhy(judge(fn('f', 'insert', { extension: 'citext' })), /may write/);
    assert.equal(
      judge(fn('f', 'insert', { extension: 'other' }), {}, { trustedCode: ['other'] }),
      undefined,
    );
  });

  test('a review is of one function and one digest', () => {
    assert.equal(judge(WRITER, {}, { reviews: [review] }), undefined);
    assertWhy(judge(WRITER, {}, { reviews: [] }), WRITES);
    assertWhy(judge(WRITER, {}, { reviews: [{ ...review, digest: 'f00d' }] }), WRITES);
    assertWhy(judge(WRITER, {}, { reviews: [{ ...review, function: 'app.other()' }] }), WRITES);
    assertWhy(judge(WRITER), new RegExp(`declare its digest ${digest}\\)$`));
    assert.equal(judge(fn('f', 'select w()'), {}, { reviews: [review] }), undefined);
  });
});

describe('what a function leads to', () => {
  const caller = fn('f');

  test('functions that the server knows it to call, and no others', () => {
    const called = { class: 'pg_proc', object: caller.oid };
    assertWhy(judge(caller, { uses: [use(WRITER, called)] }), WRITES);
    assert.equal(
      judge(caller, { uses: [use(WRITER, { ...called, class: 'pg_class' })] }),
      undefined,
    );
    assert.equal(judge(caller, { uses: [use(WRITER, { ...called, object: 1 })] }), undefined);
    const builtin = { ...use(WRITER, called), function: 42 };
    assert.equal(
      judge(caller, { uses: [builtin] }),
      undefined,
      'the function of the server is not in the catalogue',
    );
    assertWhy(judge(caller, { uses: [builtin, use(WRITER, called)] }), WRITES);
  });

  test('the types of its arguments, and their defaults', () => {
    const strict = type('strict');
    const parts = { types: [strict], uses: [use(WRITER, { type: strict.oid })] };
    assertWhy(judge(fn('f', 'select 1', { types: [7, strict.oid] }), parts), WRITES);
    assert.equal(judge(fn('f', 'select 1', { types: [7] }), parts), undefined);
    assertWhy(
      judge(fn('f', 'select 1', { defaults: "a int DEFAULT nextval('s')" })),
      /^it calls nextval/,
    );
    assert.equal(judge(fn('f', 'select 1', { defaults: 'a int DEFAULT 1' })), undefined);
  });

  test('relations and types that its text names', () => {
    const far = relation('far', 'f');
    const strict = type('strict');
    const parts = { relations: [far], types: [strict], uses: [use(WRITER, { type: strict.oid })] };
    assertWhy(body('select * from far', 'sql', parts), /app\.far is a foreign table/);
    assertWhy(body("select '1'::strict", 'sql', parts), WRITES);
    assert.equal(body('select * from near', 'sql', parts), undefined);
  });

  test('operators in its text, as signs for functions or for what the server has', () => {
    const parts = { operators: [operator('#', 7), operator('###', WRITER.oid)] };
    assertWhy(body('select 1 ### 2', 'sql', parts), WRITES);
    assert.equal(body('select 1 # 2', 'sql', parts), undefined);
    const signs = { operators: [operator('@', 7, 'random'), operator('@@@', 7, 'nextval')] };
    assertWhy(body('select @@@ 2', 'sql', signs), /^operator @@@ calls nextval/);
    assert.equal(body('select @ 2', 'sql', signs), undefined);
    assertWhy(
      body('select @ 2', 'sql', { operators: [operator('@', WRITER.oid, 'random')] }),
      WRITES,
    );
  });

  test('casts of the application, which no text names', () => {
    const cast = { function: WRITER.oid } as SystemCatalog['casts'][number];
    assertWhy(body('select 1', 'sql', { casts: [{ ...cast, function: 0 }, cast] }), WRITES);
  });

  test('what leads back to itself ends, and every question gets its answer', () => {
    const [g, h] = [fn('g', 'select 1'), fn('h', 'select f()')];
    const f = fn('f', 'select g(), h(), g()');
    assert.equal(judge(f, { functions: [g, h] }), undefined);
    const bad = fn('bad', 'select f(), w()');
    const purity = purityOf({ functions: [f, g, h, bad, WRITER] });
    for (let times = 0; times < 2; times += 1) {
      assertWhy(purity.ofFunction(bad), WRITES);
      assert.equal(purity.ofFunction(f), undefined);
      assertWhy(purity.ofFunctions([f.oid, bad.oid]), WRITES);
    }
  });
});

describe('types', () => {
  const table = relation('pair', 'c');
  const strict = type('strict');
  const bad = { uses: [use(WRITER, { type: strict.oid })] };
  const judgeType = (row: TypeRow, parts: Partial<SystemCatalog> = bad) =>
    purityOf({ functions: [WRITER], types: [row, strict], relations: [table], ...parts }).ofType(
      row.oid,
    );

  test('a check is found by its functions and by its text, and not in types of others', () => {
    assertWhy(judgeType(strict), WRITES);
    assert.equal(judgeType(type('calm')), undefined);
    const constraints = [check(strict, "CHECK (nextval('s') > VALUE)")];
    assertWhy(judgeType(strict, { constraints }), /^it calls nextval/);
    assert.equal(judgeType(type('calm'), { constraints }), undefined);
    assert.equal(purityOf({ types: [strict], functions: [WRITER], ...bad }).ofType(7), undefined);
  });

  for (const [what, part] of Object.entries({
    'a domain over it': { base: strict.oid },
    'an array of it': { element: strict.oid },
    'a range or composite of it': { types: [7, strict.oid] },
  })) {
    test(`${what} is judged by it`, () => assertWhy(judgeType(type('outer', part)), WRITES));
  }

  test('the row of a table is judged by its columns', () => {
    const columns = [column(table, type('calm')), column(table, strict)];
    const parts = { ...bad, columns };
    assertWhy(judgeType(type('pair', { relation: table.oid }), parts), WRITES);
    assert.equal(judgeType(type('single', { relation: 7 }), parts), undefined);
  });
});

describe('stored expressions', () => {
  const table = relation('t', 'r');
  const row = type('t', { relation: table.oid });
  const parts = { functions: [WRITER], types: [row], uses: [use(WRITER, { type: row.oid })] };
  const judgeExpression = (text: string, functions: readonly number[] = [], own?: RelationRow) =>
    purityOf(parts).ofExpression(text, functions, own);
  const index = 'CREATE INDEX i ON app.t USING btree (a)';

  test('functions, built-ins and operators in them are found', () => {
    assertWhy(judgeExpression('f(a)', [7, WRITER.oid]), WRITES);
    assertWhy(judgeExpression("(nextval('s'))"), /^it calls nextval, which moves a sequence$/);
    assert.equal(judgeExpression('(nextval IS NULL)'), undefined, 'a column of that name');
    const operators = [operator('###', WRITER.oid)];
    assertWhy(purityOf({ ...parts, operators }).ofExpression('(a ### b)', []), WRITES);
  });

  test('a table that its own index names once is not a type that it names', () => {
    assert.equal(judgeExpression(index, [], table), undefined);
    assertWhy(
      judgeExpression('CREATE INDEX i ON app.t USING btree (((ROW(a))::app.t))', [], table),
      WRITES,
    );
    assertWhy(judgeExpression(index, [], relation('other', 'r')), WRITES);
    assertWhy(judgeExpression(index), WRITES);
  });
});

describe('relations', () => {
  const judgeRelation = (row: RelationRow, parts: Partial<SystemCatalog> = {}) =>
    purityOf({
      functions: [WRITER],
      ...parts,
      relations: [row, ...(parts.relations ?? [])],
    }).ofRelation(row);
  const usedBy = (row: RelationRow, kind: string) => ({
    uses: [use(WRITER, { class: kind, relation: row.oid })],
  });
  const [table, view, stored] = [relation('t', 'r'), relation('v', 'v'), relation('m', 'm')];

  test('what is called while it is read: policies, indexes and the query of a view; not defaults', () => {
    for (const kind of ['pg_policy', 'pg_class', 'pg_constraint'])
      assertWhy(judgeRelation(table, usedBy(table, kind)), WRITES);
    assert.equal(judgeRelation(table, usedBy(table, 'pg_attrdef')), undefined);
    assert.equal(judgeRelation(table, usedBy(view, 'pg_policy')), undefined);
    assertWhy(judgeRelation(view, usedBy(view, 'pg_rewrite')), WRITES);
    for (const row of [table, stored])
      assert.equal(judgeRelation(row, usedBy(row, 'pg_rewrite')), undefined);
  });

  test('the query of a view is run by reading it, that of a materialized view is not', () => {
    const query = "SELECT nextval('s')";
    assertWhy(judgeRelation(view, { rules: [rule(view, query)] }), /^it calls nextval/);
    assert.equal(judgeRelation(stored, { rules: [rule(stored, query)] }), undefined);
  });

  test('a partition is read with its table', () => {
    const far = relation('far', 'f', { parents: [7, table.oid] });
    assertWhy(
      judgeRelation(table, { relations: [relation('near', 'r', { parents: [table.oid] }), far] }),
      /app\.far/,
    );
    assert.equal(
      judgeRelation(table, { relations: [relation('far', 'f', { parents: [7] })] }),
      undefined,
    );
  });
});

describe('queries of views', () => {
  const stored = relation('m', 'm');
  const far = relation('far', 'f');
  const judgeQuery = (parts: Partial<SystemCatalog>) =>
    purityOf({ functions: [WRITER], relations: [stored, far], ...parts }).ofQuery(stored);
  const definedAs = (definition: string, event?: string) => ({
    rules: [rule(stored, definition, event)],
  });

  test('functions, built-ins, operators and relations in them are found', () => {
    assertWhy(
      judgeQuery({ uses: [use(WRITER, { class: 'pg_rewrite', relation: stored.oid })] }),
      WRITES,
    );
    assertWhy(judgeQuery(definedAs("SELECT nextval('s')")), /^it calls nextval/);
    const operators = [operator('###', WRITER.oid)];
    assertWhy(judgeQuery({ ...definedAs('SELECT a ### b FROM t'), operators }), WRITES);
    assertWhy(judgeQuery(definedAs('SELECT a FROM app.far')), /app\.far is a foreign table/);
    assert.equal(judgeQuery(definedAs('SELECT a FROM app.near')), undefined);
  });

  test('other rules, other views and other uses are not part of them', () => {
    assert.equal(judgeQuery(definedAs('SELECT a FROM app.far', '2')), undefined);
    assert.equal(judgeQuery({ rules: [rule(far, 'SELECT a FROM app.far')] }), undefined);
    assert.equal(
      judgeQuery({ uses: [use(WRITER, { class: 'pg_rewrite', relation: far.oid })] }),
      undefined,
    );
    assert.equal(
      judgeQuery({ uses: [use(WRITER, { class: 'pg_class', relation: stored.oid })] }),
      undefined,
    );
  });

  test('the view itself, which its rule names, is not read by it', () => {
    const uses = [use(WRITER, { class: 'pg_class', relation: stored.oid })];
    assert.equal(
      judgeQuery({ ...definedAs('ON SELECT TO app.m DO INSTEAD SELECT 1'), uses }),
      undefined,
    );
  });
});
