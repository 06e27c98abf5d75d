// Goal: a server that is killed in the middle of anything loses no request and does nothing twice.
// Method: clients that pay, each repeating a call until it is answered, while the real server
// process is killed with SIGKILL at random moments and started again.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseProposal } from '../../src/crypto/proposal.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { openDeployment, startServing } from './served.ts';

const KILLS = Number(process.env.EFFECTMATCH_KILLS ?? 4);
const CLIENTS = 4;
type Server = Awaited<ReturnType<typeof startServing>>;

test('killed at random moments: every payment is made once, and every request is true', async (t) => {
  const seed = chooseSeed();
  t.diagnostic(`seed ${seed}`);
  const random = randomOf(seed);
  await using site = await openDeployment('sqlite');
  const [agent, operator] = [
    await site.token('billing-agent'),
    await site.token('carol', '--operator'),
  ];
  let server: Server = await startServing(site.folder);
  const [enough, giveUp] = [new AbortController(), new AbortController()];
  const call = async (...words: Parameters<Server['call']>) => {
    for (;;) {
      giveUp.signal.throwIfAborted();
      const answer = await server.call(...words).catch(() => undefined);
      if (answer !== undefined && answer.status < 500 && answer.status !== 429) return answer;
      await sleep(20);
    }
  };
  /** The verdict about a request, however often the server dies before it. */
  const ending = async (path: string) => {
    for (;;) {
      const { json } = await call('GET', `${path}?waitSeconds=5`, agent);
      if (json.terminal !== undefined) return json.terminal;
      assert.ok(['approved', 'running'].includes(json.state), JSON.stringify(json));
    }
  };
  /** Pays again and again; returns whom. */
  const pay = async (client: number): Promise<string[]> => {
    const paid: string[] = [];
    for (let count = 0; !enough.signal.aborted; count += 1) {
      const payee = `client ${client} payment ${count}`;
      const action = { sql: 'insert into payment (payee) values (?)', values: [payee] };
      const { json } = await call('POST', '/v1/requests', agent, {
        run: 'kill',
        adapter: 'books',
        action,
      });
      const path = `/v1/requests/${json.id}`;
      const proposal = await call('GET', `${path}/proposal`, operator);
      const signed = site.approver.sign(parseProposal(proposal.json), { expiresIn: '10m' });
      const answered = await call('POST', `${path}/license`, operator, signed);
      // The first answer may have been lost; the request took its license then.
      if (answered.status !== 200) assert.equal(answered.json.code, 'ERR_EM_REQUEST_CLOSED');
      const verdict = await ending(path);
      // Killed after the claim and before the commit: the license is spent and nothing was done.
      if (verdict.kind === 'rejected') assert.equal(verdict.reason, 'interrupted');
      else paid.push(payee);
    }
    return paid;
  };
  const paying = Promise.all(Array.from({ length: CLIENTS }, (_, client) => pay(client)));
  paying.catch(() => {});
  try {
    for (let kill = 0; kill < KILLS; kill += 1) {
      await sleep(random.spread(50, 900));
      server.child.kill('SIGKILL');
      await once(server.child, 'exit');
      server = await startServing(site.folder);
    }
    enough.abort();
    await paying;
  } catch (error) {
    giveUp.abort();
    server.child.kill('SIGKILL');
    throw error;
  }
  const paid = (await paying).flat();
  const listed = await call('GET', '/v1/requests?limit=500', agent);
  await server[Symbol.asyncDispose]();
  using db = new DatabaseSync(site.at('books.db'), { readOnly: true });
  const rows = db
    .prepare('select payee from payment')
    .all()
    .map(({ payee }) => String(payee));
  assert.deepEqual(rows.toSorted(), paid.toSorted(), 'each payment once, and no other');
  const states = listed.json.items.map(({ state }: { state: string }) => state);
  assert.equal(states.filter((state: string) => state === 'committed').length, paid.length);
  assert.ok(states.every((state: string) => state === 'committed' || state === 'rejected'));
  assert.ok(paid.length >= CLIENTS, `${paid.length} payments`);
});
