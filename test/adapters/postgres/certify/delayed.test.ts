// Goal: nothing that maintenance evaluates after a commit can do more than read and compute.
// Method: a provisioned database on a real server; functions in statistics, indexes and
// materialized views, one at a time; what ANALYZE, REINDEX and REFRESH then do, and what the survey
// said about it before.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSite, type Site } from './site.ts';

/**
 * Functions that the server takes for harmless, and that write unless an operation is being
 * observed.
 */
const LATER = `create function app.writes(text) returns void language plpgsql as
    $$ begin insert into app.hidden values (1, $1); end $$;
  create function app.later(text) returns text language plpgsql immutable as
    $$ begin perform app.writes($1); return $1; end $$`;

let site: Site;

before(async () => {
  site = await openSite();
  await site.apply([
    `insert into app.vendor (id, name) values (1, 'v')`,
    `insert into app.invoice (id, vendor, amount) values (1, 1, 5)`,
  ]);
});
after(() => site[Symbol.asyncDispose]());

/** What the survey finds open while these objects exist. They are dropped again. */
async function problemsWith(
  setup: string,
  reviews: readonly { function: string; digest: string; by: string }[] = [],
) {
  await site.db.run(`${setup}; revoke execute on all routines in schema app from public`);
  try {
    return (await site.survey({ reviews })).problems;
  } finally {
    await site.db.run(CLEAN);
  }
}

const CLEAN = `drop materialized view if exists app.m cascade; drop statistics if exists app.s;
  do $$ declare f record; begin
    for f in select p.oid::regprocedure as name, p.prokind as kind from pg_proc p
      where p.pronamespace = 'app'::regnamespace and p.proname not in ('pay', 'on_paid') order by p.prokind <> 'a' loop
      execute format('drop %s if exists %s cascade', case f.kind when 'a' then 'aggregate' else 'routine' end, f.name);
    end loop;
    for f in select t.oid::regtype as name from pg_type t where t.typnamespace = 'app'::regnamespace and t.typtype = 'd' loop
      execute format('drop domain %s cascade', f.name);
    end loop;
  end $$; drop view if exists app.v, app.w; drop table if exists app.guarded; drop foreign table if exists app.far;
  drop server if exists away; drop foreign data wrapper if exists none`;

for (const [what, create, run] of [
  [
    'statistics',
    'create statistics app.s on (app.later(status)) from app.invoice',
    'analyze app.invoice',
  ],
  ['an index', 'create index later on app.invoice (app.later(status))', 'reindex index app.later'],
  [
    'a materialized view',
    'create materialized view app.m as select app.later(status) from app.invoice',
    'refresh materialized view app.m',
  ],
] as const) {
  test(`${run} runs the function of ${what} where nothing observes it, and the survey refuses that`, async () => {
    await site.db.run(`${LATER}; ${create}; truncate app.hidden`);
    await site.db.run(run);
    const written = await site.db.run('select what from app.hidden');
    assert.ok(written.length > 0, 'maintenance evaluates it');
    await site.db.run(`truncate app.hidden; ${CLEAN}`);
    const found = (await problemsWith(`${LATER}; ${create}`)).filter(({ outlet }) =>
      outlet.startsWith('maintenance'),
    );
    assert.equal(found.length, 1);
    assert.match(found[0]?.why ?? '', /app\.writes\(text\) may write \(INSERT\)/);
    assert.match(found[0]?.fix[0] ?? '', /^DROP (STATISTICS|INDEX|MATERIALIZED VIEW) app\./);
  });
}

const viewOf = (body: string, language = 'plpgsql') =>
  `create function app.f(text) returns text language ${language} as $$ ${body} $$;
   create materialized view app.m as select app.f(status) from app.invoice with no data`;

describe('functions that may do more than read', () => {
  for (const [what, setup, why] of [
    [
      'an update',
      viewOf(`begin update app.hidden set what = $1; return $1; end`),
      /may write \(UPDATE\)/,
    ],
    [
      'a writing query part',
      viewOf(`with x as (delete from app.hidden returning what) select what from x`, 'sql'),
      /may write \(DELETE\)/,
    ],
    ['a definition', viewOf(`begin create table app.t (); return $1; end`), /may write \(CREATE\)/],
    ['SQL put together at run time', viewOf(`begin execute $1; return $1; end`), /EXECUTE/],
    ['a notification', viewOf(`begin notify leak; return $1; end`), /NOTIFY/],
    ['a sequence', viewOf(`select nextval('app.free')::text`, 'sql'), /moves a sequence/],
    [
      'a sequence by attribute',
      viewOf(`select (('app.free'::regclass).nextval)::text`, 'sql'),
      /moves a sequence/,
    ],
    [
      'a dangerous built-in',
      viewOf(`select pg_notify('leak', $1)::text`, 'sql'),
      /calls pg_notify/,
    ],
    [
      'a table as XML',
      viewOf(`select table_to_xml('app.invoice', true, false, '')::text`, 'sql'),
      /runs SQL that it is/,
    ],
    [
      'a call of a function by attribute',
      `${LATER}; ${viewOf(`select ($1).later`, 'sql set search_path = app, pg_temp')}`,
      /may write \(INSERT\)/,
    ],
    [
      'an operator in its body',
      `${LATER}; create operator app.### (function = app.later, rightarg = text);
       ${viewOf(`select operator(app.###) $1`, 'sql')}`,
      /may write/,
    ],
    [
      'a domain among its variables',
      `${LATER}; create domain app.sly as text check (app.later(value) is not null);
       ${viewOf(`declare x app.sly := $1; begin return x; end`)}`,
      /may write/,
    ],
    [
      'a view that it reads',
      `${LATER}; create view app.v as select app.later(status) as s from app.invoice;
       ${viewOf(`select s from app.v limit 1`, 'sql')}`,
      /may write/,
    ],
    [
      'a policy of a table that it reads',
      `${LATER}; create table app.guarded (what text); alter table app.guarded enable row level security;
       create policy p on app.guarded using (app.later(what) is not null); ${viewOf(`select what from app.guarded`, 'sql')}`,
      /may write/,
    ],
    [
      'a foreign table that it reads',
      `create foreign data wrapper none; create server away foreign data wrapper none;
       create foreign table app.far (what text) server away; ${viewOf(`select what from app.far`, 'sql')}`,
      /foreign table/,
    ],
    [
      'a cast that the application defined',
      `${LATER}; create domain app.calm as text; create type app.pair as (a text);
       create function app.convert(app.pair) returns text language sql as 'select app.later(($1).a)';
       create cast (app.pair as text) with function app.convert(app.pair); ${viewOf(`select lower($1)`, 'sql')}`,
      /may write/,
    ],
  ] as const) {
    test(`${what} is found`, async () => {
      const found = await problemsWith(setup).finally(() =>
        site.db.run('drop type if exists app.pair cascade'),
      );
      const delayed = found.filter(
        ({ outlet }) => outlet === 'maintenance of materialized view app.m',
      );
      assert.equal(delayed.length, 1, found.map(({ outlet }) => outlet).join(', '));
      assert.match(delayed[0]?.why ?? '', why);
    });
  }

  test('functions that call each other are both found, whichever is asked for first', async () => {
    const found = await problemsWith(`${LATER};
      create function app.even(text) returns text language plpgsql stable as $$ begin return app.odd($1) || app.later($1); end $$;
      create function app.odd(text) returns text language plpgsql stable as $$ begin return app.even($1); end $$;
      create view app.v as select app.even(status) as s from app.invoice; create view app.w as select app.odd(status) as s from app.invoice;
      create materialized view app.m as select w.s from app.w w with no data`);
    assert.match(
      found.map(({ outlet, why }) => `${outlet}: ${why}`).join('\n'),
      /maintenance of .* app\.m: .*INSERT/,
    );
  });
});

describe('what is accepted', () => {
  for (const [what, setup] of [
    [
      'reading tables',
      viewOf(`select n.body from app.note n where n.body > $1 order by 1 limit 1`, 'sql'),
    ],
    [
      'computing',
      viewOf(
        `declare r text := lower($1); begin if r is null then raise notice 'none'; end if; return r; end`,
      ),
    ],
    [
      'clocks and chance',
      viewOf(`select concat(clock_timestamp(), random(), gen_random_uuid())`, 'sql'),
    ],
    [
      'a name that is a column here and a function elsewhere',
      `${LATER}; ${viewOf(`declare later text := $1; begin return later; end`)}`,
    ],
  ] as const) {
    test(`${what}`, async () => {
      assert.deepEqual(await problemsWith(setup), []);
    });
  }

  test('a function that a person has read, until it changes', async () => {
    const setup = viewOf(`begin execute 'select ' || quote_literal($1) into $1; return $1; end`);
    const [open] = await problemsWith(setup);
    const digest = /declare its digest ([0-9a-f]+)/.exec(open?.why ?? '')?.[1] ?? '';
    const review = { function: 'app.f(text)', digest, by: 'a person' };
    assert.deepEqual(await problemsWith(setup, [review]), []);
    assert.equal((await problemsWith(setup, [{ ...review, digest: 'f00d' }])).length, 1);
  });
});

test('row filters of publications call built-in functions only: the server refuses others', async () => {
  await site.db.run(LATER);
  const filtered = `create publication p for table app.invoice where (app.later(status) = 'x')`;
  await assert.rejects(site.db.run(filtered), /invalid publication WHERE expression/);
  await site.db.run(CLEAN);
});
