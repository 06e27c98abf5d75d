// Goal: a claim that this process wrote is taken as checked only while it is stored byte for byte as it was written.
// Method: rows made as the store makes them, changed in one place at a time; a store whose file somebody else changes.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ErrorCode } from '../../src/errors.ts';
import { CLAIM_SLOT, type JournalRow, openRow, rowDigest } from '../../src/ledger/journal.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import { OwnClaims } from '../../src/ledger/sqlite/own-claims.ts';
import {
  claimFixture,
  fixtureContext,
  fixtureExecution,
  fixtureLicense,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { temporaryFolder } from './sqlite-store.ts';

const context = fixtureContext();

function claimOf(name: string) {
  const request = fixtureRequest(context, fixtureLicense(name), fixtureExecution(name));
  return request.claim(request.binding.record.occurrences[0] ?? assert.fail());
}

function rowOf(name: string, seq: number): { row: JournalRow; sealed: ReturnType<typeof claimOf> } {
  const sealed = claimOf(name);
  const { text, seal, record } = sealed;
  const place = { seq, kind: 'claim' as const, slot: CLAIM_SLOT, text, sealKey: seal.key };
  const row = { ...place, occurrence: record.occurrence, sealMac: seal.mac, digest: rowDigest(context, place) };
  return { row, sealed };
}

test('property: what is recalled is what opening the row gives, and a row with anything changed is not recalled', () => {
  const columns = Object.keys(rowOf('a', 1).row) as (keyof JournalRow)[];
  const change = fc.record({
    column: fc.constantFrom(...columns),
    at: fc.nat(),
    letter: fc.constantFrom('0', 'z', ''),
  });
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1 }), fc.option(change), (name, seq, changed) => {
      const { row, sealed } = rowOf(name, seq);
      const own = new OwnClaims();
      assert.equal(own.recall(row), undefined);
      own.remember(row, sealed);
      const found = { ...row, ...(changed && { [changed.column]: alter(row[changed.column], changed) }) };
      const same = columns.every((column) => found[column] === row[column]);
      assert.deepEqual(own.recall(found), same ? openRow(context, row) : undefined);
    }),
  );
});

function alter(value: string | number, { at, letter }: { at: number; letter: string }): string | number {
  if (typeof value === 'number') return value + at;
  const index = at % value.length;
  return `${value.slice(0, index)}${letter}${value.slice(index + 1)}`;
}

test('a claim that could still be changed in memory is not remembered', () => {
  const { row, sealed } = rowOf('a', 1);
  const own = new OwnClaims();
  own.remember(row, { ...sealed });
  own.remember(row, Object.freeze({ ...sealed, record: { ...sealed.record } }));
  assert.equal(own.recall(row), undefined);
});

test('only so many are remembered, the oldest are given up first, and what has ended is forgotten', () => {
  const own = new OwnClaims();
  const rows = Array.from({ length: 300 }, (_, index) => rowOf(`claim ${index}`, index + 1));
  for (const { row, sealed } of rows) own.remember(row, sealed);
  assert.equal(own.size, 256);
  const known = rows.map(({ row }) => own.recall(row) !== undefined);
  assert.deepEqual([known.indexOf(true), known.lastIndexOf(false)], [44, 43]);
  const last = rows.at(-1) ?? assert.fail();
  own.forget(last.row.occurrence);
  assert.equal(own.recall(last.row), undefined);
  assert.equal(own.size, 255);
});

test('a verdict is refused when somebody has changed the claim in the file since, in whatever column', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  const ledgers = await sqliteLedgers(file).open(context);
  const changes: readonly [column: string, value: string, code: ErrorCode][] = [
    ['text', "replace(text, 'books', 'cooks')", 'ERR_EM_SEAL_INVALID'],
    ['kind', "'terminal'", 'ERR_EM_SEAL_INVALID'],
    ['seal_key', "'other'", 'ERR_EM_KEY_UNKNOWN'],
    ['seal_mac', `'${'0'.repeat(64)}'`, 'ERR_EM_SEAL_INVALID'],
    ['digest', `'${'0'.repeat(64)}'`, 'ERR_EM_JOURNAL_TAMPERED'],
    ['seq', '1000', 'ERR_EM_JOURNAL_TAMPERED'],
  ];
  for (const [column, value, code] of changes) {
    const claim = await claimFixture(ledgers, context, column);
    const other = new DatabaseSync(file);
    other.exec('pragma ignore_check_constraints = on');
    other
      .prepare(`update journal set ${column} = ${value} where occurrence = ? and slot = 'claim'`)
      .run(claim.record.occurrence);
    const terminal = fixtureTerminal(context, claim.record, 'committed');
    await assert.rejects(ledgers.record(terminal, 'relaxed'), { code }, column);
    other.prepare('delete from journal where occurrence = ?').run(claim.record.occurrence);
    await assert.rejects(ledgers.record(terminal, 'relaxed'), { code: 'ERR_EM_INVARIANT' }, `${column}, removed`);
    other.close();
  }
  await ledgers.close();
});
