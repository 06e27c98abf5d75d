// Goal: a large approval needs memory in proportion to its rows, and not several times that, so that
// a million rows fit into 1 GiB. Method: approve, sign and execute 50,000 inserted rows in a process
// whose heap may have 80 MB; with a second copy of the outcome, or its whole text, it runs out.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BULK_TABLE } from '../../bench/studies/pg-cost/books.ts';
import { runPhase } from '../../bench/studies/pg-cost/peak.ts';
import { generateApprover } from '../../src/crypto/approver.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { type ProtectedDatabase, protectedDatabase } from '../postgres/protected.ts';

const ROWS = 50_000;
const HEAP_MB = 80;

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-peak-'));
let site: ProtectedDatabase;
before(async () => {
  site = await protectedDatabase(
    `create table ${BULK_TABLE} (id bigint primary key, amount_cents integer not null, text text not null)`,
    { relations: [{ name: BULK_TABLE, bulk: true }], stageTimeoutMs: 120_000 },
  );
});
after(async () => {
  await site[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function ledgerPlace() {
  const place = { url: site.db.url(site.db.role('appender')), schema: site.db.role('ledger') };
  await (await postgresLedgers(place.url, place).provisioning(site.db.url(), 'provision')).apply();
  return place;
}

for (const ledger of ['SQLite', 'PostgreSQL'] as const) {
  test(`${ROWS} inserted rows are approved and committed within ${HEAP_MB} MB of heap, ${ledger} ledger`, async () => {
    const name = join(folder, ledger);
    const store = ledger === 'SQLite' ? `${name}.db` : await ledgerPlace();
    const { peakBytes } = await runPhase(
      {
        phase: 'whole',
        rows: ROWS,
        options: site.options,
        store,
        keyring: `${name}.keys.json`,
        key: generateApprover('bench'),
        proposalFile: '',
        licenseFile: '',
      },
      HEAP_MB,
    );
    assert.ok(peakBytes > 0);
    const [found] = await site.db.run(`select count(*)::integer as rows from ${BULK_TABLE}`);
    assert.deepEqual({ ...found }, { rows: ROWS });
    await site.db.run(`truncate ${BULK_TABLE}`);
  });
}
