// Goal: whoever changes the store with plain SQL is found out: at the row when it is read, or by
// `verify`. Method: one filled store is copied per case and changed by raw SQL, with recomputed row
// digests where they can be.
import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { JournalVerdict, Ledgers } from '../../src/contract/ledgers.ts';
import type { Sealed } from '../../src/contract/seal.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
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
import { temporaryFolder } from './sqlite-store.ts';

const context = fixtureContext();
const ROWS = 15;
const CHECKPOINTED = 11;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let original = '';
/** The whole store as it was after its first checkpoint. */
let older = '';
let copies = 0;
let exported: Sealed<Checkpoint>;
const claims = new Map<string, ClaimRecord>();
const claimed = (name: string): ClaimRecord => claims.get(name) ?? assert.fail(`no claim ${name}`);

/**
 * Every kind of row, a checkpoint in the middle of the journal and one after row 11; rows 12 to 15
 * are its tail.
 */
before(async () => {
  folder = await temporaryFolder();
  original = join(folder.path, 'original.db');
  const ledgers = await sqliteLedgers(original).open(context);
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
  older = join(folder.path, 'older.db');
  const reader = new DatabaseSync(original, { readOnly: true });
  reader.prepare('vacuum into ?').run(older);
  reader.close(); // The last connection that closes folds the log into the file, which is then copied.
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
  assert.deepEqual(await ledgers.verify(exported), {
    kind: 'intact',
    rows: ROWS,
    checkpointed: CHECKPOINTED,
  });
  await ledgers.close();
});
after(() => folder.remove());

/** A copy of the store, changed, with nothing of SQLite in the way, and opened again. */
async function changed(
  change: (db: DatabaseSync) => unknown,
): Promise<AsyncDisposable & { readonly ledgers: Ledgers }> {
  copies += 1;
  const file = join(folder.path, `copy-${copies}.db`);
  await copyFile(original, file);
  const db = new DatabaseSync(file, { enableForeignKeyConstraints: false });
  db.exec('pragma ignore_check_constraints = on');
  try {
    change(db);
  } finally {
    db.close();
  }
  const ledgers = await sqliteLedgers(file).open(context);
  return { ledgers, [Symbol.asyncDispose]: () => ledgers.close() };
}

async function verdictAfter(sql: string, checkpoint?: Sealed<Checkpoint>): Promise<JournalVerdict> {
  await using store = await changed((db) => db.exec(sql));
  return await store.ledgers.verify(checkpoint);
}

interface Stored {
  readonly seq: number;
  readonly kind: string;
  readonly slot: string;
  readonly seal_key: string;
  readonly seal_mac: string;
}

/**
 * What only someone with the key could do after changing rows; the other defences must hold all the
 * same.
 */
function redigest(db: DatabaseSync): void {
  for (const row of db
    .prepare('select seq, kind, slot, seal_key, seal_mac from journal')
    .all() as unknown as Stored[]) {
    const place = `${row.seq}\n${row.kind}\n${row.slot}\n${row.seal_mac}`;
    const digest = context.sealer.mac(row.seal_key, 'effectmatch/journal-row/v1', place);
    db.prepare('update journal set digest = ? where seq = ?').run(digest, row.seq);
  }
}

test('without a key nobody removes a row and closes the gap, not even with all checkpoints removed', async () => {
  for (let gone = 1; gone < ROWS; gone += 1) {
    await using store = await changed((db) => {
      db.exec('pragma foreign_keys = off; delete from checkpoint');
      db.prepare('delete from journal where seq = ?').run(gone);
      for (let seq = gone + 1; seq <= ROWS; seq += 1) {
        db.prepare('update journal set seq = ? where seq = ?').run(seq - 1, seq);
        db.prepare('update unsettled set claim = ? where claim = ?').run(seq - 1, seq);
      }
      db.prepare('update unsettled set positions = ? where claim = 0').run(ROWS - 1);
    });
    assert.equal((await store.ledgers.verify()).kind, 'tampered', `row ${gone} removed`);
  }
});

describe('journal rows', () => {
  for (let seq = 1; seq <= ROWS; seq += 1) {
    test(`row ${seq}: each column, its removal and its repetition are found`, async () => {
      const changes = [
        `update journal set text = replace(text, '"version":1', '"version": 1') where seq = ${seq}`,
        `update journal set text = replace(text, 'books', 'cooks') || ' ' where seq = ${seq}`,
        `update journal set seal_mac = '${'0'.repeat(64)}' where seq = ${seq}`,
        `update journal set seal_key = 'other' where seq = ${seq}`,
        `update journal set kind = case kind when 'claim' then 'terminal' else 'claim' end where seq = ${seq}`,
        `update journal set slot = slot || 'x' where seq = ${seq}`,
        `update journal set occurrence = 'occ_${'0'.repeat(40)}' where seq = ${seq}`,
        `update journal set digest = '${'0'.repeat(64)}' where seq = ${seq}`,
        `update journal set seq = 1000 where seq = ${seq}`,
        `delete from journal where seq = ${seq}`,
        `insert into journal (kind, occurrence, slot, text, seal_key, seal_mac, digest, issuance)
         select kind, occurrence, slot || 'x', text, seal_key, seal_mac, digest, issuance from journal where seq = ${seq}`,
        `update journal set issuance = case when issuance is null then 1 end where seq = ${seq}`,
        `update journal set issuance = coalesce(issuance, 0) + 1 where seq = ${seq}`,
      ];
      for (const sql of changes) assert.equal((await verdictAfter(sql)).kind, 'tampered', sql);
    });
  }

  for (let seq = CHECKPOINTED + 1; seq <= ROWS; seq += 1) {
    test(`row ${seq}, not yet checkpointed: index columns that were changed with a recomputed digest are found`, async () => {
      for (const sql of [
        `update journal set slot = slot || 'x' where seq = ${seq}`,
        `update journal set occurrence = 'occ_${'0'.repeat(40)}' where seq = ${seq}`,
        `update journal set kind = case kind when 'claim' then 'terminal' else 'claim' end where seq = ${seq}`,
      ]) {
        await using store = await changed((db) => {
          db.exec(sql);
          redigest(db);
        });
        assert.equal((await store.ledgers.verify()).kind, 'tampered', sql);
      }
    });
  }

  test('a row that nothing depends on, dropped from the tail, leaves a gap that is found', async () => {
    assert.deepEqual(await verdictAfter('delete from journal where seq = 14'), {
      kind: 'tampered',
      seq: 14,
      what: 'the row is missing',
    });
  });

  test('two rows that change places are found, also when their digests are recomputed', async () => {
    for (const [one, two] of [
      [3, 4],
      [6, 7],
      [2, 9],
    ]) {
      const swap = (db: DatabaseSync): void => {
        db.exec(`update journal set seq = -1 where seq = ${one}; update journal set seq = ${one} where seq = ${two};
                 update journal set seq = ${two} where seq = -1`);
      };
      await using plain = await changed(swap);
      assert.equal((await plain.ledgers.verify()).kind, 'tampered');
      await using informed = await changed((db) => {
        swap(db);
        redigest(db);
      });
      const verdict = await informed.ledgers.verify();
      assert.ok(verdict.kind === 'tampered', `${one} and ${two}`);
      assert.ok(verdict.seq <= CHECKPOINTED);
    }
  });

  test('a row that is dropped while the rows behind it move up is found by the chain', async () => {
    await using store = await changed((db) => {
      db.exec('delete from journal where seq = 3');
      for (let seq = 4; seq <= ROWS; seq += 1)
        db.exec(`update journal set seq = ${seq - 1} where seq = ${seq}`);
      db.exec('update unsettled set claim = claim - 1 where claim > 3');
      db.exec(`update unsettled set positions = ${ROWS - 1} where claim = 0`);
      redigest(db);
    });
    const verdict = await store.ledgers.verify();
    assert.ok(verdict.kind === 'tampered');
    assert.match(verdict.what, /checkpoint/);
  });

  test('a row of this deployment that never stood there is found, although its seal is genuine', async () => {
    const genuine = fixtureReplay(context, claimed('a'), 'another replay');
    await using store = await changed((db) => {
      db.prepare('update journal set text = ?, slot = ?, seal_mac = ? where seq = 3').run(
        genuine.text,
        `terminal:${genuine.record.execution}`,
        genuine.seal.mac,
      );
      redigest(db);
    });
    const verdict = await store.ledgers.verify();
    assert.ok(verdict.kind === 'tampered');
    assert.match(verdict.what, /checkpoint/);
  });

  test('a cut tail is found while the counter remembers it, and always against an exported checkpoint', async () => {
    const rewind = (to: number): string => `delete from journal where seq > ${to};
      delete from unsettled where claim > ${to};
      delete from issuance where id not in (select issuance from journal where issuance is not null);
      insert or ignore into unsettled select seq, text ->> 'execution', 0, null from journal as claimed
        where kind = 'claim' and not exists (select 1 from journal where journal.occurrence = claimed.occurrence
          and slot glob '*:' || (claimed.text ->> 'execution') and text not like '%indeterminate%');
      delete from checkpoint where through_seq > ${to}`;
    const forget = (to: number): string => `update unsettled set positions = ${to} where claim = 0`;
    for (const to of [11, 10, 5, 4]) {
      assert.equal((await verdictAfter(rewind(to))).kind, 'tampered', `cut after ${to}`);
      const unnoticed = await verdictAfter(`${rewind(to)}; ${forget(to)}`);
      assert.equal(unnoticed.kind, 'intact', `the stated limit: ${JSON.stringify(unnoticed)}`);
      const noticed = await verdictAfter(`${rewind(to)}; ${forget(to)}`, exported);
      assert.equal(
        noticed.kind,
        to < CHECKPOINTED ? 'tampered' : 'intact',
        `exported, cut after ${to}`,
      );
    }
  });
});

test('an older copy of the whole store is found only against a checkpoint that was exported later', async () => {
  const ledgers = await sqliteLedgers(older).open(context);
  assert.equal((await ledgers.verify()).kind, 'intact', 'the stated limit');
  assert.deepEqual(await ledgers.verify(exported), {
    ...{ kind: 'tampered', seq: 5, what: 'the end of the journal is missing' },
  });
  await ledgers.close();
});

test('the stated limit: announced plan revisions and leases are not sealed, so a changed one is not found', async () => {
  await using store = await changed((db) => {
    db.exec(`insert into plan values ('some task', 3); update plan set revision = 1;
      update unsettled set lease_until_ms = lease_until_ms + 1000 where claim <> 0`);
  });
  assert.equal((await store.ledgers.verify(exported)).kind, 'intact');
});

describe('other tables', () => {
  const cases: Readonly<Record<string, string>> = {
    'an unsettled claim is removed from the list': 'delete from unsettled where claim = 11',
    'an unsettled claim is given to another execution': `update unsettled set execution = 'exe_${'0'.repeat(32)}' where claim = 11`,
    'an entry is moved to another row': 'update unsettled set claim = 9 where claim = 11',
    'a settled claim is listed as unsettled': `insert into unsettled
      select seq, text ->> 'execution', 0, null from journal where seq = 8`,
    'an unsettled claim that never was is listed': `insert into unsettled values (9, 'exe_${'0'.repeat(32)}', 0, null)`,
    'one beyond the end is listed': `insert into unsettled values (99, 'exe_${'0'.repeat(32)}', 0, null)`,
    'the count of positions is removed': 'delete from unsettled where claim = 0',
    'the count of positions is lowered': 'update unsettled set positions = 14 where claim = 0',
    'the count of positions is raised': 'update unsettled set positions = 16 where claim = 0',
    'a claim is moved to another issuance': 'update journal set issuance = 1 where seq = 8',
    'an issuance counts a claim more': 'update issuance set claimed = 2 where id = 2',
    'an issuance counts a claim less': 'update issuance set claimed = 0 where id = 2',
    'one issuance counts the claim of another':
      'update issuance set claimed = case id when 1 then 2 else 0 end where id < 3',
    'an issuance is removed': 'delete from issuance where id = 2',
    'a license is altered': `update issuance set license = replace(license, 'books', 'cooks') where id = 2`,
    'a license is exchanged':
      'update issuance set license = (select license from issuance where id = 1) where id = 2',
    'a kept outcome is altered': `update issuance set approved = approved || ' ' where id = 2`,
    'a kept outcome is exchanged with its seal': `update issuance set approved = other.approved,
      seal_key = other.seal_key, mac = other.mac from issuance as other where issuance.id = 2 and other.id = 1`,
    'a binding is altered': `update issuance set binding = replace(binding, 'ap-team', 'xp-team') where id = 2`,
    'a binding is exchanged': `update issuance set binding = (select binding from issuance where id = 1) where id = 2`,
    'a binding is exchanged with its outcome and seal': `update issuance set binding = other.binding,
      approved = other.approved, mac = other.mac from issuance as other where issuance.id = 2 and other.id = 1`,
    'an issuance nobody claimed under is inserted': `insert into issuance
      select 99, 'x', nonce, 1, license, approved, binding, seal_key, mac from issuance where id = 1`,
    'one that counts nothing is inserted': `insert into issuance
      select 99, 'x', nonce, 0, license, approved, binding, seal_key, mac from issuance where id = 1`,
    'a checkpoint is altered': `update checkpoint set text = replace(text, '"rows":4', '"rows":3') where through_seq = 4`,
    'a checkpoint is moved': 'update checkpoint set through_seq = 5 where through_seq = 4',
    'a checkpoint is exchanged with its seal': `update checkpoint set text = other.text, seal_mac = other.seal_mac
      from checkpoint as other where checkpoint.through_seq = 4 and other.through_seq = ${CHECKPOINTED}`,
    'a document is altered': `update document set text = '{"outlets":["x"]}'`,
    'a document is kept under another digest': `update document set digest = '${'0'.repeat(64)}'`,
  };
  for (const [name, sql] of Object.entries(cases)) {
    test(`${name}: found`, async () => {
      assert.equal((await verdictAfter(sql)).kind, 'tampered');
    });
  }

  test('a schema that is changed while the store is open is found', async () => {
    await using store = await changed(() => {});
    const file = join(folder.path, `copy-${copies}.db`);
    const db = new DatabaseSync(file);
    db.exec('create trigger meddle after insert on journal begin select 1; end');
    db.close();
    const verdict = await store.ledgers.verify();
    assert.ok(verdict.kind === 'tampered');
    assert.match(verdict.what, /schema.*meddle/);
  });

  test('property: no value can be changed in any row of any sealed table without being found', async () => {
    const free = new Set(['lease_until_ms']);
    const cells: { table: string; column: string; row: number; text: boolean }[] = [];
    const db = new DatabaseSync(original);
    for (const table of ['issuance', 'journal', 'unsettled', 'checkpoint', 'document']) {
      const rows = db.prepare(`select * from ${table} order by rowid`).all();
      for (const [row, values] of rows.entries()) {
        for (const [column, value] of Object.entries(values)) {
          if (!free.has(column) && value !== null)
            cells.push({ table, column, row, text: typeof value === 'string' });
        }
      }
    }
    db.close();
    assert.ok(cells.length > 100);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...cells),
        fc.nat(),
        fc.constantFrom('0', 'z', '9'),
        async (cell, at, letter) => {
          let differs = true;
          await using store = await changed((copy) => {
            const found = copy
              .prepare(
                `select rowid as id, ${cell.column} as value from ${cell.table} order by rowid`,
              )
              .all()[cell.row];
            const value = found?.value ?? assert.fail('no such row');
            const other =
              typeof value === 'string'
                ? replaceAt(value, at, letter)
                : Number(value) + 1 + (at % 50);
            differs = other !== value;
            try {
              copy
                .prepare(`update ${cell.table} set ${cell.column} = ? where rowid = ?`)
                .run(other, found?.id ?? null);
            } catch {
              differs = false;
            }
          });
          assert.equal(
            (await store.ledgers.verify()).kind,
            differs ? 'tampered' : 'intact',
            JSON.stringify(cell),
          );
        },
      ),
      { numRuns: 150 },
    );
  });
});

function replaceAt(text: string, at: number, letter: string): string {
  const index = at % text.length;
  return `${text.slice(0, index)}${letter}${text.slice(index + 1)}`;
}

describe('what is read is checked when it is read', () => {
  const codes = ['ERR_EM_JOURNAL_TAMPERED', 'ERR_EM_SEAL_INVALID'];
  const fails = async (promise: Promise<unknown>): Promise<void> => {
    await assert.rejects(
      promise,
      (error) => error instanceof EffectMatchError && codes.includes(error.code),
    );
  };
  const alter = (table: string, where: string, column = 'text'): ((db: DatabaseSync) => void) => {
    return (db) =>
      db.exec(`update ${table} set ${column} = replace(${column}, '0', '1') where ${where}`);
  };

  test('a claim, permit, terminal or acknowledgement that was altered is never returned', async () => {
    const { occurrence } = claimed('a');
    const reads: readonly [number, (ledgers: Ledgers) => Promise<unknown>][] = [
      [1, (ledgers) => ledgers.holder(occurrence)],
      [1, (ledgers) => ledgers.terminal(occurrence)],
      [2, (ledgers) => ledgers.permit(occurrence)],
      [4, (ledgers) => ledgers.attempts(occurrence)],
      [5, (ledgers) => ledgers.terminal(occurrence)],
      [6, (ledgers) => ledgers.acknowledgements(occurrence)],
      [7, (ledgers) => ledgers.journal()],
      [11, (ledgers) => ledgers.unsettled()],
      [12, (ledgers) => ledgers.checkpoint()],
    ];
    for (const [seq, read] of reads) {
      await using store = await changed(alter('journal', `seq = ${seq}`));
      await fails(read(store.ledgers));
    }
  });

  test('a license, binding or kept outcome that was altered is never returned', async () => {
    for (const column of ['license', 'approved', 'binding', 'mac']) {
      await using store = await changed(alter('issuance', 'true', column));
      await fails(store.ledgers.holder(claimed('a').occurrence));
    }
  });

  test('a document that was altered is never returned', async () => {
    await using store = await changed((db) => db.exec(`update document set text = '{}'`));
    await fails(store.ledgers.document(fixtureDigest('document')));
  });

  test('a checkpoint that was altered is never built upon', async () => {
    await using store = await changed(alter('checkpoint', 'true'));
    await fails(store.ledgers.checkpoint());
  });

  test('a row missing from the tail is never covered by a checkpoint', async () => {
    for (const seq of [12, 15]) {
      await using store = await changed((db) => db.exec(`delete from journal where seq = ${seq}`));
      await fails(store.ledgers.checkpoint());
    }
  });
});

describe('a spent occurrence stays spent', () => {
  const again = (name: string) =>
    fixtureRequest(context, fixtureLicense(name), fixtureExecution('again'));

  test('whatever is removed of it, it is not claimed again', async () => {
    const removals: readonly [string, string][] = [
      ['a', 'delete from journal where seq = 1'],
      ['a', 'delete from issuance where id = 1'],
      ['a', 'delete from journal where seq = 1; delete from issuance where id = 1'],
      ['d', 'delete from journal where seq = 12; delete from issuance where id = 4'],
      ['e', 'delete from journal where seq = 15'],
      ['e', 'delete from issuance where id = 5'],
    ];
    for (const [name, sql] of removals) {
      await using store = await changed((db) => db.exec(sql));
      await assert.rejects(
        store.ledgers.claim(again(name)),
        { code: 'ERR_EM_JOURNAL_TAMPERED' },
        sql,
      );
    }
    await using store = await changed((db) => db.exec('delete from unsettled where claim = 15'));
    const result = await store.ledgers.claim(again('e'));
    assert.ok(result.kind === 'refused' && result.reason === 'spent');
  });

  test('the second of two occurrences is not claimed while the first is missing, nor twice', async () => {
    const license = fixtureLicense('two', { occurrences: 2 });
    const claim = (ledgers: Ledgers, by: string) =>
      ledgers.claim(fixtureRequest(context, license, fixtureExecution(by)));
    for (const sql of [
      'delete from journal where seq = 16',
      'delete from journal where seq = 16; update issuance set claimed = 2 where id = 6',
      'update issuance set claimed = 0 where id = 6',
    ]) {
      await using store = await changed(() => {});
      assert.equal((await claim(store.ledgers, 'one')).kind, 'claimed');
      const db = new DatabaseSync(join(folder.path, `copy-${copies}.db`));
      db.exec(`pragma ignore_check_constraints = on; ${sql}`);
      db.close();
      await assert.rejects(claim(store.ledgers, 'two'), { code: 'ERR_EM_JOURNAL_TAMPERED' }, sql);
    }
  });

  test('a committed verdict that is moved to another claim is refused when it is read', async () => {
    await using store = await changed((db) => {
      db.exec('delete from journal where seq = 13');
      const forged = fixtureTerminal(
        context,
        { ...claimed('d'), approved: fixtureDigest('other') },
        'committed',
      );
      db.prepare('insert into journal values (13, ?, ?, ?, ?, ?, ?, ?, null)').run(
        'terminal',
        forged.record.occurrence,
        `terminal:${forged.record.execution}`,
        forged.text,
        forged.seal.key,
        forged.seal.mac,
        '',
      );
      redigest(db);
    });
    await assert.rejects(store.ledgers.terminal(claimed('d').occurrence), {
      code: 'ERR_EM_JOURNAL_TAMPERED',
    });
    assert.equal((await store.ledgers.verify()).kind, 'tampered');
  });
});
