// Goal: every write that the execution login may make through a registered view is followed to
// where it ends. Method: small catalogues written by hand; `views.test.ts` does the same through
// the whole runtime.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  Grant,
  RelationRow,
  SystemCatalog,
} from '../../../../src/adapters/postgres/certify/catalog.ts';
import { indexCatalog } from '../../../../src/adapters/postgres/certify/catalog-index.ts';
import {
  type BoundaryFacts,
  Outlets,
  type SurveyContext,
} from '../../../../src/adapters/postgres/certify/facts.ts';
import { surveyViews } from '../../../../src/adapters/postgres/certify/views.ts';
import { catalogOf, relation, rule, trigger } from './rows.ts';

/** Bits as the server has them: what can be written through a view, and what a trigger is for. */
const WRITABLE = { INSERT: 8, UPDATE: 4, DELETE: 16 } as const;
const TRIGGER = { INSERT: 4, UPDATE: 16, DELETE: 8 } as const;
const INSTEAD_OF = 64;
type Event = keyof typeof WRITABLE;

const TABLE = relation('t', 'r');
const HIDDEN = relation('hidden', 'r');
const VIEW = relation('v', 'v', { writes: 28, owner: 'Owner' });

const grant = (privilege: string, more: Partial<Grant> = {}): Grant => ({
  ...{
    kind: 'TABLE',
    object: 'app.v',
    owner: 'app',
    grantee: 'exec',
    privilege,
    grantable: false,
    grantor: 'app',
  },
  ...more,
});

/** What is said about the view where the table is registered. */
function surveyOf(parts: Partial<SystemCatalog>, views: readonly RelationRow[] = [VIEW]): Outlets {
  const catalog = catalogOf({
    grants: [grant('UPDATE')],
    relations: [TABLE, HIDDEN, VIEW],
    ...parts,
  });
  const relations = [{ oid: TABLE.oid, leaves: [] }];
  const facts = { executor: 'exec', relations, views } as unknown as BoundaryFacts;
  const index = indexCatalog(catalog, facts, new Set());
  const outlets = new Outlets();
  surveyViews({ catalog, facts, index, outlets } as unknown as SurveyContext);
  return outlets;
}

/** Where writes end that nothing records. */
function straysOf(...asked: Parameters<typeof surveyOf>): readonly string[] {
  return surveyOf(...asked).problems.map(
    ({ why }) => /^Writes through it go to (.*), which is not/.exec(why)?.[1] ?? '',
  );
}

const over = (query: string, view = VIEW) => ({ rules: [rule(view, query)] });
const IN_TABLE = over('SELECT t.a FROM app.t');
const IN_HIDDEN = over('SELECT a FROM app.hidden');

test('a view over a registered table is observed, with the events that are granted', () => {
  const { listed, problems } = surveyOf({
    ...IN_TABLE,
    grants: [grant('UPDATE'), grant('INSERT'), grant('SELECT')],
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(listed, [
    {
      outlet: 'view app.v',
      disposition: 'observed',
      by: 'INSERT, UPDATE through it end in registered tables, or in triggers judged below',
    },
  ]);
});

test('a view over another table is open, with what to do', () => {
  assert.deepEqual(surveyOf(IN_HIDDEN).problems, [
    {
      outlet: 'view app.v',
      object: 'app.v',
      why: 'Writes through it go to app.hidden, which is not registered; name it in relations, or leave the view out',
      fix: ['REVOKE INSERT, UPDATE, DELETE ON TABLE app.v FROM PUBLIC, "exec"'],
      needs: '"Owner" or a superuser',
      behind: 'relation app.v',
    },
  ]);
  assert.ok(!surveyOf(IN_HIDDEN).listed.some(({ disposition }) => disposition === 'observed'));
});

test('a view that is gone is not spoken of', () => {
  assert.deepEqual(surveyOf({ ...IN_HIDDEN, relations: [TABLE] }).listed, []);
});

describe('rights', () => {
  const denied = 'registered, but the execution login may not write through it';
  const says = (...grants: readonly Grant[]) =>
    surveyOf({ ...IN_HIDDEN, grants }).listed.map(({ by }) => by);

  test('of nobody, of others, or to other things open nothing', () => {
    for (const grants of [
      [],
      [grant('SELECT')],
      [grant('UPDATE', { grantee: 'other' })],
      [grant('UPDATE', { object: 'app.t' })],
      [grant('UPDATE', { kind: 'COLUMN', object: 'app.t(a)' })],
      [grant('UPDATE', { kind: 'COLUMN', object: 'app.vv(a)' })],
      [grant('UPDATE', { kind: 'COLUMN', object: 'app.v' })],
    ]) {
      assert.deepEqual(says(...grants), [denied]);
    }
  });

  test('of everybody, and to single columns, count', () => {
    for (const held of [
      grant('UPDATE', { grantee: '' }),
      grant('INSERT', { kind: 'COLUMN', object: 'app.v(a)' }),
      grant('DELETE'),
    ]) {
      assert.match(says(held).join(), /app\.hidden/);
    }
  });
});

describe('where a write ends', () => {
  test('an event that the server does not carry out ends nowhere', () => {
    for (const event of Object.keys(WRITABLE) as Event[]) {
      const strays = (writes: number) => {
        const view = { ...VIEW, writes };
        return straysOf({ ...IN_HIDDEN, relations: [HIDDEN, view], grants: [grant(event)] });
      };
      assert.deepEqual(strays(WRITABLE[event]), ['app.hidden']);
      assert.deepEqual(strays(28 - WRITABLE[event]), []);
    }
  });

  test('in an INSTEAD OF trigger for the event, if that can fire', () => {
    for (const event of Object.keys(TRIGGER) as Event[]) {
      const strays = (type: number, enabled?: string, on = VIEW) =>
        straysOf({ ...IN_HIDDEN, grants: [grant(event)], triggers: [trigger(on, type, enabled)] });
      assert.deepEqual(strays(INSTEAD_OF + TRIGGER[event]), []);
      assert.deepEqual(strays(INSTEAD_OF + TRIGGER[event], 'A'), []);
      assert.deepEqual(strays(INSTEAD_OF + TRIGGER[event], 'D'), ['app.hidden']);
      assert.deepEqual(strays(INSTEAD_OF + TRIGGER[event], 'O', HIDDEN), ['app.hidden']);
      assert.deepEqual(strays(TRIGGER[event]), ['app.hidden']);
      assert.deepEqual(strays(INSTEAD_OF + 28 - TRIGGER[event]), ['app.hidden']);
    }
  });

  test('beneath a view of a view', () => {
    const inner = relation('inner', 'v', { writes: 28 });
    const through = (query: string) => ({
      relations: [TABLE, HIDDEN, VIEW, inner],
      rules: [rule(inner, query), ...over('SELECT a FROM app.inner').rules],
    });
    assert.deepEqual(straysOf(through('SELECT a FROM app.t')), []);
    assert.deepEqual(straysOf(through('SELECT a FROM app.hidden')), ['app.hidden']);
  });

  test('in the view itself where its query is not known, and in a relation that is not in the catalogue', () => {
    assert.deepEqual(straysOf({}), ['app.v']);
    assert.deepEqual(straysOf({ rules: [rule(VIEW, 'SELECT a FROM app.t', '2')] }), ['app.v']);
    assert.deepEqual(straysOf({ rules: [rule(HIDDEN, 'SELECT a FROM app.t')] }), ['app.v']);
    assert.deepEqual(straysOf(over('SELECT 1')), ['app.v']);
    assert.deepEqual(straysOf(over('SELECT a FROM (SELECT 1)')), ['app.v']);
    assert.deepEqual(straysOf(over('SELECT a FROM')), ['app.v']);
    assert.deepEqual(straysOf(over('SELECT a FROM app.gone')), ['app.gone']);
    assert.deepEqual(straysOf(over('SELECT a FROM pg_class')), ['pg_catalog.pg_class']);
    assert.deepEqual(straysOf(over('SELECT a FROM pg_class c')), ['pg_catalog.pg_class']);
    assert.deepEqual(straysOf(over('SELECT a FROM pg_class c WHERE b')), ['pg_catalog.pg_class']);
    assert.deepEqual(straysOf(over('SELECT a FROM app.')), ['pg_catalog.app']);
  });

  test('a table of the same name in another schema is another table', () => {
    const relations = [relation('hidden', 'r', { oid: TABLE.oid, schema: 'other' }), HIDDEN, VIEW];
    assert.deepEqual(straysOf({ ...IN_HIDDEN, relations }), ['app.hidden']);
    const named = [relation('other', 'r', { oid: TABLE.oid }), HIDDEN, VIEW];
    assert.deepEqual(straysOf({ ...IN_HIDDEN, relations: named }), ['app.hidden']);
  });

  test('the FROM that counts is the one outside of parentheses, with or without ONLY', () => {
    for (const query of [
      'SELECT (SELECT max(x) FROM app.hidden) AS a, b FROM app.t',
      'SELECT EXTRACT(year FROM d) AS "from", a FROM ONLY app.t WHERE EXISTS (SELECT 1 FROM app.hidden)',
      `SELECT '(' AS a, "(" FROM app.t`,
      `SELECT ')' AS a, (SELECT b FROM app.hidden) FROM app.t`,
      `SELECT ")", (SELECT b FROM app.hidden) FROM app.t`,
      'SELECT "from", a FROM "app"."t" WHERE b IN (SELECT c FROM app.hidden)',
      `SELECT 'from' AS a FROM app.t`,
    ]) {
      assert.deepEqual(straysOf(over(query)), [], query);
    }
    assert.deepEqual(straysOf(over('SELECT a FROM "only"')), ['pg_catalog.only']);
  });

  test('a view that is registered as a table, or is no view any more, is judged as what it is', () => {
    assert.deepEqual(straysOf({ grants: [grant('UPDATE', { object: 'app.t' })] }, [TABLE]), []);
    assert.deepEqual(straysOf({ grants: [grant('UPDATE', { object: 'app.hidden' })] }, [HIDDEN]), [
      'app.hidden',
    ]);
  });
});
