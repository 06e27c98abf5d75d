// Goal: each part of a survey finds what it is for and nothing else, and says what to do about it.
// Method: small catalogues written by hand, one thing wrong at a time; `survey.test.ts` opens real
// servers.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';
import { findUnseenAct, judgeBody } from '../../../../src/adapters/postgres/certify/body.ts';
import { surveyCasts } from '../../../../src/adapters/postgres/certify/casts.ts';
import type {
  ConstraintRow,
  FunctionRow,
  RelationRow,
  SystemCatalog,
} from '../../../../src/adapters/postgres/certify/catalog.ts';
import { surveyExpressions } from '../../../../src/adapters/postgres/certify/expressions.ts';
import {
  type BoundaryFacts,
  isVouchedFor,
  Outlets,
  type Problem,
  type SurveyContext,
} from '../../../../src/adapters/postgres/certify/facts.ts';
import { surveyFunctions } from '../../../../src/adapters/postgres/certify/functions.ts';
import { demandClosed } from '../../../../src/adapters/postgres/certify/guards.ts';
import { computeReach } from '../../../../src/adapters/postgres/certify/reach.ts';
import { digestFunction } from '../../../../src/adapters/postgres/certify/reviews.ts';
import { surveySequences } from '../../../../src/adapters/postgres/certify/sequences.ts';
import { surveyBoundary } from '../../../../src/adapters/postgres/certify/survey.ts';
import { SQL } from '../../../../src/adapters/postgres/sql.ts';
import {
  column,
  FACTS,
  fn,
  type Given,
  OTHER,
  place,
  relation,
  rule,
  TABLE,
  trigger,
  type,
  use,
} from './rows.ts';

/** What a part says: what it finds open, and everything it lists. */
function say(given: Given, part: (context: SurveyContext) => void) {
  const where = place(given);
  part(where);
  return { problems: where.outlets.problems, listed: where.outlets.listed };
}
const outletsOf = (problems: readonly { readonly outlet: string }[]) =>
  problems.map(({ outlet }) => outlet);

describe('calls that nothing counts', () => {
  test('are found where they are called, and not in strings or other names', () => {
    assert.match(findUnseenAct("1 + setval('s', 1)") ?? '', /moves a sequence/);
    assert.match(findUnseenAct('"setval"(1)') ?? '', /moves a sequence/);
    for (const name of ['table_to_xml', 'schema_to_xmlschema', 'database_to_xml_and_xmlschema']) {
      assert.match(
        findUnseenAct(`${name}(x)`) ?? '',
        new RegExp(`told, on a table or view \\(${name}\\)`),
      );
    }
    for (const text of [
      "'setval'",
      'lower(a)',
      "'table_to_xml'",
      'query_to_xml(a)',
      'setvalue(1)',
    ]) {
      assert.equal(findUnseenAct(text), undefined, text);
    }
    assert.match(
      judgeBody("begin perform table_to_xml('t'); end").join(),
      /runs SQL that it is told/,
    );
    assert.deepEqual(
      judgeBody('begin setval := 1; perform lower(a); end'),
      [],
      'a variable of that name',
    );
  });
});

test('an extension is vouched for by name, and native code of known ones by itself', () => {
  const isVouched = (
    extension: string | null,
    language?: string,
    trustedCode?: readonly string[],
  ) =>
    isVouchedFor(
      { extension, ...(language !== undefined && { language }) },
      trustedCode ? { trustedCode } : {},
    );
  assert.ok(isVouched('citext'));
  assert.ok(isVouched('citext', 'c'));
  for (const language of ['sql', 'plpgsql']) {
    assert.ok(!isVouched('citext', language));
    assert.ok(isVouched('citext', language, ['citext']));
  }
  assert.ok(!isVouched('other', 'c'));
  assert.ok(isVouched('other', 'sql', ['other']));
  assert.ok(!isVouched(null, 'c', ['other']));
});

describe('functions', () => {
  const judged = (row: FunctionRow, more: Given = {}) =>
    say({ parts: { functions: [row] }, ...more }, surveyFunctions);

  test('the text that the server parsed and the defaults of arguments are judged, each reason once', () => {
    const why = (row: FunctionRow) =>
      judged(row).problems.map((problem) => problem.why.replace(/ \(or .*/s, ''));
    assert.deepEqual(why(fn('f', 'select 1')), []);
    assert.match(why(fn('f', "select setval('s', 1)")).join(), /^It moves a sequence/);
    assert.match(
      why(fn('f', '', { sqlBody: "select setval('s', 1)" })).join(),
      /^It moves a sequence/,
    );
    assert.deepEqual(why(fn('f', "select setval('s', 1)", { sqlBody: 'select 1' })), []);
    assert.match(
      why(fn('f', 'select 1', { defaults: "a int DEFAULT setval('s', 1)" })).join(),
      /^It moves a sequence/,
    );
    assert.deepEqual(why(fn('f', 'select 1', { defaults: 'a int DEFAULT 1' })), []);
    const both = fn('f', "select setval('s', 1)", { defaults: "a int DEFAULT setval('s', 1)" });
    assert.equal(why(both).length, 1);
    assert.deepEqual(judged(both).problems[0]?.fix, ['DROP TRIGGER x']);
  });

  test('those of a trusted extension are neither judged nor listed', () => {
    const native = fn('f', 'lib', { language: 'c', extension: 'citext' });
    const about = (row: FunctionRow) =>
      judged(row).listed.filter(({ outlet }) => outlet === 'function app.f()');
    assert.deepEqual(about(native), []);
    assert.equal(about({ ...native, extension: null }).length, 1);
    assert.equal(about(fn('f')).length, 1);
  });

  test('a review is of the defaults, too', () => {
    const row = fn('f');
    const digests = [
      row,
      { ...row, defaults: 'a int DEFAULT 1' },
      { ...row, defaults: 'a int DEFAULT 2' },
    ];
    assert.equal(new Set(digests.map(digestFunction)).size, 3);
    const { language, owner, definer, config, source, sqlBody, library } = row;
    const text = JSON.stringify([language, owner, definer, config, source, sqlBody, library]);
    const earlier = hash('sha256', text, 'hex').slice(0, 32);
    assert.equal(
      digestFunction(row),
      earlier,
      'where there are none, reviews of earlier releases hold',
    );
    const made = (definition: string) => digestFunction({ ...row, kind: 'a', definition });
    assert.notEqual(made('text set_config'), made('text textcat'), 'and of what an aggregate is');
  });
});

describe('casts', () => {
  const strict = type('strict');
  const called = fn('convert', 'lib', { language: 'c', extension: 'citext' });
  const cast = (more: object = {}) => ({
    ...{
      description: 'cast',
      source: 'a',
      target: 'b',
      sourceOid: strict.oid,
      targetOid: 25,
      function: called.oid,
      builtin: null,
    },
    ...{ extension: 'citext', ...more },
  });
  const open = (casts: SystemCatalog['casts'], functions: readonly FunctionRow[] = [called]) =>
    say(
      { parts: { casts, functions, types: [strict], columns: [column(TABLE, strict)] } },
      surveyCasts,
    ).problems.length;

  test('of a registered type are open unless cast and function are both vouched for', () => {
    assert.equal(open([cast()]), 0);
    assert.equal(open([cast({ function: 42 })]), 0, 'a function of the server');
    assert.equal(open([cast({ extension: null })]), 1);
    assert.equal(open([cast()], [{ ...called, extension: null }]), 1);
    assert.equal(open([cast({ extension: null })], [{ ...called, extension: null }]), 1);
    assert.equal(open([cast({ extension: null, sourceOid: 25 })]), 0);
    assert.equal(open([cast({ extension: null, function: 0 })]), 0);
  });
});

describe('expressions', () => {
  const MOVES = "setval('s', 1)";
  const TRIGGERED = `CREATE TRIGGER x AFTER UPDATE ON app.t FOR EACH ROW WHEN (${MOVES}) EXECUTE FUNCTION f()`;
  const found = (parts: Partial<SystemCatalog>) => say({ parts }, surveyExpressions).problems;
  const of = ({ oid }: RelationRow) => ({ relation: oid });
  const ALL: Readonly<Record<string, readonly [Partial<SystemCatalog>, string]>> = {
    'default of "c" of app.t': [
      { columns: [{ ...column(TABLE, type('x')), defaultText: MOVES }] },
      'ALTER TABLE app.t ALTER COLUMN "c" DROP DEFAULT',
    ],
    'constraint k of app.t': [
      {
        constraints: [
          { ...of(TABLE), object: 'k', definition: MOVES, domain: null } as ConstraintRow,
        ],
      },
      'ALTER TABLE app.t DROP CONSTRAINT k',
    ],
    'trigger x of app.t': [
      { triggers: [{ ...trigger(TABLE, 5), object: 'x', definition: TRIGGERED }] },
      'DROP TRIGGER x ON app.t',
    ],
    'rule "_RETURN" of app.t': [{ rules: [rule(TABLE, MOVES)] }, 'DROP VIEW app.t'],
    'policy p of app.t': [
      {
        policies: [{ ...of(TABLE), oid: 1, object: 'p', using: null, checking: MOVES }],
      },
      'DROP POLICY p ON app.t',
    ],
  };
  for (const [outlet, [parts, fix]] of Object.entries(ALL)) {
    test(`${outlet} is found, with how to remove it`, () => {
      assert.deepEqual(found(parts), [
        {
          ...{ outlet, object: 'app.t', fix: [fix], needs: '"Owner" or a superuser' },
          why: 'It moves a sequence (setval), which neither recorders nor counters see',
          behind: 'relation app.t',
        },
      ]);
    });
  }

  test('those of a domain belong to no table, whatever reaches it', () => {
    const check = { relation: 0, object: 'k', definition: MOVES, domain: 'app.d' } as ConstraintRow;
    const [byCheck] = found({ constraints: [check] });
    assert.deepEqual([byCheck?.outlet, byCheck?.object], ['constraint k', 'constraint k']);
    assert.deepEqual(
      [byCheck?.fix, byCheck?.needs],
      [['ALTER DOMAIN app.d DROP CONSTRAINT k'], 'the owner of the domain or a superuser'],
    );
    const [byDefault] = found({ types: [type('d', { defaultText: MOVES })] });
    assert.deepEqual(
      [byDefault?.outlet, byDefault?.fix],
      ['default of domain app.d', ['ALTER DOMAIN app.d DROP DEFAULT']],
    );
  });

  test('those of other relations, of disabled triggers, and empty ones are not', () => {
    const policy = { oid: 1, object: 'p', using: MOVES, checking: null };
    assert.equal(found({ policies: [{ ...policy, ...of(TABLE) }] }).length, 1);
    for (const parts of [
      { policies: [{ ...policy, ...of(OTHER) }] },
      { policies: [{ ...policy, relation: 42 }] },
      { policies: [{ ...policy, ...of(TABLE), using: null }] },
      { columns: [{ ...column(TABLE, type('x')), defaultText: null }] },
      { types: [type('d')] },
      { triggers: [{ ...trigger(TABLE, 5, 'D'), object: 'x', definition: TRIGGERED }] },
      { triggers: [{ ...trigger(TABLE, 5), object: 'x', definition: MOVES }] },
    ] as Partial<SystemCatalog>[]) {
      assert.deepEqual(found(parts), []);
    }
    assert.deepEqual(found({ rules: [rule(TABLE, MOVES, '2')] })[0]?.fix, [
      'DROP RULE "_RETURN" ON app.t',
    ]);
  });
});

describe('what a write or a call reaches', () => {
  const bad = fn('f');
  const names = (given: Given) => {
    const { catalog, facts, index } = place(given);
    const { functions, relations } = computeReach(catalog, facts, index);
    return [...functions.keys(), ...relations.keys()].map(({ object }) => object);
  };

  test('registered views and what they name, if they are there', () => {
    const view = relation('v', 'v');
    const parts = { relations: [view], rules: [rule(view, 'SELECT a FROM app.other')] };
    assert.deepEqual(names({ parts, views: [view.oid, 42] }), ['app.t', 'app.v', 'app.other']);
    assert.deepEqual(names({ parts }), ['app.t']);
  });

  test('a default is what calls a function, also where the condition of a trigger names it', () => {
    const when =
      'CREATE TRIGGER x AFTER INSERT ON app.t FOR EACH ROW WHEN (app.f()) EXECUTE FUNCTION g()';
    const routeTo = (uses: SystemCatalog['uses']) => {
      const triggers = [{ ...trigger(TABLE, 5), object: 'x', definition: when }];
      const { catalog, facts, index } = place({ parts: { functions: [bad], triggers, uses } });
      return computeReach(catalog, facts, index).functions.get(bad);
    };
    const called = {
      class: 'pg_attrdef',
      relation: TABLE.oid,
      column: 'c',
      description: 'default',
    };
    assert.deepEqual(routeTo([use(bad, called)]), {
      by: 'default',
      close: ['ALTER TABLE app.t ALTER COLUMN "c" DROP DEFAULT'],
    });
    assert.deepEqual(routeTo([]), {
      by: 'app.f() as named in registered relation app.t',
      close: [],
    });
  });

  test('the checks of every domain, and of other types only where they are used', () => {
    const parts = (kind: string) => {
      const domain = type('d', { kind });
      return { types: [domain], functions: [bad], uses: [use(bad, { type: domain.oid })] };
    };
    assert.deepEqual(names({ parts: parts('d') }), ['app.f()', 'app.t'].toSorted());
    assert.deepEqual(names({ parts: parts('b') }), ['app.t']);
  });
});

test('a sequence of a registered column that cannot be read is open, each once; others are observed', async () => {
  const draws = (...oids: readonly number[]) =>
    oids.map((oid) => ({ oid, schema: 'app', name: `s${oid}` }));
  const relations = [
    {
      target: 't',
      columns: [
        { name: 'id', draws: draws(7) },
        { name: 'n', draws: draws(8, 7) },
      ],
    },
  ] as unknown as BoundaryFacts['relations'];
  const survey = async (...readable: readonly number[]) => {
    const outlets = new Outlets();
    const rows = readable.map((oid) => ({ oid, schema: 'app', name: `s${oid}` }));
    const control = { query: async () => ({ rows: [[JSON.stringify(rows)]] }) };
    await surveySequences({ ...place({}), control, facts: { ...FACTS, relations }, outlets });
    return outlets;
  };
  const all = await survey(7, 8);
  assert.deepEqual(all.problems, []);
  assert.deepEqual(outletsOf(all.listed), ['sequences of registered columns']);
  const one = await survey(8);
  assert.deepEqual(outletsOf(one.listed), ['sequence "app"."s7"']);
  assert.deepEqual(one.problems[0]?.fix, ['GRANT SELECT ON SEQUENCE "app"."s7" TO "em"']);
  assert.equal((await survey()).problems.length, 2);
});

test('nothing is cast or read behind an open outlet', () => {
  const demand = (...problems: readonly Problem[]) =>
    demandClosed({ problems, outlets: [] } as never, { texts: [], relations: [] });
  demand();
  const problem = {
    outlet: 'x',
    object: 'x',
    why: 'it is open',
    fix: ['CLOSE x'],
    needs: 'superuser',
  };
  assert.throws(() => demand(problem), {
    code: 'ERR_EM_BOUNDARY_OPEN',
    message: /x: it is open\. Close it \(superuser\): CLOSE x/,
  });
});

test('a survey is of the views that are registered, and there need be none', async () => {
  const view = relation('v', 'v');
  const answer = (text: string) =>
    JSON.stringify(text.includes(`from (${SQL.catalog.get('relations')})`) ? [view] : []);
  const control = { query: async (text: string) => ({ rows: [[answer(text)]] }) };
  const listed = async (views: Pick<BoundaryFacts, 'views'>) => {
    const { outlets } = await surveyBoundary(control, { ...FACTS, ...views });
    return outlets.filter(({ outlet }) => outlet === 'view app.v').length;
  };
  assert.equal(await listed({ views: [{ oid: view.oid }] }), 1);
  assert.equal(await listed({}), 0);
});
