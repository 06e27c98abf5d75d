// Goal: any name that PostgreSQL accepts can be registered, written, observed and read. Method:
// tables, columns, schemas, sequences and functions with awkward names, provisioned twice; every
// operation on each, compared with the rows that the superuser reads; the protection taken away
// again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planProvisioning } from '../../../src/adapters/postgres/index.ts';
import { parseTarget, quoteName, quoteQualified } from '../../../src/postgres/identifier.ts';
import { draftManifest, read, remove, update } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { renderEffect } from '../../../src/protocol/render.ts';
import { demandHeld, openPort } from './drive.ts';

const LONG = 'x'.repeat(63);
const LONG_BYTES = 'ü'.repeat(31);

/** Schema and table, and how an application would register it. */
const NAMES: readonly (readonly [schema: string, name: string, registered: string])[] = [
  ['public', 'plain', 'plain'],
  ['public', 'folded', 'FOLDED'],
  ['public', 'MixedCase', '"MixedCase"'],
  ['public', 'two words', '"two words"'],
  ['public', 'quo"te', '"quo""te"'],
  ['public', "apostro'phe", '"apostro\'phe"'],
  ['public', 'back\\slash', '"back\\slash"'],
  ['public', 'select', 'select'],
  ['public', 'user', '"user"'],
  ['public', 'a.b', '"a.b"'],
  ['public', '$1', '"$1"'],
  ['public', '%s %I', '"%s %I"'],
  ['public', '; drop table plain; --', '"; drop table plain; --"'],
  ['public', LONG, LONG],
  ['public', LONG_BYTES, `"${LONG_BYTES}"`],
  ['public', 'Übung', 'Übung'],
  ['public', '表 🙂', '"表 🙂"'],
  ['other', 'plain', 'other.plain'],
  ['Other Schema', 'plain', '"Other Schema".plain'],
  ['a"b', 'c.d', '"a""b"."c.d"'],
  ['table', 'select', '"table"."select"'],
];

const COLUMNS = ['Key "one"', 'select', 'Größe', "it's", 'constructor', LONG];
const [key, ...rest] = COLUMNS.map(quoteName);

const SCHEMA = `
  ${[...new Set(NAMES.map(([schema]) => schema))]
    .filter((schema) => schema !== 'public')
    .map((schema) => `create schema ${quoteName(schema)};`)
    .join('\n')}
  ${NAMES.map(([schema, name]) => {
    const columns = rest.map((column) => `${column} text default 'd'`).join(', ');
    return `create table ${quoteQualified({ schema, name })} (${key} serial primary key, ${columns});`;
  }).join('\n')}
  create function "Other Schema"."Do ""it""; now"(a integer) returns void language sql as
    'insert into "Other Schema".plain ("it''s") select ''called'' from generate_series(1, a)';`;

test('every name is provisioned, written, observed, read and taken back', async (t) => {
  const relations = NAMES.map(([, , registered], index) => ({
    name: registered,
    bulk: index % 3 === 2,
  }));
  const settings = { relations, entryPoints: ['"Other Schema"."Do ""it""; now"'] };
  await using port = await openPort(SCHEMA, settings);
  await (await planProvisioning(port.db.url(), port.options)).apply();

  for (const [schema, name, registered] of NAMES) {
    await t.test(`${schema} · ${name.slice(0, 20)}`, async () => {
      assert.deepEqual(parseTarget(registered), { schema, name });
      const table = quoteQualified({ schema, name });
      const target =
        port.adapter.registration.targets[NAMES.findIndex(([s, n]) => s === schema && n === name)]
          ?.name;
      const steps = [
        { sql: `insert into ${table} (${rest[0]}) values ($1)`, values: ['new'] },
        { sql: `update ${table} set ${rest[1]} = $1, ${rest[4]} = null`, values: ['changed'] },
        { sql: `delete from ${table}` },
      ];
      const columns = COLUMNS.slice(1);
      const inserted = Object.fromEntries(
        columns.map((column) => [column, column === 'select' ? 'new' : 'd']),
      );
      const changed = { ...inserted, Größe: 'changed', [LONG]: null };
      const expected = [
        { op: 'insert', key: { [COLUMNS[0] ?? '']: 1 }, after: inserted },
        {
          op: 'update',
          key: { [COLUMNS[0] ?? '']: 1 },
          before: { Größe: 'd', [LONG]: 'd' },
          after: { Größe: 'changed', [LONG]: null },
        },
        { op: 'delete', key: { [COLUMNS[0] ?? '']: 1 }, before: changed },
      ];
      const durable = [inserted, changed, undefined];
      for (const [index, step] of steps.entries()) {
        const held = demandHeld(
          await port.hold(
            step,
            target === undefined ? [] : [read(target, { [COLUMNS[0] ?? '']: 1 })],
          ),
        );
        assert.deepEqual(held.observation, {
          kind: 'complete',
          effects: [{ target, ...expected[index] }],
        });
        assert.equal((await held.promote()).kind, 'confirmed');
        const [row] = await port.db.run(`select * from ${table}`);
        assert.deepEqual(row, durable[index] && { [COLUMNS[0] ?? '']: 1, ...durable[index] });
      }
    });
  }

  await t.test('an entry point', async () => {
    const held = demandHeld(
      await port.hold({ call: '"Other Schema"."Do ""it""; now"', values: [2] }),
    );
    assert.ok(held.observation.kind === 'complete' && held.observation.effects.length === 2);
    assert.equal((await held.promote()).kind, 'confirmed');
  });

  await t.test('removal', async () => {
    await port.adapter.close();
    await (await planProvisioning(port.db.url(), port.options, 'remove-markers')).apply();
    assert.deepEqual(
      await port.db.run(
        "select from pg_trigger where tgname like 'effectmatch%' union all select from pg_namespace where nspname = 'effectmatch'",
      ),
      [],
    );
  });
});

test('a capitalised name needs no quotes, in the configuration and in manifests, and reads as it is', async () => {
  const schema = `create table "Track" ("TrackId" int primary key, "UnitPrice" numeric);
    create table album (id int primary key);
    create schema "Sales"; create table "Sales"."Line" (id int primary key);`;
  const settings = { relations: ['Track', 'ALBUM'], reads: ['Sales.Line'] };
  await using port = await openPort(schema, settings);
  const [target, folded] = port.adapter.registration.targets;
  assert.deepEqual([target?.name, folded?.name], ['Track', 'album']);
  for (const written of ['Track', '"Track"', 'public.Track', 'public."Track"']) {
    const manifest = draftManifest({
      ...{ adapter: 'db', task: 't', planRevision: 0 },
      effects: [update(written, { TrackId: 1 }, { UnitPrice: [1, 2] })],
      watch: [],
    });
    const { effects } = await port.adapter.normalise(manifest);
    assert.equal(effects[0]?.target, 'Track', written);
    assert.equal(
      renderEffect(effects[0] as ApprovedEffect),
      '~ Track TrackId=1  UnitPrice: 1 -> 2',
    );
  }
  const [reading] = await port.adapter.read([read('Sales.Line', { id: 1 })]);
  assert.deepEqual(reading, { target: 'Sales.Line', key: { id: 1 }, row: null });
});

test('a name that could mean two tables is refused with what to write', async () => {
  const schema =
    'create table "Track" (id int primary key); create table track (id int primary key);';
  await assert.rejects(openPort(schema, { relations: ['Track'] }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
    message: /"Track": it could mean two tables; write "Track" with the quotes, or track/,
  });
  await assert.rejects(
    openPort('create table "Track" (id int primary key)', {
      relations: ['Track', '"Track"'],
    }),
    /registered twice/,
  );
  await using port = await openPort(schema, { relations: ['"Track"', 'track'] });
  assert.deepEqual(
    port.adapter.registration.targets.map(({ name }) => name),
    ['"Track"', 'track'],
  );
  const stated = (target: string) =>
    draftManifest({
      ...{ adapter: 'db', task: 't', planRevision: 0 },
      effects: [remove(target, { id: 1 })],
    });
  await assert.rejects(port.adapter.normalise(stated('Track')), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /it could mean two tables/,
  });
  for (const target of ['"Track"', 'track', 'TRACK']) {
    const { effects } = await port.adapter.normalise(stated(target));
    assert.equal(effects[0]?.target, target.toLowerCase() === 'track' ? 'track' : target);
  }
});
