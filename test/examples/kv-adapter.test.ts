// Goal: the example of docs/adapters/writing.md is a real adapter: it conforms, protects a write,
// and survives its limits. Method: the conformance suite, one protected write with a runtime,
// processes that race, and files cut off anywhere.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { keyValue } from '../../examples/kv-adapter/adapter.ts';
import {
  type PromotableAdapter,
  type Step,
  systemClock,
  unobserved,
} from '../../src/contract/index.ts';
import {
  approver,
  createRuntime,
  generateApprover,
  insert,
  read,
  row,
  update,
} from '../../src/index.ts';
import { createRuntime as createRuntimeWith } from '../../src/runtime/runtime.ts';
import {
  type AdapterKit,
  adapterConformance,
  killAtEveryStep,
  mintProofs,
} from '../../src/testing/index.ts';
import { LIARS } from '../adapters/liars.ts';

const readText = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const QUOTED = [
  'examples/kv-adapter/adapter.ts',
  'test/examples/kv-adapter.test.ts',
  'test/examples/kv-module.ts',
];
const unindent = (text: string) => text.replace(/^ +/gm, '');

function freshFile(): { readonly file: string; readonly folder: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-kv-'));
  const file = join(folder, 'store.log');
  writeFileSync(file, '');
  return { file, folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

async function open(file: string): Promise<PromotableAdapter> {
  const adapter = await keyValue({ file }).open({
    name: 'kv',
    clock: systemClock,
    reached: unobserved,
  });
  return adapter as PromotableAdapter;
}

async function set(adapter: PromotableAdapter, name: string, texts: object): Promise<string> {
  const proofs = mintProofs(adapter, name);
  const staged = await adapter.stage(
    proofs.claim,
    proofs.certificate,
    adapter.parseAction({ set: texts }),
  );
  assert.ok(staged.kind === 'held');
  return (await staged.stage.promote(proofs.permit(await staged.stage.observe()))).kind;
}

const textAt = async (adapter: PromotableAdapter, key: string) =>
  (await adapter.read([read('entry', { key })]))[0]?.row?.value;

/**
 * An independent reader: every line that sets a text, whether it counts or not, except those of
 * admission.
 */
const changesIn = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"set"') && !line.includes('effectmatch-probe'))
    .map((line) => JSON.parse(line.slice(65)).set);

const kit = {
  async fresh() {
    const { file, [Symbol.dispose]: remove } = freshFile();
    const first = await open(file);
    await set(first, 'given', { greeting: 'hello', name: 'world' });
    await first.close();
    const reader = await open(file);
    const keys = ['greeting', 'name', 'another'].map((key) => read('entry', { key }));
    return {
      place: file,
      factory: keyValue({ file }),
      readDurable: () => reader.read(keys),
      effect: {
        action: { set: { greeting: 'good day' } },
        leaves: [update('entry', { key: 'greeting' }, { value: ['hello', 'good day'] })],
      },
      extra: { set: { greeting: 'good day', another: 'one' } },
      failing: { set: { greeting: 'good day', name: 'too long '.repeat(2000) } },
      reads: [
        read('entry', { key: 'greeting' }),
        read('entry', { key: 'name' }, ['value']),
        ...keys.slice(2),
      ],
      close: async () => remove(),
    };
  },
} satisfies AdapterKit;

adapterConformance('key-value example', kit);

killAtEveryStep('key-value example', {
  module: new URL('kv-module.ts', import.meta.url),
  async fresh() {
    const { effect, place, readDurable, close } = await kit.fresh();
    return { place, action: effect.action, readDurable, close };
  },
});

describe('key-value example', () => {
  test('has fewer than 250 lines', () => {
    assert.ok(readText('examples/kv-adapter/adapter.ts').trimEnd().split('\n').length < 250);
  });

  test('what the guide quotes is in the example or here, and it names every mistake that the suite is tried on', () => {
    const guide = readText('docs/adapters/writing.md');
    const quotable = QUOTED.map((file) =>
      unindent(readText(file).replace(/\.\.\/\.\.\/src\/(\w+)\/index\.ts/g, 'effectmatch/$1')),
    ).join('\n');
    const blocks = [...guide.matchAll(/^```ts\n([\s\S]*?)\n```$/gm)].map((match) => match[1] ?? '');
    assert.ok(blocks.length >= 8);
    for (const block of blocks) assert.ok(quotable.includes(unindent(block)), block);
    for (const lie of Object.keys(LIARS))
      assert.ok(guide.includes(lie), `the guide does not say "${lie}"`);
  });

  test('an approved write commits once, and one that leaves more is rejected without a trace', async () => {
    using fresh = freshFile();
    const key = generateApprover('ap-team');
    await using runtime = await createRuntime({
      store: join(fresh.folder, 'ledger.db'),
      keyring: join(fresh.folder, 'keys.json'),
      issuers: { 'ap-team': { key: key.publicKey, may: ['notes'] } },
      adapters: { notes: keyValue({ file: fresh.file }) },
    });
    const prepare = (text: string, known: string | undefined) =>
      runtime.prepare({
        adapter: 'notes',
        task: text,
        planRevision: 1,
        effects: [
          known === undefined
            ? insert('entry', { key: 'door', value: text })
            : update('entry', { key: 'door' }, { value: [known, text] }),
        ],
        requires: known === undefined ? [] : [row('entry', { key: 'door' }, { value: known })],
        continuations: ['ring'],
      });
    const license = approver(key).sign(await prepare('open', undefined), { expiresIn: '10m' });
    const terminal = await runtime.execute(license, { set: { door: 'open' } });
    assert.equal(terminal.kind, 'committed');
    assert.equal((await runtime.execute(license, { set: { door: 'open' } })).kind, 'rejected');
    const next = approver(key).sign(await prepare('shut', 'open'), { expiresIn: '10m' });
    assert.equal(
      (await runtime.execute(next, { set: { door: 'shut', window: 'shut' } })).kind,
      'rejected',
    );
    let rings = 0;
    await runtime.continuation(terminal, 'ring').release(() => {
      rings += 1;
    });
    assert.equal(rings, 1);
    assert.deepEqual(changesIn(fresh.file), [{ door: 'open' }]);
  });

  test('what the guide shows: one license, one action that it covers and one that it does not', async () => {
    using fresh = freshFile();
    const key = generateApprover('ap-team');
    await using runtime = await createRuntime({
      store: join(fresh.folder, 'ledger.db'),
      keyring: join(fresh.folder, 'keys.json'),
      issuers: { 'ap-team': { key: key.publicKey, may: ['notes'] } },
      adapters: { notes: keyValue({ file: fresh.file }) },
    });
    const effects = [insert('entry', { key: 'door', value: 'open' })];
    const execute = async (action: unknown) => {
      const task = { adapter: 'notes', task: 'the door', planRevision: 1, effects };
      const proposal = await runtime.prepare(task);
      const license = approver(key).sign(proposal, { expiresIn: '5m' });
      return await runtime.execute(license, action);
    };
    const rejected = await execute({ set: { door: 'open', window: 'open' } });
    assert.equal(rejected.kind === 'rejected' && rejected.at, 'comparison');
    assert.equal((await execute({ set: { door: 'open' } })).kind, 'committed');
    assert.deepEqual(changesIn(fresh.file), [{ door: 'open' }]);
  });

  test('a failure before the line is written ends rejected, and one after it ends committed', async () => {
    for (const [step, kind] of [
      ['adapter:marker-written', 'rejected'],
      ['adapter:commit-returned', 'committed'],
    ] as const) {
      using fresh = freshFile();
      const key = generateApprover('ap-team');
      let armed = false;
      const reached = (at: Step) => {
        if (armed && at === step) throw new Error(`failed at ${step}`);
      };
      const config = {
        store: join(fresh.folder, 'ledger.db'),
        keyring: join(fresh.folder, 'keys.json'),
        issuers: { 'ap-team': { key: key.publicKey, may: ['notes'] } },
        adapters: { notes: keyValue({ file: fresh.file }) },
      };
      await using runtime = await createRuntimeWith(config, { reached });
      const effects = [insert('entry', { key: 'door', value: 'open' })];
      const proposal = await runtime.prepare({
        adapter: 'notes',
        task: step,
        planRevision: 1,
        effects,
      });
      armed = true;
      const license = approver(key).sign(proposal, { expiresIn: '10m' });
      const terminal = await runtime.execute(license, { set: { door: 'open' } });
      assert.equal(terminal.kind, kind);
      assert.equal(changesIn(fresh.file).length, kind === 'committed' ? 1 : 0);
    }
  });

  test('of two candidates on one base only the first is promoted, and the other never counts', async () => {
    using fresh = freshFile();
    const [one, other] = [await open(fresh.file), await open(fresh.file)];
    const held = await Promise.all(
      [one, other].map(async (adapter, index) => {
        const proofs = mintProofs(adapter, `both ${index}`);
        const action = adapter.parseAction({ set: { [`key ${index}`]: 'x' } });
        const staged = await adapter.stage(proofs.claim, proofs.certificate, action);
        assert.ok(staged.kind === 'held');
        return { stage: staged.stage, permit: proofs.permit(await staged.stage.observe()) };
      }),
    );
    const kinds = [];
    for (const { stage, permit } of held) kinds.push((await stage.promote(permit)).kind);
    assert.deepEqual(kinds, ['confirmed', 'refused']);
    assert.equal(changesIn(fresh.file).length, 2, 'both lines are in the file');
    assert.equal(await textAt(one, 'key 0'), 'x');
    assert.equal(await textAt(one, 'key 1'), undefined);
    assert.equal(await set(other, 'both again', { 'key 1': 'y' }), 'confirmed');
  });

  test('processes that race from the same file lose no update that was confirmed', async () => {
    using fresh = freshFile();
    await open(fresh.file);
    const program = new URL('./kv-racer.ts', import.meta.url).pathname;
    const children = ['a', 'b', 'c'].map((name) =>
      spawn(process.execPath, [program, fresh.file, name, '8'], {
        stdio: ['ignore', 'inherit', 'inherit'],
      }),
    );
    for (const [code] of await Promise.all(children.map((child) => once(child, 'exit'))))
      assert.equal(code, 0);
    const adapter = await open(fresh.file);
    assert.equal(await textAt(adapter, 'counter'), '24');
  });

  test('a file that is cut off anywhere still opens, with a prefix of what was promoted, and can go on', async () => {
    using fresh = freshFile();
    const adapter = await open(fresh.file);
    const ends = [readFileSync(fresh.file).length];
    for (let round = 1; round <= 3; round += 1) {
      await set(adapter, `round ${round}`, { counter: `${round}` });
      ends.push(readFileSync(fresh.file).length);
    }
    const whole = readFileSync(fresh.file);
    for (let cut = whole.length; cut >= (ends[0] ?? 0); cut -= 83) {
      writeFileSync(fresh.file, whole);
      truncateSync(fresh.file, cut);
      // A line is whole without its last newline: the next one brings its own.
      const rounds = ends.slice(1).filter((end) => cut >= end - 1).length;
      const again = await open(fresh.file);
      assert.equal(
        await textAt(again, 'counter'),
        rounds === 0 ? undefined : `${rounds}`,
        `cut at ${cut}`,
      );
      assert.equal(await set(again, `after ${cut}`, { counter: 'on' }), 'confirmed');
      assert.equal(await textAt(again, 'counter'), 'on');
    }
  });

  test('another file in its place is noticed before anything is decided in it', async () => {
    using fresh = freshFile();
    const adapter = await open(fresh.file);
    writeFileSync(fresh.file, '');
    await open(fresh.file);
    await assert.rejects(adapter.markers.void(mintProofs(adapter, 'elsewhere').voidMarker()), {
      code: 'ERR_EM_ADAPTER_UNAVAILABLE',
    });
    assert.equal(readFileSync(fresh.file, 'utf8').includes('occ_'), false);
  });
});
