// Goal: the example of an adapter on a storage engine conforms, is admitted, protects a write and
// survives a kill at every step, in at most 250 lines. Method: the suites for authors of adapters, and a
// runtime, on LMDB.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type PromotableAdapter, systemClock, unobserved } from '../../src/contract/index.ts';
import {
  approver,
  createRuntime,
  generateApprover,
  insert,
  read,
  remove,
  row,
  update,
} from '../../src/index.ts';
import { adapterConformance, killAtEveryStep, mintProofs } from '../../src/testing/index.ts';
import { skipWithout } from '../integration.ts';

const root = join(import.meta.dirname, '../..');
const module = new URL('lmdb-module.ts', import.meta.url);
const skip = skipWithout('lmdb');

const put = (table: string, cells: object) => ({ op: 'put', table, row: cells });
const invoice = (id: number, status: string) => put('invoice', { id, status, amount: 10 * id });
const STEPS = [
  invoice(1, 'paid'),
  put('balance', { account: 'cash', period: '2026-11', amount: 35.5 }),
];
const LEAVES = [
  update('invoice', { id: 1 }, { status: ['open', 'paid'] }),
  insert('balance', { account: 'cash', period: '2026-11', amount: 35.5 }),
];
const gone = (id: number) => ({ op: 'remove', table: 'invoice', row: { id } });
const READS = [1, 2, 3].map((id) => read('invoice', { id }));
const BALANCE = read('balance', { account: 'cash', period: '2026-11' });

async function fresh() {
  const { default: tables } = await import(module.href);
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-lmdb-'));
  const file = join(folder, 'books.mdb');
  const open = async (): Promise<PromotableAdapter> =>
    await tables(file).open({ name: 'books', clock: systemClock, reached: unobserved });
  const first = await open();
  const proofs = mintProofs(first, 'given');
  const steps = [1, 2, 3].map((id) => invoice(id, 'open'));
  const action = first.parseAction({ steps });
  const staged = await first.stage(proofs.claim, proofs.certificate, action);
  assert.ok(staged.kind === 'held');
  await staged.stage.promote(proofs.permit(await staged.stage.observe()));
  await first.close();
  const reader = await open();
  return {
    ...{ folder, place: file, factory: tables(file) },
    readDurable: () => reader.read([...READS, BALANCE]),
    async close() {
      await reader.close();
      rmSync(folder, { recursive: true });
    },
  };
}

describe('LMDB example', { skip }, () => {
  adapterConformance('LMDB example', {
    async fresh() {
      return {
        ...(await fresh()),
        effect: { action: { steps: STEPS }, leaves: LEAVES },
        extra: { steps: [...STEPS, invoice(2, 'paid')] },
        failing: { steps: [...STEPS, gone(99)] },
        reads: [...READS.slice(0, 1), read('invoice', { id: 2 }, ['amount']), BALANCE],
      };
    },
  });

  killAtEveryStep('LMDB example', {
    module,
    fresh: async () => ({ ...(await fresh()), action: { steps: STEPS } }),
  });

  test('is admitted, commits what was approved, and nothing else', async () => {
    const { folder, factory, readDurable, close } = await fresh();
    const key = generateApprover('ap-team');
    const runtime = await createRuntime({
      store: join(folder, 'ledger.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { 'ap-team': { key: key.publicKey, may: ['books'] } },
      adapters: { books: factory },
    });
    const approve = async (requires = [row('invoice', { id: 2 }, { status: 'open' })]) => {
      const effects = [...LEAVES, remove('invoice', { id: 3 })];
      const terms = { adapter: 'books', task: 'pay', planRevision: 1, effects, requires };
      return approver(key).sign(await runtime.prepare(terms), { expiresIn: '5m' });
    };
    const before = await readDurable();
    const more = { steps: [...STEPS, gone(3), invoice(2, 'paid')] };
    const other = await runtime.execute(await approve(), more);
    assert.equal(other.kind === 'rejected' && other.at, 'comparison');
    assert.deepEqual(await readDurable(), before);
    const license = await approve();
    const action = { steps: [...STEPS, gone(3)] };
    assert.equal((await runtime.execute(license, action)).kind, 'committed');
    const [paid, , missing, balance] = await readDurable();
    assert.deepEqual([paid?.row?.status, missing?.row, balance?.row?.amount], ['paid', null, 35.5]);
    assert.equal((await runtime.execute(license, action)).kind, 'rejected');
    await runtime.close();
    await close();
  });

  test('has at most 250 lines and compiles against the package', () => {
    const text = readFileSync(join(root, 'examples/lmdb-adapter/adapter.ts'), 'utf8');
    assert.ok(text.trimEnd().split('\n').length <= 250);
    const tsc = join(root, 'node_modules/.bin/tsc');
    const words = ['-p', join(root, 'integrations/lmdb'), '--noEmit'];
    const { status, stdout } = spawnSync(tsc, words, { encoding: 'utf8' });
    assert.equal(status, 0, stdout);
  });
});
