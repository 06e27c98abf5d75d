// Goal: a server that stands still does not hold an execution for ever, and what it did not answer
// is judged by proof alone. Method: a real server is stopped with SIGSTOP while a stage is held;
// then it goes on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/contract/clock.ts';
import { unobserved } from '../../src/contract/steps.ts';
import { mintProofs } from '../../src/testing/index.ts';
import { descendantsOf, signal } from './processes.ts';
import { protectedDatabase } from './protected.ts';
import { startServer } from './server.ts';

test('a promotion without an answer ends within the deadlines, and what it says is so', async () => {
  await using server = await startServer();
  const db = await server.createDatabase();
  await using site = await protectedDatabase(
    'create table entry (id integer primary key)',
    { relations: ['entry'], stageTimeoutMs: 1000 },
    { db },
  );
  const adapter = await site
    .factory()
    .open({ name: 'books', clock: systemClock, reached: unobserved });
  assert.equal(adapter.capability, 'PROMOTABLE');
  if (adapter.capability !== 'PROMOTABLE') return;
  const proofs = mintProofs(adapter, 'frozen');
  const action = adapter.parseAction({ sql: 'insert into entry values (1)' });
  const staged = await adapter.stage(proofs.claim, proofs.certificate, action);
  assert.equal(staged.kind, 'held');
  if (staged.kind !== 'held') return;
  const permit = proofs.permit(await staged.stage.observe());
  const processes = [server.pid ?? 0, ...descendantsOf(server.pid ?? 0)];
  for (const pid of processes) signal(pid, 'SIGSTOP');
  // The deadline is a second for the server and five more for its answer; the trusted login waits
  // longer.
  const thaw = setTimeout(() => {
    for (const pid of processes) signal(pid, 'SIGCONT');
  }, 9000);
  const promotion = await staged.stage.promote(permit);
  clearTimeout(thaw);
  assert.ok(promotion.kind === 'unknown' || promotion.kind === 'refused', promotion.kind);
  const verdict = await adapter.markers.void(proofs.voidMarker());
  const rows = await db.run('select from entry');
  const committed = verdict.kind === 'conflict' && verdict.marker.disposition === 'committed';
  assert.equal(rows.length, committed ? 1 : 0);
  if (promotion.kind === 'refused') assert.equal(committed, false, 'a refusal needs proof');
  await adapter.close();
});
