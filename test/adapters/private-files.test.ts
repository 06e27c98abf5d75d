// Goal: files that adapters and ledgers create hold business data, so nobody but their owner can
// read them. Method: create each under the widest umask, look at every file beside it while it is
// open and after it is closed.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { files } from '../../src/adapters/files/index.ts';
import { snapshot } from '../../src/adapters/snapshot/index.ts';
import type { PromotableAdapter } from '../../src/contract/adapter.ts';
import { systemClock } from '../../src/contract/clock.ts';
import { unobserved } from '../../src/contract/steps.ts';
import { digestText } from '../../src/crypto/digest.ts';
import { createSealer } from '../../src/crypto/seal.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import { mintProofs } from '../../src/testing/index.ts';
import { testKeyring } from '../keyring.ts';
import { toolModule } from './snapshot/tool-module.ts';

const CONTEXT = { name: 'a', clock: systemClock, reached: unobserved };
const former = process.umask(0);
const home = mkdtempSync(join(tmpdir(), 'effectmatch-private-'));
after(() => {
  process.umask(former);
  rmSync(home, { recursive: true, force: true });
});

/** Names and modes of what lies in a folder, without folders. */
function modesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => `${name} ${(statSync(join(folder, name)).mode & 0o777).toString(8)}`)
    .sort();
}

async function promote(adapter: PromotableAdapter, action: unknown): Promise<void> {
  const proofs = mintProofs(adapter, 'one');
  const staged = await adapter.stage(proofs.claim, proofs.certificate, adapter.parseAction(action));
  assert.ok(staged.kind === 'held', JSON.stringify(staged));
  const promotion = await staged.stage.promote(proofs.permit(await staged.stage.observe()));
  assert.equal(promotion.kind, 'confirmed');
}

test('the state of a snapshot adapter, its log and its index are readable by their owner alone', async () => {
  const folder = join(home, 'snapshot');
  mkdirSync(folder);
  const options = { file: join(folder, 'state.db'), initial: { list: [] }, collections: {} };
  const tools = toolModule({ add: (state: { list: number[] }) => state.list.push(1) });
  const adapter = (await snapshot({ ...options, tools }).open(CONTEXT)) as PromotableAdapter;
  await promote(adapter, { calls: [{ tool: 'add' }] });
  assert.deepEqual(modesIn(folder), ['state.db 600', 'state.db-shm 600', 'state.db-wal 600']);
  await adapter.close();
  assert.deepEqual(modesIn(folder), ['state.db 600']);
});

test('the control file of a files adapter, its log and its index are readable by their owner alone', async () => {
  const root = join(home, 'site');
  mkdirSync(root);
  const adapter = (await files({ root, adopt: true }).open(CONTEXT)) as PromotableAdapter;
  await promote(adapter, { operations: [{ write: { path: 'a', text: 'a' } }] });
  const control = join(home, '.site.effectmatch');
  assert.deepEqual(modesIn(control), [
    'control.db 600',
    'control.db-shm 600',
    'control.db-wal 600',
  ]);
  await adapter.close();
});

test('a ledger, its log and its index are readable by their owner alone', async () => {
  const folder = join(home, 'ledger');
  mkdirSync(folder);
  const ledgers = await sqliteLedgers(join(folder, 'ledger.db')).open({
    sealer: createSealer(testKeyring()),
    digest: digestText,
  });
  assert.deepEqual(modesIn(folder), ['ledger.db 600', 'ledger.db-shm 600', 'ledger.db-wal 600']);
  await ledgers.close();
});
