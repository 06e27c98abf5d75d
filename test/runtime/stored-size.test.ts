// Goal: however much an agent writes, what it tried ends as a verdict in the journal, cut where it
// must be. Method: a real SQLite file behind the public API; the largest values are control
// characters, six bytes each in JSON.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { approver, createRuntime, generateApprover, insert } from '../../src/index.ts';
import { renderTerminal } from '../../src/protocol/render-terminal.ts';
import { RESIDUE_BYTES_MAX, storableResidue } from '../../src/protocol/residue.ts';
import { terminalRecord } from '../../src/protocol/terminal.ts';
import { ofKind } from './deploy.ts';

async function notebook(values: 'plain' | 'digest') {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-notebook-'));
  const file = join(folder, 'notes.db');
  using db = new DatabaseSync(file);
  db.exec('create table note (id integer primary key not null, text text not null)');
  const key = generateApprover('team');
  const runtime = await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { team: { key: key.publicKey, may: ['notes'] } },
    adapters: { notes: sqlite({ file, relations: ['note'], values }) },
  });
  const effects = [insert('note', { id: 1, text: 'short' })];
  const license = async () =>
    approver(key).sign(
      await runtime.prepare({ adapter: 'notes', task: 'note', planRevision: 1, effects }),
      {
        expiresIn: '10m',
      },
    );
  const close = async () => {
    await runtime.close();
    rmSync(folder, { recursive: true });
  };
  return { runtime, license, [Symbol.asyncDispose]: close };
}

/** `count` rows of so many control characters each. */
const flood = (count: number, characters: number) => ({
  sql: `with recursive n(i) as (values (1) union all select i + 1 from n where i < ?)
    insert into note select i, replace(hex(zeroblob(?)), '00', char(1)) from n`,
  values: [count, characters],
});

for (const values of ['plain', 'digest'] as const) {
  test(`values ${values}: 46 MB of control characters are a rejection with their row, and not an erased verdict`, async () => {
    await using deployed = await notebook(values);
    const rejected = ofKind(
      'rejected',
      await deployed.runtime.execute(await deployed.license(), flood(1, 46_000_000)),
    );
    assert.equal(rejected.reason, 'diverged');
    assert.ok(rejected.outcome?.kind === 'DIVERGED');
    const { diff } = rejected.outcome;
    assert.equal(
      diff.altered.length + diff.extra.length,
      1,
      'the row that it tried to write is named',
    );
    assert.deepEqual(await deployed.runtime.terminal(rejected.occurrence), rejected);
    // 46,000,000 characters of six bytes and two quotes.
    assert.match(JSON.stringify(diff), /"\$omitted":"276000002"/);
    assert.match(renderTerminal(rejected), /276000002 bytes, too long to be kept/);
  });
}

test('many long values are cut before entries are left out, and every entry is counted', async () => {
  await using deployed = await notebook('plain');
  const rejected = ofKind(
    'rejected',
    await deployed.runtime.execute(await deployed.license(), flood(300, 200_000)),
  );
  assert.ok(rejected.outcome?.kind === 'DIVERGED');
  const { altered, extra, missing, omitted } = rejected.outcome.diff;
  assert.equal(altered.length + extra.length + missing.length, 200);
  assert.equal(omitted, 100, '300 rows differ, one of them in place of the approved one');
  assert.ok(Buffer.byteLength(terminalRecord.text(rejected)) < terminalRecord.maxBytes);
});

test('a value that fits is stored as it is', async () => {
  await using deployed = await notebook('plain');
  const rejected = ofKind(
    'rejected',
    await deployed.runtime.execute(await deployed.license(), flood(1, 1000)),
  );
  assert.ok(rejected.outcome?.kind === 'DIVERGED');
  assert.equal(rejected.outcome.diff.altered[0]?.observed.after?.text, '\u0001'.repeat(1000));
});

test('what a rollback left behind is bounded in bytes, whatever the sequences are called', () => {
  const name = '\u0001'.repeat(512);
  const residue = Array.from({ length: 1000 }, () => ({
    kind: 'sequence' as const,
    name,
    from: '1',
    to: '2',
  }));
  const kept = storableResidue(residue, 'plain');
  assert.ok(kept.length > 0);
  assert.ok(Buffer.byteLength(JSON.stringify(kept)) <= RESIDUE_BYTES_MAX);
});
