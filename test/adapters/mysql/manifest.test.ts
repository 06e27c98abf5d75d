// Goal: an approval is completed and cast as the columns of MariaDB store it, and what they do not
// take is refused where it stands. Method: approvals on a table with every kind of default, on a real
// server; a session that is lost while it casts, made by hand.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { MysqlColumn } from '../../../src/adapters/mysql/catalog.ts';
import { type MysqlConnection, MysqlFailure } from '../../../src/adapters/mysql/connection.ts';
import { normaliseKeys, type SchemaTools } from '../../../src/adapters/mysql/schema.ts';
import { generated, insert, read, update } from '../../../src/index.ts';
import type { ManifestDraft } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { type MariadbOffice, openMariadbOffice } from '../../mysql/office.ts';

const SCHEMA = `create table t (
    id int auto_increment primary key, n tinyint unsigned not null, m tinyint unsigned null,
    price decimal(10, 2) not null default 1.50, tax decimal(10, 2) not null default 0,
    mark varchar(9) null, made datetime not null default current_timestamp
  ) character set utf8mb4;
  create table other (id int primary key); create table seen (id int primary key)`;
const MADE = '2026-01-02T03:04:05';
const ID = { id: generated('new') };

describe('MariaDB: approvals', { skip: skipWithoutMariadb() }, () => {
  let office: MariadbOffice;
  const prepare = async (effects: readonly ApprovedEffect[], more: Partial<ManifestDraft> = {}) =>
    await office.runtime.prepare({
      ...{ adapter: 'db', task: 'approvals', planRevision: 1, effects },
      ...more,
    });
  const refused = (effect: ApprovedEffect, message: RegExp) =>
    assert.rejects(prepare([effect]), { code: 'ERR_EM_MANIFEST_INVALID', message });
  before(async () => {
    office = await openMariadbOffice(SCHEMA, { relations: ['t'], reads: ['seen'] });
  });
  after(() => office[Symbol.asyncDispose]());

  test('get constant defaults and NULL where a column is left out', async () => {
    const { approved } = await prepare([insert('t', { ...ID, n: 7, tax: '2.50', made: MADE })]);
    assert.deepEqual(approved.effects[0]?.after, {
      ...{ made: { is: MADE }, mark: { is: null }, m: { is: null }, n: { is: 7 } },
      ...{ price: { is: { $dec: '1.5' } }, tax: { is: { $dec: '2.5' } } },
    });
  });

  test('must state what has no default, a computed one, or one that the server assigns', async () => {
    await refused(insert('t', { ...ID, made: MADE }), /"?n"?.*NOT NULL and has no default/);
    const computed = /made.*default is computed \(current_timestamp\(\)\)/;
    await refused(insert('t', { ...ID, n: 7 }), computed);
    await refused(insert('t', { n: 7, made: MADE }), /id.*MariaDB assigns it; write id: generated/);
  });

  test('are refused where a value does not fit, also among many that do', async () => {
    const row = (n: number) => insert('t', { ...ID, n, made: MADE });
    const many = (...list: readonly number[]) =>
      prepare(list.map((n, at) => ({ ...row(n), key: { id: { generated: `row ${at}` } } })));
    for (const [list, wrong] of [
      [[1, 2, 256, 4], 2],
      [[256, 2], 0],
      [[1, 300], 1],
    ] as const)
      await assert.rejects(many(...list), {
        code: 'ERR_EM_MANIFEST_INVALID',
        message: new RegExp(`^effects\\[${wrong}\\].*the column does not take it: Out of range`),
      });
    await refused(update('t', { id: 1 }, { mark: true }), /varchar\(9\).* does not take such/);
  });

  test('write registered tables only, and depend on these and readable ones', async () => {
    await prepare([], { watch: [read('seen', { id: 1 })] });
    for (const target of ['seen', 'other'])
      await refused(
        insert(target, { id: 1 }),
        new RegExp(`^effects.*"${target}" is not registered(?!;)`),
      );
    await assert.rejects(prepare([], { watch: [read('other', { id: 1 })] }), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message: /"other" cannot be read; name it in relations or reads/,
    });
  });
});

test('MariaDB: a connection that is lost while it casts does not refuse the value', async () => {
  const column: MysqlColumn = {
    ...{ isNullable: false, defaultText: null, isAssigned: false },
    ...{ name: 'n', kind: 'integer' as const, definition: 'int' },
  };
  const relation = { target: 't', key: ['n'], columns: [column], computed: [], text: '' };
  const target = { name: 't', columns: ['n'], key: ['n'], volatile: [] };
  const session = {
    query: async (sql: string) => {
      if (sql.startsWith('insert')) throw new MysqlFailure(new Error('the line was cut'));
      return [];
    },
  } as unknown as MysqlConnection;
  const tools: SchemaTools = {
    registration: { profile: 'net-state', values: 'plain', targets: [target] },
    relations: new Map([['t', relation]]),
    controlDatabase: 'effectmatch',
    withSession: (use) => use(session),
  };
  const needless = { ...tools, withSession: () => Promise.reject(new Error('not needed')) };
  assert.deepEqual(await normaliseKeys(needless, []), []);
  const casting = normaliseKeys(tools, [{ target: 't', key: { n: 1 } }]);
  await assert.rejects(casting, /^Error: the line was cut$/);
});
