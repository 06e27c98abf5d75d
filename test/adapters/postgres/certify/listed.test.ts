// Goal: statements of outlets.sql find what they are for and nothing else, and say what to do about
// it. Method: small catalogues written by hand, one thing wrong at a time, which a real server
// reads instead of its own; `survey.test.ts` opens real servers.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type {
  ConstraintRow,
  Grant,
  RelationRow,
  SystemCatalog,
  TriggerRow,
} from '../../../../src/adapters/postgres/certify/catalog.ts';
import type {
  BoundaryFacts,
  SurveyContext,
} from '../../../../src/adapters/postgres/certify/facts.ts';
import { describeGiven, surveyListed } from '../../../../src/adapters/postgres/certify/listed.ts';
import { SQL } from '../../../../src/adapters/postgres/sql.ts';
import { Connection } from '../../../../src/postgres/connection.ts';
import { quoteLiteral } from '../../../../src/postgres/identifier.ts';
import { freshDatabase, type TestDatabase } from '../../../postgres/server.ts';
import { fn, type Given, OTHER, place, relation, TABLE, trigger, use } from './rows.ts';

let db: TestDatabase;
let server: Connection;
const PARTS = SQL.catalog.names.filter((part) => part !== 'owned');
before(async () => {
  db = await freshDatabase();
  server = await Connection.open(db.url(), 'test');
  for (const part of PARTS)
    await server.query(
      `create temp table "${part}" as select * from (${SQL.catalog.get(part)}) p where false`,
    );
});
after(async () => {
  await server.close();
  await db.drop();
});

/** What a part says: what it finds open, and everything it lists. */
async function say(given: Given, part: (context: SurveyContext) => Promise<void>) {
  const where = place(given);
  const rowsOf = (name: string) =>
    `select * from jsonb_populate_recordset(null::pg_temp."${name}", ${quoteLiteral(JSON.stringify(where.catalog[name as keyof SystemCatalog]))})`;
  const query = (text: string, values: readonly string[]) =>
    server.query(
      PARTS.reduce((sql, name) => sql.replaceAll(SQL.catalog.get(name), () => rowsOf(name)), text),
      values,
    );
  await part({ ...where, control: { query } as never, given: describeGiven(where, new Map()) });
  return { problems: where.outlets.problems, listed: where.outlets.listed };
}
const outletsOf = (problems: readonly { readonly outlet: string }[]) =>
  problems.map(({ outlet }) => outlet);

describe('search paths', () => {
  const path = (value: string, role = '', database = '') => ({
    database,
    role,
    name: 'search_path',
    value,
  });
  const survey = (settings: SystemCatalog['settings'], server = 'public') =>
    say(
      {
        parts: {
          settings,
          server_settings: [
            { name: 'other', value: 'x' },
            { name: 'search_path', value: server },
          ],
        },
      },
      surveyListed('stored_settings'),
    );
  const open = async (...asked: Parameters<typeof survey>) =>
    (await survey(...asked)).problems.filter(({ object }) => object === 'search_path');
  const BEFORE = '"$user", public, pg_catalog';

  test('one that puts other schemas before those of the server is open, wherever agents have it from', async () => {
    assert.deepEqual(await open([], BEFORE), [
      {
        outlet: 'setting search_path of the server',
        object: 'search_path',
        why:
          `It is ${BEFORE} and puts other schemas before pg_catalog, so that their functions and operators would ` +
          'answer for those of the server. Leave pg_catalog out; the server then looks there first',
        fix: [
          'ALTER SYSTEM SET search_path = "$user", public',
          'SELECT pg_catalog.pg_reload_conf()',
        ],
        needs: 'superuser, or the owner of the database or role',
        behind: undefined,
      },
    ]);
    assert.deepEqual((await open([path(BEFORE, 'exec')]))[0]?.fix, [
      'ALTER ROLE "exec" SET search_path = "$user", public',
    ]);
    assert.deepEqual((await open([path(BEFORE, '', 'db')]))[0]?.fix, [
      'ALTER DATABASE "db" SET search_path = "$user", public',
    ]);
    for (const value of [
      'app, "pg_catalog"',
      'app,\tpg_catalog',
      'app\n,\r\n pg_catalog\v',
      'app, PG_Catalog',
    ])
      assert.deepEqual((await open([path(value, 'exec')])).length, 1, JSON.stringify(value));
    assert.deepEqual((await open([path('app ,\t"x, y"\n,\fpg_catalog', 'exec')]))[0]?.fix, [
      'ALTER ROLE "exec" SET search_path = app, "x, y"',
    ]);
  });

  test('others are not: of other logins, without the server’s schema, or with it in front', async () => {
    for (const role of ['ctl', 'em', 'lender', 'stranger'])
      assert.deepEqual(await open([path(BEFORE, role)]), []);
    for (const value of [
      '',
      'app, public',
      'pg_catalog, app',
      '"pg_catalog",app',
      '"a, pg_catalog", app',
      '\tpg_catalog, app',
      'app, "PG_CATALOG"',
    ]) {
      assert.deepEqual(await open([path(value, 'exec')]), [], value);
      assert.deepEqual(await open([], value), [], value);
    }
  });

  test('what a stored path says hides the server’s, which is then not judged', async () => {
    const ofServer = async (settings: SystemCatalog['settings']) =>
      (await survey(settings, BEFORE)).listed.some(
        ({ outlet }) => outlet === 'setting search_path of the server',
      );
    assert.ok(await ofServer([]));
    for (const role of ['', 'exec', 'ctl']) assert.ok(!(await ofServer([path('app', role)])), role);
    for (const role of ['em', 'stranger']) assert.ok(await ofServer([path('app', role)]), role);
    assert.ok(await ofServer([{ ...path('app', 'exec'), name: 'work_mem' }]));
  });

  test('a path that no session of agents has is told as that, and a missing one is empty', async () => {
    const says = async (role: string) =>
      (await survey([path('app', role)])).listed.find(({ outlet }) =>
        outlet.includes(`role "${role}"`),
      )?.by ?? '';
    assert.match(await says('exec'), /says what names in actions mean/);
    assert.match(await says('ctl'), /no session of this role looks up a name by it/);
    const without = await say({}, surveyListed('stored_settings'));
    const [server] = without.listed.filter(
      ({ outlet }) => outlet === 'setting search_path of the server',
    );
    assert.match(server?.by ?? '', /^is ; says what/);
  });
});

test('other stored settings are open unless they are harmless, for the roles that matter', async () => {
  const open = async (name: string, value: string, role = 'exec') => {
    const parts = { settings: [{ database: '', role, name, value }] };
    const { problems } = await say({ parts }, surveyListed('stored_settings'));
    return problems.filter(({ object }) => object === name && !object.startsWith('default_'));
  };
  const [found] = (await open('session_replication_role', 'replica')).filter(({ outlet }) =>
    outlet.includes('"exec"'),
  );
  assert.equal(found?.outlet, 'setting session_replication_role of role "exec"');
  assert.deepEqual(found?.fix, ['ALTER ROLE "exec" RESET "session_replication_role"']);
  assert.deepEqual(await open('work_mem', '64MB'), []);
  assert.deepEqual(await open('jit_provider', 'x', 'stranger'), []);
});

describe('privileges', () => {
  const view = relation('v', 'v');
  const problems = async (more: Partial<Grant>) => {
    const grant = {
      ...{
        kind: 'TABLE',
        object: TABLE.object,
        owner: 'app',
        grantee: 'exec',
        privilege: 'INSERT',
      },
      ...{ grantable: false, grantor: 'app', ...more },
    };
    const given = { parts: { grants: [grant], relations: [view] }, views: [view.oid] };
    return (await say(given, surveyListed('privileges'))).problems;
  };
  const open = async (more: Partial<Grant>) => (await problems(more)).length;

  test('to write are for registered tables and views, and others are open', async () => {
    for (const privilege of ['INSERT', 'UPDATE', 'DELETE', 'SELECT']) {
      assert.equal(await open({ privilege }), 0);
      assert.equal(await open({ privilege, object: view.object }), 0);
    }
    for (const object of [TABLE.object, view.object])
      assert.equal(await open({ object, privilege: 'TRUNCATE' }), 1);
    assert.equal(await open({ object: OTHER.object }), 1);
    assert.equal(await open({ object: 'app.gone' }), 1);
    assert.equal(await open({ object: OTHER.object, privilege: 'SELECT' }), 0);
  });

  test('on a column are revoked by its name, whatever that is', async () => {
    for (const name of ['a', '"a b"', '"a) b"', '"a(b"', '"(a)"']) {
      const object = `${OTHER.object}(${name})`;
      const [found] = await problems({ kind: 'COLUMN', object, privilege: 'UPDATE' });
      assert.deepEqual(found?.fix, [`REVOKE UPDATE (${name}) ON TABLE app.other FROM "exec"`]);
      assert.equal(found?.behind, 'relation app.other');
    }
  });
});

describe('registered tables', () => {
  const open = async (more: Partial<RelationRow>, facts: Partial<BoundaryFacts> = {}) => {
    const row = relation('mine', 'r', more);
    const registered = {
      ...row,
      target: 'mine',
      leaves: [],
      columns: [],
      key: [],
      bulk: false,
      volatile: [],
    };
    const given = {
      parts: { relations: [row] },
      facts: { relations: [registered as never], ...facts },
    };
    return (await say(given, surveyListed('registered'))).problems
      .filter(({ outlet }) => /^(?:extension|inheritance) of/.test(outlet))
      .map(({ fix }) => fix.join());
  };

  test('of an extension that is not vouched for are open, with how to take them out of it', async () => {
    assert.deepEqual(await open({}), []);
    assert.deepEqual(await open({ extension: 'queue' }), [
      'ALTER EXTENSION "queue" DROP TABLE app.mine',
    ]);
    assert.deepEqual(await open({ extension: 'queue' }, { trustedCode: ['queue'] }), []);
    assert.deepEqual(await open({ extension: 'citext' }), []);
  });

  test('that inherit from a table of the server are open, although no survey reads that one', async () => {
    assert.deepEqual(await open({ parents: [1259] }), ['ALTER TABLE app.mine NO INHERIT pg_class']);
  });
});

describe('deferrable code', () => {
  const SCHEMAS = [
    { object: 'app', name: 'app', owner: 'Owner' },
    { object: 'other', name: 'other', owner: 'app' },
  ];
  const usage = (more: Partial<Grant> = {}): Grant => ({
    ...{
      kind: 'SCHEMA',
      object: 'app',
      owner: 'app',
      grantee: 'exec',
      privilege: 'USAGE',
      grantable: false,
    },
    ...{ grantor: 'app', ...more },
  });
  const fires = (row: RelationRow, more: object = {}) =>
    ({
      ...trigger(row, 5),
      object: 'x',
      deferrable: true,
      functionName: 'f',
      functionSchema: 'app',
      definition: '',
      ...more,
    }) as TriggerRow;
  const constraint = (more: Partial<ConstraintRow> = {}) =>
    ({
      oid: 77,
      relation: TABLE.oid,
      object: 'k',
      kind: 'x',
      deferrable: true,
      definition: '',
      ...more,
    }) as ConstraintRow;
  const say2 = (parts: Partial<SystemCatalog>) =>
    say({ parts: { schemas: SCHEMAS, ...parts } }, surveyListed('attached'));

  test('is forced where the execution login may use the schema, and open elsewhere', async () => {
    const triggers = [fires(TABLE)];
    for (const grants of [[usage()], [usage({ grantee: '' })]]) {
      const { problems, listed } = await say2({ triggers, grants });
      assert.deepEqual(problems, []);
      assert.match(listed[0]?.by ?? '', /forced before the observation/);
    }
    for (const grants of [
      [],
      [usage({ grantee: 'other' })],
      [usage({ privilege: 'CREATE' })],
      [usage({ kind: 'TABLE' })],
      [usage({ object: 'other' })],
    ]) {
      const { problems } = await say2({ triggers, grants });
      assert.deepEqual(problems[0]?.fix, ['GRANT USAGE ON SCHEMA app TO "exec"']);
      assert.equal(problems[0]?.needs, '"Owner" or a superuser');
    }
  });

  test('a schema that is not listed is named as the table has it', async () => {
    const { problems } = await say2({
      triggers: [fires(TABLE)],
      schemas: [SCHEMAS[1] ?? assert.fail()],
    });
    assert.deepEqual(
      [problems[0]?.fix[0], problems[0]?.needs],
      ['GRANT USAGE ON SCHEMA "app" TO "exec"', '"Owner" or a superuser'],
    );
  });

  test('constraints are open where they call code of the application', async () => {
    const open = async (parts: Partial<SystemCatalog>) => outletsOf((await say2(parts)).problems);
    const called = fn('f');
    const uses = [use(called, { object: 77 })];
    const constraints = [constraint()];
    assert.deepEqual(await open({ constraints, uses }), ['constraint k on app.t']);
    assert.deepEqual(
      await open({ constraints, uses: [use(called, { class: 'pg_class', relation: TABLE.oid })] }),
      ['constraint k on app.t'],
    );
    assert.deepEqual(await open({ constraints }), []);
    assert.deepEqual(await open({ constraints, uses, grants: [usage()] }), []);
    assert.deepEqual(await open({ constraints: [constraint({ kind: 'f' })], uses }), []);
    assert.deepEqual(await open({ constraints: [constraint({ deferrable: false })], uses }), []);
    assert.deepEqual(await open({ constraints: [constraint({ relation: OTHER.oid })], uses }), []);
  });
});

test('our schema belongs to the role that nobody logs in as', async () => {
  const survey = (schemas: SystemCatalog['schemas']) =>
    say({ parts: { schemas } }, surveyListed('trusted_roles'));
  const ours = { object: 'effectmatch', name: 'effectmatch', owner: 'em' };
  assert.deepEqual((await survey([ours])).listed, [
    {
      outlet: 'schema effectmatch',
      disposition: 'denied',
      by: 'owned by "em", which cannot log in',
    },
  ]);
  assert.deepEqual(outletsOf((await survey([{ ...ours, owner: 'exec' }])).problems), [
    'schema effectmatch',
  ]);
  assert.deepEqual((await survey([{ ...ours, name: 'app' }])).listed, [], 'it is not there yet');
});
