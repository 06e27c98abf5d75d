// Goal: where values are not stored, nothing that is stored lets anybody find one out by trying
// all. Method: real runtimes over a state with a PIN; the journal is searched for the digest of
// every state it could be.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { snapshot } from '../../src/adapters/snapshot/index.ts';
import type { AdapterFactory, RemoteAdapter } from '../../src/contract/adapter.ts';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { matches, update } from '../../src/protocol/draft.ts';
import type { PermitRecord } from '../../src/protocol/permit.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { toolModule } from '../adapters/snapshot/tool-module.ts';
import { overlayAdapter, remoteAdapter } from '../world/world.ts';
import { deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-digests-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const stateWith = (pin: string) => ({ users: [{ id: 'u1', pin, name: 'Ann' }] });

test('a state that moved while a candidate was held leaves no digest of it in the journal', async () => {
  const file = join(folder, 'state.db');
  const store = join(folder, 'ledger.db');
  const key = generateApprover('desk');
  let armed = false;
  await using runtime = await createRuntime(
    {
      store,
      keyring: join(folder, 'keys.json'),
      issuers: { desk: { key: key.publicKey, may: ['shop'] } },
      adapters: {
        shop: snapshot({
          file,
          initial: stateWith('4711'),
          values: 'digest',
          collections: { users: { path: '/users', key: 'id' } },
          tools: toolModule({
            rename(state: { users: { name: string }[] }) {
              for (const user of state.users) user.name = 'Eve';
            },
          }),
        }),
      },
    },
    {
      reached: (step) => {
        if (!armed || step !== 'adapter:action-done') return;
        armed = false;
        const text = canonical(stateWith('0815'));
        using db = new DatabaseSync(file);
        db.prepare('update effectmatch_state set version = version + 1, digest = ?, text = ?').run(
          hash('sha256', text, 'hex'),
          text,
        );
      },
    },
  );
  const proposal = await runtime.prepare({
    ...{ adapter: 'shop', task: 'rename', planRevision: 1 },
    effects: [update('users', { id: 'u1' }, { name: ['Ann', 'Eve'] })],
  });
  const license = await approver(key).sign(proposal, { expiresIn: '10m' });
  armed = true;
  const rejected = ofKind(
    'rejected',
    await runtime.execute(license, { calls: [{ tool: 'rename' }] }),
  );
  assert.equal(rejected.reason, 'incomplete');
  assert.match(JSON.stringify(rejected), /isolation/);
  const stored = readdirSync(folder)
    .filter((name) => name.startsWith('ledger.db'))
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join();
  for (let pin = 0; pin < 10_000; pin += 1) {
    const text = canonical(stateWith(String(pin).padStart(4, '0')));
    assert.ok(!stored.includes(hash('sha256', text, 'hex')), `the PIN ${pin} was found`);
  }
});

test('where values are not stored, what a channel saw before and after is not stored either', async () => {
  for (const values of ['digest', 'plain'] as const) {
    const world = invoiceWorld({ values });
    await using books = await deploy(world, {
      at: { 'path:staged': () => (world.books.schema += 4711) },
    });
    const terminal = ofKind('rejected', await books.runtime.execute(await books.approve(), PAY));
    const text = JSON.stringify(terminal);
    assert.match(text, /Channel \\"schema\\" changed while the operation ran/);
    assert.equal(/47\d\d/.test(text.replaceAll(/[0-9a-f]{32,}/g, '')), values === 'plain', text);
  }
});

test('equal requests under two licenses are bound by different digests', async () => {
  const world = invoiceWorld();
  const seen: PermitRecord[] = [];
  const bank = overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, (opened) => {
    const adapter = opened as RemoteAdapter;
    return {
      dispatch(permit, request) {
        seen.push(permit.record);
        return adapter.dispatch(permit, request);
      },
    };
  });
  await using deployed = await deploy(world, {
    adapters: { ...world.start().config.adapters, bank },
  });
  for (const task of ['first', 'second']) {
    await deployed.runtime.execute(await deployed.approve({ adapter: 'bank', task }), PAY);
  }
  const digests = seen.map(({ bound }) => 'request' in bound && bound.request);
  assert.equal(digests.length, 2);
  assert.notEqual(digests[0], digests[1]);
});

test('where values are not stored, neither a limit that was exceeded nor a pattern tells one', async () => {
  const world = invoiceWorld({ values: 'digest' });
  const issuer = world.start().config.issuers['ap-team'] ?? assert.fail();
  const limits = { amounts: [{ target: 'invoice', column: 'amount', max: 100 }] };
  await using deployed = await deploy(world, { issuers: { 'ap-team': { ...issuer, limits } } });
  const { approve, runtime } = deployed;
  const effects = [update('invoice', { id: 1 }, { amount: [35, 471_100] })];
  const exceeded = ofKind('rejected', await runtime.execute(await approve({ effects }), PAY));
  assert.equal(exceeded.reason, 'limit-amount');
  assert.match(exceeded.detail, /the limit is 100/);
  const matching = [update('invoice', { id: 1 }, { status: matches('paid to zorro[0-9]') })];
  ofKind('rejected', await runtime.execute(await approve({ effects: matching }), PAY));
  const stored: unknown[] = [...(await runtime.ledgers.journal())];
  for (const { record } of await runtime.ledgers.journal()) {
    if ('occurrence' in record) stored.push(await runtime.ledgers.holder(record.occurrence));
  }
  assert.doesNotMatch(JSON.stringify(stored), /471100|zorro/);
});
