// Goal: an execution login whose sessions a pooler shares between transactions is refused, and
// nothing else is. Method: a relay in front of a real server that logs clients in there and then
// sends their queries to whichever session.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { planProvisioning, postgres } from '../../../src/adapters/postgres/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { type Sharing, startPooler } from '../../postgres/pooler.ts';
import { freshDatabase, sharedServer } from '../../postgres/server.ts';

const db = await freshDatabase();
after(() => db.drop());
await db.run('create table invoice (id integer primary key)');
const direct = {
  owner: db.role('owner'),
  control: db.url(db.role('control')),
  execution: db.url(db.role('exec')),
  relations: ['invoice'],
};
await (await planProvisioning(db.url(), direct)).apply();

/** Opens the adapter with an execution login that goes through a pooler. */
async function openThrough(share: Sharing): Promise<void> {
  const { port } = await sharedServer();
  await using pooler = await startPooler(port, share);
  const execution = db.url(db.role('exec')).replace(`:${port}/`, `:${pooler.port}/`);
  assert.notEqual(execution, direct.execution);
  await open({ ...direct, execution });
}

async function open(options: typeof direct): Promise<void> {
  const adapter = await postgres(options).open({
    name: 'books',
    clock: systemClock,
    reached: unobserved,
  });
  await adapter.close();
}

const POOLED = {
  code: 'ERR_EM_ADAPTER_REFUSED',
  message: /through a pooler .*pool_mode = session/,
};

test('a pooler that hands out the session that was released last is refused', async () => {
  await assert.rejects(
    openThrough(() => 0),
    POOLED,
  );
});

test('a pooler that hands out sessions in turns is refused', async () => {
  await assert.rejects(
    openThrough((_, sessions, turn) => turn % sessions),
    POOLED,
  );
});

test('a pooler that gives every client a session of its own is not', async () => {
  await openThrough((client) => client);
});

test('a login that may have one session only is not refused for that', async () => {
  await db.run(`alter role "${db.role('exec')}" connection limit 1`);
  await open(direct);
});
