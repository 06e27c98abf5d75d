// Goal: however many processes are handed the same licenses, each has one effect, one verdict and
// one release. Method: processes on one ledger in PostgreSQL. EFFECTMATCH_OCCURRENCES=1000 and
// EFFECTMATCH_PROCESSES=64 make it larger.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { approver } from '../../src/crypto/approver.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { freshDatabase } from '../postgres/server.ts';
import { clerk, Desk, deskConfig } from './desk.ts';

const OCCURRENCES = Number(process.env.EFFECTMATCH_OCCURRENCES ?? 40);
const PROCESSES = Number(process.env.EFFECTMATCH_PROCESSES ?? 8);
const database = freshDatabase();
after(async () => await (await database).drop());

async function share(occurrences: number, processes: number): Promise<void> {
  using desk = new Desk();
  const db = await database;
  const store = db.url(db.role(`shared${processes}`));
  const schema = `ledger_${processes}_${occurrences}`;
  const ledger = postgresLedgers(store, { schema });
  await (await ledger.provisioning(db.url(), 'provision')).apply();
  const config = { ...deskConfig(desk.folder, clerk.publicKey), store: ledger };
  await using runtime = await createRuntime(config);
  const work = [];
  for (let at = 0; at < occurrences; at += 1) {
    const task = { task: `t${at}`, planRevision: 1, continuations: ['tell'] };
    const proposal = await runtime.propose('post', { tag: `t${at}` }, task);
    const license = approver(clerk).sign(proposal, { expiresIn: '1h' });
    const action = { sql: 'insert into entry values (?, ?)', values: [`t${at}`, 1] };
    work.push({ license, action });
  }
  writeFileSync(join(desk.folder, 'work.json'), JSON.stringify(work));
  const counts = await Promise.all(
    Array.from({ length: processes }, async (_, index) => {
      const from = Math.floor((index * occurrences) / processes);
      const words = [desk.folder, clerk.publicKey, store, String(from), schema];
      const script = join(import.meta.dirname, 'many-child.ts');
      const child = fork(script, words, { execArgv: ['--no-warnings'] });
      const [message] = await once(child, 'message');
      await once(child, 'exit');
      return message as { readonly released: number; readonly committed: number };
    }),
  );
  const total = (name: 'released' | 'committed') => counts.reduce((sum, one) => sum + one[name], 0);
  assert.equal(total('released'), occurrences, 'one release each');
  assert.equal(total('committed'), occurrences * processes, 'everyone gets the verdict');
  assert.equal(desk.rows().length, occurrences, 'one effect each');
  const rows = await runtime.ledgers.journal({ limit: 100_000 });
  const kinds = (kind: string) => rows.filter((row) => row.kind === kind).length;
  assert.deepEqual([kinds('claim'), kinds('terminal')], [occurrences, occurrences]);
  assert.equal(kinds('acknowledgement'), 2 * occurrences);
  assert.equal((await runtime.verifyJournal()).kind, 'intact');
}

test(`4 processes, ${OCCURRENCES} occurrences: as many effects, terminals and releases`, async () => {
  await share(OCCURRENCES, 4);
});

test(`${PROCESSES} processes and one license: one effect`, async () => {
  await share(1, PROCESSES);
});
