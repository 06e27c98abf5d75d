// Goal: with the grammar of every server version, the gate reads every name of a statement, and an
// unknown node is refused. Method: the statements of the escapes, parsed with each grammar; a fixed
// catalogue in which one function is not certified.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { REVIEWED_FUNCTIONS } from '../../../../src/adapters/postgres/certify/builtins.ts';
import type { GateCatalog } from '../../../../src/adapters/postgres/gate/resolve.ts';
import { loadGate, type StatementGate } from '../../../../src/adapters/postgres/statement-gate.ts';
import { ESCAPES } from '../../../escapes/cases/gate.ts';
import { sharedServer } from '../../../postgres/server.ts';

const TABLES = new Set(['invoice', 'line', 'note', 'event', 'bag', 'bulk']);
const CATALOG: GateCatalog = {
  path: ['public'],
  builtins: REVIEWED_FUNCTIONS,
  builtinTypes: new Set(['text', 'int4', 'jsonb', 'tsquery', 'oid', 'numeric', 'date']),
  systemRelations: new Set(['pg_catalog.pg_settings', 'pg_catalog.pg_class']),
  functionsNamed: (name) =>
    ['shout', 'work'].includes(name) ? [{ schema: 'app', isCertified: name === 'work' }] : [],
  hasType: () => false,
  relationsNamed: (name) => (TABLES.has(name) ? [{ schema: 'app', isRegistered: true }] : []),
};
const PROCEDURES = { has: () => true };

for (const major of ['15', '17', '18'])
  describe(`the grammar of PostgreSQL ${major}`, () => {
    let gate: StatementGate;
    before(async () => {
      gate = await loadGate(major);
    });

    test('finds a call wherever a statement can have an expression', () => {
      const places = ESCAPES.cases.filter(({ name }) => name.startsWith('gate: in '));
      assert.ok(places.length >= 45);
      for (const { name, action } of places) {
        const finding = gate.check((action as { sql: string }).sql, PROCEDURES, CATALOG);
        assert.equal(finding.kind, 'refused', name);
        assert.match('why' in finding ? finding.why : '', /app\.shout\(\) is not admitted/, name);
      }
    });

    test('admits ordinary statements', () => {
      for (const sql of [
        "select coalesce(max(amount), 0)::numeric from app.invoice i left join app.line l on l.invoice = i.id where i.status like 'p%' group by i.id having count(*) > 0 order by 1 desc nulls last limit 5 offset 1 for update of i",
        'with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) insert into app.bag select n::text from t returning what',
        'update app.invoice set (status, amount) = (select what, 1 from app.line where id = 1) where id = any ($1) returning *',
        "select jsonb_build_object('a', array_agg(id order by id) filter (where id > 1)), row_number() over (partition by status order by id) from app.invoice group by id, status",
        'select a.b, (array[1, 2])[1:2], row(1, 2) = (3, 4), x is not distinct from 1, not (a and b is true) from (values (1, 2)) as a(b, x)',
        'delete from app.line using app.invoice where line.invoice = invoice.id and exists (select 1)',
      ]) {
        const finding = gate.check(sql, PROCEDURES, CATALOG);
        assert.equal(finding.kind, 'admitted', `${sql}: ${'why' in finding ? finding.why : ''}`);
      }
    });

    test('refuses what it does not know', () => {
      for (const sql of [
        'select xmlelement(name a)',
        "select * from xmltable('/a' passing '<a/>' columns x text)",
        "update app.invoice set status = 'paid' where current of c",
        'insert into app.invoice values (1) on conflict (id int4_ops) do nothing',
      ]) {
        const finding = gate.check(sql, PROCEDURES, CATALOG);
        assert.ok(finding.kind === 'refused', sql);
        assert.match(finding.why, /is not admitted here/, sql);
      }
    });
  });

test('a grammar of another version is not used', async () => {
  await assert.rejects(loadGate('14'), /needs the grammar of PostgreSQL 14/);
});

test('every reviewed function leaves nothing behind by the word of the server', async () => {
  const server = await sharedServer();
  await using db = await server.createDatabase();
  const rows = await db.run(
    `select distinct proname::text as name from pg_proc
      where pronamespace = 'pg_catalog'::regnamespace and provolatile = 'v' and proname::text = any ($1)`,
    [[...REVIEWED_FUNCTIONS]],
  );
  // Random numbers and the clock change, and that is all there is to them.
  const allowed =
    /^(array_sample|array_shuffle|clock_timestamp|gen_random_uuid|random|random_normal|timeofday|uuidv[47])$/;
  assert.deepEqual(
    rows.map(({ name }) => String(name)).filter((name) => !allowed.test(name)),
    [],
  );
});
