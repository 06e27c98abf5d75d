// Goal: whoever changes the ledger's tables as an administrator is found out: at the row when it is
// read, or by `verify`. Method: one filled store is changed by SQL as superuser, looked at, and put
// back, once per case.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { JournalVerdict, Ledgers } from '../../src/contract/ledgers.ts';
import type { Sealed } from '../../src/contract/seal.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { quoteName } from '../../src/postgres/identifier.ts';
import type { ClaimRecord } from '../../src/protocol/binding.ts';
import type { Checkpoint } from '../../src/protocol/checkpoint.ts';
import {
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixtureLicense,
  fixturePermit,
  fixtureReplay,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { createStore, ledgerDatabase } from './postgres-store.ts';

const context = fixtureContext();
const ROWS = 15;
const CHECKPOINTED = 11;
const TABLES = ['head', 'issuance', 'journal', 'archive', 'unsettled', 'checkpoint', 'document'];
const EVIDENCE = ['ERR_EM_JOURNAL_TAMPERED', 'ERR_EM_SEAL_INVALID'];

let store: Awaited<ReturnType<typeof createStore>>;
let ledgers: Ledgers;
let exported: Sealed<Checkpoint>;
const claims = new Map<string, ClaimRecord>();
const claimed = (name: string): ClaimRecord => claims.get(name) ?? assert.fail(`no claim ${name}`);

/** Runs as superuser with the ledger's tables in sight. */
async function meddle(sql: string) {
  const db = await ledgerDatabase();
  return await db.run(`set search_path = ${quoteName(store.schema)}, pg_catalog; ${sql}`);
}

/** Every kind of row, a checkpoint in the middle and one after row 11, the first rows archived. */
before(async () => {
  store = await createStore();
  ledgers = await store.open(context);
  const claim = async (name: string): Promise<ClaimRecord> => {
    const { record } = await claimFixture(ledgers, context, name, { leaseMs: 0 });
    claims.set(name, record);
    return record;
  };
  const a = await claim('a');
  await ledgers.consumePermit(fixturePermit(context, a));
  await ledgers.record(fixtureReplay(context, a, 'replay'), 'flushed');
  await ledgers.record(fixtureTerminal(context, a, 'indeterminate'), 'flushed');
  await ledgers.checkpoint();
  await ledgers.record(fixtureTerminal(context, a, 'committed'), 'flushed');
  await ledgers.acknowledge(fixtureAcknowledgement(context, a));
  await ledgers.acknowledge(fixtureAcknowledgement(context, a, { state: 'completed' }));
  const b = await claim('b');
  await ledgers.voidPermit(b.occurrence, b.execution);
  await ledgers.record(fixtureTerminal(context, b, 'rejected'), 'flushed');
  await claim('c');
  exported = (await ledgers.checkpoint()) ?? assert.fail('no checkpoint');
  await ledgers.keep(fixtureDigest('document'), '{"outlets":[]}');
  const d = await claim('d');
  await ledgers.record(fixtureTerminal(context, d, 'diverged'), 'flushed');
  await ledgers.record(fixtureReplay(context, d, 'replay in the tail'), 'flushed');
  await claim('e');
  await meddle(`with moved as (delete from journal where seq < 4 returning *) insert into archive select * from moved;
    create schema kept; ${TABLES.map((name) => `create table kept.${name} as table ${name}`).join(';')}`);
  const intact = { kind: 'intact', rows: ROWS, checkpointed: CHECKPOINTED };
  assert.deepEqual(await ledgers.verify(exported), intact);
});
after(async () => {
  await ledgers.close();
  await (await ledgerDatabase()).drop();
});

const CLAIM = "(issuance is not null) = (kind = 'claim')";
const CHECKS = [
  ['issuance', 'issuance_claimed', 'claimed > 0'],
  ['journal', 'journal_claim', CLAIM],
  ['archive', 'archive_claim', CLAIM],
] as const;

/** Changes the store, looks, and puts back what was there. */
async function afterChange<T>(sql: string, look: () => Promise<T>): Promise<T> {
  try {
    const drop = CHECKS.map(([table, name]) => `alter table ${table} drop constraint ${name}`);
    const add = CHECKS.map(
      ([table, name, rule]) =>
        `alter table ${table} add constraint ${name} check (${rule}) not valid`,
    );
    await meddle([...drop, sql, ...add].join(';'));
    return await look();
  } finally {
    const back = TABLES.map((name) => `insert into ${name} select * from kept.${name}`);
    await meddle(`truncate ${TABLES.join()}; ${back.join(';')}`);
  }
}

/** The code of the error that something fails with after a change. */
async function codeAfter(sql: string, look: () => Promise<unknown>): Promise<unknown> {
  const failure = await afterChange(sql, () => look().then(String, (error: unknown) => error));
  return failure instanceof EffectMatchError ? failure.code : failure;
}

const verdictAfter = (sql: string, checkpoint?: Sealed<Checkpoint>): Promise<JournalVerdict> =>
  afterChange(sql, () => ledgers.verify(checkpoint));

for (const [what, table] of [
  ['row that decisions take turns by', 'turn'],
  ['count of positions', 'head'],
] as const)
  test(`without the ${what} nothing is decided`, async () => {
    await meddle(`create table kept.gone as select * from ${table}; delete from ${table}`);
    try {
      const claim = claimFixture(ledgers, context, crypto.randomUUID());
      await assert.rejects(claim, (error) => error instanceof EffectMatchError);
    } finally {
      await meddle(`insert into ${table} select * from kept.gone; drop table kept.gone`);
    }
    assert.equal((await ledgers.verify()).kind, 'intact');
  });

describe('what verify finds', () => {
  const cases: Readonly<Record<string, string>> = {
    'a row is removed': 'delete from journal where seq = 7',
    'an archived row is removed': 'delete from archive where seq = 2',
    'the last row is removed': 'delete from journal where seq = 15',
    'two rows change places':
      'update journal set seq = 99 where seq = 7; update journal set seq = 7 where seq = 8; update journal set seq = 8 where seq = 99',
    'a row is copied to the end': `insert into journal
      select 16, kind, occurrence, slot || 'x', text, seal_key, seal_mac, digest, issuance from journal where seq = 7;
      update head set positions = 16`,
    'a text is altered': `update journal set text = replace(text, '0', '1') where seq = 5`,
    'an unsettled claim is removed from the list': 'delete from unsettled where claim = 11',
    'an unsettled claim is given to another execution': `update unsettled set execution = 'exe_${'0'.repeat(32)}' where claim = 11`,
    'a settled claim is listed as unsettled': `insert into unsettled
      select seq, text::jsonb ->> 'execution', 0 from journal where seq = 8`,
    'an unsettled claim that never was is listed': `insert into unsettled values (9, 'exe_${'0'.repeat(32)}', 0)`,
    'one beyond the end is listed': `insert into unsettled values (99, 'exe_${'0'.repeat(32)}', 0)`,
    'the count of positions is lowered': 'update head set positions = 14',
    'the count of positions is raised': 'update head set positions = 16',
    'a claim is moved to another issuance': 'update journal set issuance = 1 where seq = 8',
    'an issuance counts a claim more': 'update issuance set claimed = 2 where id = 8',
    'an issuance counts a claim less': 'update issuance set claimed = 0 where id = 8',
    'one issuance counts the claim of another':
      'update issuance set claimed = case id when 1 then 2 else 0 end where id < 9',
    'an issuance is removed': 'delete from issuance where id = 8',
    'a license is altered': `update issuance set license = replace(license, 'books', 'cooks') where id = 8`,
    'a kept outcome is altered': `update issuance set approved = approved || ' ' where id = 8`,
    'a binding is exchanged with its outcome and seal': `update issuance set binding = other.binding,
      approved = other.approved, mac = other.mac from issuance as other where issuance.id = 8 and other.id = 1`,
    'an issuance nobody claimed under is inserted': `insert into issuance
      select 99, 'x', nonce, 1, license, approved, binding, seal_key, mac from issuance where id = 1`,
    'a checkpoint is altered': `update checkpoint set text = replace(text, '"rows":4', '"rows":3') where through_seq = 4`,
    'a checkpoint is moved': 'update checkpoint set through_seq = 5 where through_seq = 4',
    'a document is altered': `update document set text = '{"outlets":["x"]}'`,
  };
  for (const [name, sql] of Object.entries(cases)) {
    test(`${name}: found`, async () => {
      assert.equal((await verdictAfter(sql)).kind, 'tampered');
    });
  }

  const structures: Readonly<Record<string, readonly [change: string, back: string]>> = {
    trigger: [
      `create function meddle() returns trigger language plpgsql as 'begin return null; end';
       create trigger meddle before insert on journal for each row execute function meddle()`,
      'drop function meddle() cascade',
    ],
    rule: [
      'create rule meddle as on insert to journal do instead nothing',
      'drop rule meddle on journal',
    ],
    function: ['alter function decide security definer', 'alter function decide security invoker'],
    policy: ['create policy meddle on journal', 'drop policy meddle on journal'],
    view: ['create view meddle as select 1', 'drop view meddle'],
    columns: [
      'alter table journal add column meddle text',
      'alter table journal drop column meddle',
    ],
    constraint: [
      'alter table head drop constraint head_single',
      'alter table head add constraint head_single check (id)',
    ],
    'unique key': [
      'alter table journal drop constraint journal_slot',
      'alter table journal add constraint journal_slot unique (occurrence, slot)',
    ],
  };
  for (const [what, [change, back]] of Object.entries(structures)) {
    test(`a changed ${what} is found while the store is open, and keeps it from being opened`, async () => {
      await meddle(change);
      try {
        const verdict = await ledgers.verify();
        assert.ok(verdict.kind === 'tampered');
        assert.match(verdict.what, /the schema was changed/);
        await assert.rejects(store.open(context), { code: 'ERR_EM_STORE_UNAVAILABLE' });
      } finally {
        await meddle(back);
      }
      assert.equal((await ledgers.verify()).kind, 'intact');
    });
  }

  test('a cut tail is found while the head remembers it, and always against an exported checkpoint', async () => {
    const cut = (to: number) => `delete from journal where seq > ${to};
      delete from unsettled where claim > ${to}; delete from issuance where id > ${to};
      delete from checkpoint where through_seq > ${to};`;
    const forgotten = `${cut(7)} update head set positions = 7`;
    assert.equal((await verdictAfter(cut(7))).kind, 'tampered');
    assert.equal((await verdictAfter(forgotten)).kind, 'intact', 'the stated limit');
    assert.equal((await verdictAfter(forgotten, exported)).kind, 'tampered');
  });

  test('property: no value can be changed in any row of any sealed table without being found', async () => {
    const db = await ledgerDatabase();
    const cells: { table: string; column: string; key: string; value: string | number }[] = [];
    for (const table of TABLES) {
      const rows = await db.run(`select ctid::text as key, * from kept.${table}`);
      for (const { key, ...values } of rows)
        for (const [column, value] of Object.entries(values))
          if (!['lease_until_ms', 'version'].includes(column) && value !== null)
            if (typeof value !== 'boolean')
              cells.push({ table, column, key: String(key), value: value as string });
    }
    assert.ok(cells.length > 100);
    const alter = fc.tuple(fc.constantFrom(...cells), fc.nat(), fc.constantFrom('0', 'z', '9'));
    await fc.assert(
      fc.asyncProperty(alter, async ([{ table, column, key, value }, at, letter]) => {
        const isNumber = /^(?:seq|id|claimed|positions|claim|through_seq|issuance)$/.test(column);
        const index = at % String(value).length;
        const altered = `${String(value).slice(0, index)}${letter}${String(value).slice(index + 1)}`;
        const other = isNumber ? String(Number(value) + 1 + (at % 50)) : altered;
        const literal = `'${other.replaceAll("'", "''")}'`;
        const change = `create temp table was as select * from kept.${table} where ctid = '${key}';
          update ${table} as t set ${column} = ${literal} from was where t::text = was::text`;
        const verdict = await verdictAfter(change).catch((error: { code?: string }) => {
          if (error.code === '23505') return undefined;
          throw error;
        });
        if (verdict !== undefined)
          assert.equal(verdict.kind, other === String(value) ? 'intact' : 'tampered', change);
      }),
      { numRuns: 60 },
    );
  });
});

test('an index that lacks a row of its table is found, whichever it is', async () => {
  const lacking = (index: string, insert: string) => `
    update pg_index set indisready = false where indexrelid = '${index}'::regclass;
    ${insert}; update pg_index set indisready = true where indexrelid = '${index}'::regclass`;
  const values = `99, 'shadow', 'occ_x', 'shadow', '', '', '', ''`;
  for (const [index, insert] of [
    ['journal_slot', `insert into journal values (${values})`],
    ['journal_pkey', `insert into journal values (${values})`],
    ['issuance_nonce', `insert into issuance values (99, 'i', 'n', 1, '', '', '', '', '')`],
    ['unsettled_pkey', `insert into unsettled values (99, 'exe', 0)`],
  ] as const) {
    const verdict = await verdictAfter(lacking(index, insert));
    const what = `the index ${index} does not have the rows of its table`;
    assert.deepEqual(verdict, { kind: 'tampered', seq: 0, what });
  }
});

test('what was altered is never returned, and nothing is built upon it', async () => {
  const { occurrence } = claimed('a');
  const alter = (table: string, where: string, column = 'text') =>
    `update ${table} set ${column} = replace(${column}, '0', '1') where ${where}`;
  const looks: readonly [sql: string, look: () => Promise<unknown>][] = [
    [alter('archive', 'seq = 1'), () => ledgers.holder(occurrence)],
    [alter('archive', 'seq = 2'), () => ledgers.permit(occurrence)],
    [alter('journal', 'seq = 4'), () => ledgers.attempts(occurrence)],
    [alter('journal', 'seq = 5'), () => ledgers.terminal(occurrence)],
    [alter('journal', 'seq = 6'), () => ledgers.acknowledgements(occurrence)],
    [alter('journal', 'seq = 7'), () => ledgers.journal()],
    [alter('journal', 'seq = 11'), () => ledgers.unsettled()],
    [alter('journal', 'seq = 12'), () => ledgers.checkpoint()],
    [alter('checkpoint', 'true'), () => ledgers.checkpoint()],
    ['delete from journal where seq = 15', () => ledgers.checkpoint()],
    [alter('issuance', 'true', 'license'), () => ledgers.holder(occurrence)],
    [alter('issuance', 'true', 'mac'), () => ledgers.holder(occurrence)],
    [`update document set text = '{}'`, () => ledgers.document(fixtureDigest('document'))],
  ];
  for (const [sql, look] of looks) {
    const code = String(await codeAfter(sql, look));
    assert.ok(EVIDENCE.includes(code), `${sql}: ${code}`);
  }
});

test('whatever is removed of a spent occurrence, archived or not, it is not claimed again', async () => {
  const again = (name: string) =>
    ledgers.claim(fixtureRequest(context, fixtureLicense(name), fixtureExecution('again')));
  for (const name of ['a', 'b', 'e']) {
    const result = await again(name);
    assert.ok(result.kind === 'refused' && result.reason === 'spent', name);
  }
  const removals: readonly [string, string][] = [
    ['a', 'delete from archive where seq = 1'],
    ['a', 'delete from issuance where id = 1'],
    ['a', 'delete from archive where seq = 1; delete from issuance where id = 1'],
    ['d', 'delete from journal where seq = 12; delete from issuance where id = 12'],
    ['e', 'delete from journal where seq = 15'],
    ['e', 'delete from issuance where id = 15'],
  ];
  for (const [name, sql] of removals) {
    assert.equal(await codeAfter(sql, () => again(name)), 'ERR_EM_JOURNAL_TAMPERED', sql);
  }
});

test('the login of the ledger appends, and changes or removes nothing that was recorded', async () => {
  const db = await ledgerDatabase();
  const login = quoteName(new URL(store.url).username);
  const schema = quoteName(store.schema);
  for (const sql of [
    `update ${schema}.journal set text = ''`,
    `delete from ${schema}.journal`,
    `truncate ${schema}.journal`,
    `insert into ${schema}.archive select * from ${schema}.journal`,
    `delete from ${schema}.issuance`,
    `update ${schema}.issuance set license = ''`,
    `update ${schema}.checkpoint set text = ''`,
    `update ${schema}.document set text = ''`,
    `delete from ${schema}.head`,
    `update ${schema}.head set version = 2`,
    `create table ${schema}.more ()`,
    `alter table ${schema}.journal disable trigger all`,
    `set role ${quoteName(`${store.schema}_owner`)}`,
  ]) {
    const attempt = db.run(`set session authorization ${login}; ${sql}`);
    await assert.rejects(attempt, { code: '42501' }, sql);
  }
});
