// Goal: what the catalogue answers about names decides what can be registered, and every refusal
// says what to change. Method: answers written by hand instead of a server's; other tests ask real
// servers the same.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import { markUnreadable } from '../../../src/adapters/postgres/boundary.ts';
import { demandEntries } from '../../../src/adapters/postgres/entry.ts';
import { findUsed } from '../../../src/adapters/postgres/fresh.ts';
import type { RoutineName } from '../../../src/adapters/postgres/routine-name.ts';
import { readTypes } from '../../../src/adapters/postgres/types.ts';
import { demandViews } from '../../../src/adapters/postgres/view.ts';
import type { Connection } from '../../../src/postgres/connection.ts';

/** A connection that gives these rows to every query, or throws. */
function answering(
  rows: readonly (readonly (string | null)[])[] | Error,
): Connection & { readonly asked: unknown[][] } {
  const asked: unknown[][] = [];
  const query = async (_: string, values: readonly unknown[] = []) => {
    asked.push([...values]);
    if (rows instanceof Error) throw rows;
    return { rows };
  };
  return { asked, query, script: async () => {} } as unknown as Connection & {
    readonly asked: unknown[][];
  };
}

const refused = (message: RegExp) => ({ code: 'ERR_EM_ADAPTER_REFUSED', message });

describe('views', () => {
  const name = { schema: 'public', name: 'pending' };
  const found = (more: object = {}) =>
    JSON.stringify({ oid: 7, kind: 'v', rules: [], writes: 28, ...more });
  const demand = (text: string | null, near: string | null = null) =>
    demandViews(answering([[text, near]]), [name]);

  test('a view is registered with the events that can be carried out through it', async () => {
    const events = async (writes: number) => (await demand(found({ writes })))[0]?.events;
    assert.deepEqual(await events(28), ['insert', 'update', 'delete']);
    assert.deepEqual(await events(8), ['insert']);
    assert.deepEqual(await events(4), ['update']);
    assert.deepEqual(await events(16), ['delete']);
    assert.deepEqual(await demand(found({ writes: 4 })), [
      { ...name, oid: 7, target: 'pending', events: ['update'] },
    ]);
  });

  test('what is none, or cannot be written, is refused with what to do', async () => {
    await assert.rejects(
      demand(null),
      refused(/view "pending" cannot be registered: there is no such view$/),
    );
    await assert.rejects(
      demand(null, '["pendin"]'),
      refused(/no such view \(did you mean "pendin"/),
    );
    await assert.rejects(
      demand(found({ kind: 'r' })),
      refused(/it is a table; name it in relations/),
    );
    await assert.rejects(demand(found({ kind: 'i' })), refused(/it is not a view/));
    await assert.rejects(
      demand(found({ rules: ['also'] })),
      refused(/rule "also" rewrites statements/),
    );
    await assert.rejects(
      demand(found({ writes: 3 })),
      refused(/nothing can be written through it/),
    );
  });

  test('an answer that is missing is no view, and without names nothing is asked', async () => {
    await assert.rejects(demandViews(answering([]), [name]), refused(/there is no such view/));
    const silent = answering(new Error('it was asked'));
    assert.deepEqual(await demandViews(silent, []), []);
    assert.deepEqual(silent.asked, []);
  });
});

describe('entry points', () => {
  const argument = (printed: string, mode = 'i') => ({
    type: `pg_catalog.${printed}`,
    mode,
    printed,
    spellings: [],
  });
  const found = (more: object = {}) => ({
    ...{
      oid: 7,
      prokind: 'f',
      variadic: false,
      identity: 'a text',
    },
    ...{ arguments: [argument('text')], ...more },
  });
  const PAY: RoutineName = { schema: 'app', name: 'pay' };
  const demand = async (names: readonly RoutineName[], ...rows: readonly (readonly object[])[]) =>
    demandEntries(answering(rows.map((row) => [JSON.stringify(row), '["payout"]'])), names);
  const only = async (stated: RoutineName, ...rows: readonly object[]) =>
    (await demand([stated], rows))[0];

  test('one of its name is registered by its name, and by its signature where one is stated', async () => {
    const entry = await only(PAY, found());
    assert.deepEqual(entry, {
      ...{
        ...PAY,
        oid: 7,
        target: 'app.pay',
        kind: 'function',
      },
      arguments: [{ type: 'pg_catalog.text', input: true }],
      signature: { types: ['text'], spellings: [['text']], identity: 'a text' },
    });
    const signed = { ...PAY, signature: ['a text'] };
    assert.equal((await only(signed, found()))?.target, 'app.pay(text)');
    const numbers = found({ oid: 8, identity: 'a integer', arguments: [argument('integer')] });
    assert.equal((await only({ ...PAY, signature: ['integer'] }, found(), numbers))?.oid, 8);
  });

  test('none, several or others of its name are refused with what there is', async () => {
    const both = [found(), found({ oid: 8, identity: 'a int', arguments: [argument('int')] })];
    await assert.rejects(
      only(PAY),
      refused(/entry point "app\.pay" cannot be registered: there is no such function/),
    );
    await assert.rejects(
      only(PAY, ...both),
      refused(/there are 2 of this name; write one of app\.pay\(int\), app\.pay\(text\)/),
    );
    const date = { ...PAY, signature: ['date'] };
    await assert.rejects(
      only(date, ...both),
      refused(
        /"app\.pay\(date\)".*none of this name takes \(date\); there are app\.pay\(int\), app/,
      ),
    );
    await assert.rejects(only(PAY, found({ prokind: 'a' })), refused(/aggregate or window/));
    await assert.rejects(only(PAY, found({ variadic: true })), refused(/any number of arguments/));
  });

  test('two names of one entry point are refused, two entry points are not', async () => {
    const names = [PAY, { ...PAY, signature: ['text'] }];
    await assert.rejects(
      demand(names, [found()], [found()]),
      refused(/"app\.pay\(text\)" is registered twice/),
    );
    const other = { schema: 'app', name: 'move' };
    assert.equal((await demand([PAY, other], [found()], [found({ oid: 8 })])).length, 2);
    assert.deepEqual(await demandEntries(answering(new Error('it was asked')), []), []);
  });

  test('a function is called with its inputs, a procedure with everything', async () => {
    const list = [argument('a'), argument('b', 'b'), argument('o', 'o'), argument('v', 'v')];
    const called = async (prokind: string) =>
      (await only(PAY, found({ prokind, arguments: list })))?.arguments;
    const input = (type: string, isInput = true) => ({
      type: `pg_catalog.${type}`,
      input: isInput,
    });
    assert.deepEqual(await called('f'), [input('a'), input('b')]);
    assert.deepEqual(await called('p'), [
      input('a'),
      input('b'),
      input('o', false),
      input('v', false),
    ]);
    const entry = await only(PAY, found({ arguments: list }));
    assert.deepEqual(
      entry?.signature.types,
      ['a', 'b', 'v'],
      'what it only returns is not part of its signature',
    );
  });
});

describe('row security', () => {
  const relations = [{ oid: 7 }, { oid: 8 }] as never;
  const mark = (...rows: readonly [number, string][]) => {
    const found = JSON.stringify(rows.map(([oid, role]) => ({ oid, role })));
    return markUnreadable(answering([[found]]), { control: 'control', owner: 'owner' }, relations);
  };

  test('only the tables that a trusted login cannot read are marked, with the roles to change', async () => {
    const [first, second] = await mark([8, 'control'], [8, 'Owner']);
    assert.equal(first?.unreadable, undefined);
    assert.match(
      second?.unreadable ?? '',
      /ALTER ROLE "control" BYPASSRLS; ALTER ROLE "Owner" BYPASSRLS;/,
    );
    assert.deepEqual(await mark(), relations);
  });
});

describe('types', () => {
  test('only those that did not come with the server are asked for, each once', async () => {
    const silent = answering(new Error('it was asked'));
    assert.deepEqual(
      (await readTypes(silent, [23, 25], [])).readingOf(23, 'integer').kind,
      'built-in',
    );
    assert.deepEqual(silent.asked, []);
    const asked = answering([['[]']]);
    await readTypes(asked, [23, 20_000, 16_384, 20_000, 16_383], ['citext']);
    assert.deepEqual(asked.asked, [[['20000', '16384'], ['citext']]]);
  });

  test('what is found is what counts, and an answer that is missing finds nothing', async () => {
    const type = {
      oid: 20_000,
      schema: 'app',
      name: 'd',
      kind: 'd',
      base: null,
      element: null,
      parts: [],
      code: null,
    };
    const known = await readTypes(answering([[JSON.stringify([type])]]), [20_000], []);
    assert.equal(known.codeBehind(20_000), undefined);
    for (const rows of [[], [[null]]]) {
      const unknown = await readTypes(answering(rows), [20_000], []);
      assert.match(unknown.codeBehind(20_000) ?? '', /was not found/);
    }
  });
});

describe('identifiers in use', () => {
  const column = {
    relation: { schema: 'app', name: 'link' },
    column: 'token',
    isKey: false,
  } as never;
  const failing = (code: string) =>
    answering(Object.assign(new pg.DatabaseError('denied', 6, 'error'), { code }));

  test('they are those that the table has; where it cannot be asked for rights, all of them', async () => {
    assert.deepEqual(await findUsed(answering([['a']]), column, ['a', 'b']), new Set(['a']));
    assert.deepEqual(await findUsed(failing('42501'), column, ['a', 'b']), new Set(['a', 'b']));
    await assert.rejects(findUsed(failing('57014'), column, ['a']), {
      code: 'ERR_EM_ADAPTER_UNAVAILABLE',
      message: /identifiers in use could not be read: denied/,
    });
    const silent = answering(new Error('it was asked'));
    assert.deepEqual(await findUsed(silent, column, []), new Set());
    assert.deepEqual(silent.asked, []);
  });
});
