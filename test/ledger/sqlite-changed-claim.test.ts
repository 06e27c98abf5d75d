// Goal: what a process remembers of its own claim never stands in for the claim in the file.
// Method: a store whose file somebody else changes, in one column at a time, between claim and
// verdict.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { ErrorCode } from '../../src/errors.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import {
  claimFixture,
  fixtureContext,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { temporaryFolder } from './sqlite-store.ts';

const context = fixtureContext();

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
    await assert.rejects(
      ledgers.record(terminal, 'relaxed'),
      { code: 'ERR_EM_CLAIM_LOST' },
      `${column}, removed`,
    );
    other.close();
  }
  await ledgers.close();
});
