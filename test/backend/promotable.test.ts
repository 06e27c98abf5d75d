// Goal: the kernel ends every candidate once and in the right way, whatever the engine does.
// Method: a candidate that writes down what is called on it, and fails where a case says so.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Backend,
  type Candidate,
  copyAction,
  type HoldResult,
  promotable,
  readUntrusted,
  refuseAction,
  stageFailed,
} from '../../src/backend/index.ts';
import type { PromotableAdapter, Promotion, Survey } from '../../src/contract/adapter.ts';
import { systemClock } from '../../src/contract/clock.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { mintProofs } from '../../src/testing/proofs.ts';

const EVIDENCE = { evidence: 'evidence', records: [], channels: [], unattributed: 0, assigned: [] };
const SURVEY: Survey = {
  ...{ backend: 'id', executor: 'e', outlets: [], configuration: 'c' },
  ...{ credentials: 'c', enforcement: 'e' },
};

/** An adapter whose engine writes down every call; `changes` replaces parts of a candidate. */
function recorded(
  changes: Partial<Candidate<string>> = {},
  backend: Partial<Backend<string>> = {},
) {
  const calls: string[] = [];
  const candidate: Candidate<string> = {
    id: 'candidate',
    apply: async (action) => {
      calls.push(`apply ${action}`);
      return { kind: 'done' };
    },
    read: async () => [],
    observe: async () => EVIDENCE,
    recheck: async () => 'evidence',
    commit: async () => ({ kind: 'confirmed' }),
    end: async (how) => {
      calls.push(how);
    },
    ...changes,
  };
  const engine = {
    identity: { kind: 'recorded', backend: 'id', code: 'code' },
    registration: { profile: 'net-state', values: 'plain', targets: [] },
    survey: async () => ({ ...SURVEY, outlets: [] }),
    hold: async (): Promise<HoldResult<string>> => ({ kind: 'open', candidate, marker: undefined }),
    close: async () => {
      calls.push('close');
    },
    ...backend,
  } as unknown as Backend<string>;
  const reached = (step: string) => calls.push(step);
  return { calls, adapter: promotable(engine, { clock: systemClock, reached }) };
}

function stage(adapter: PromotableAdapter<string>) {
  const proofs = mintProofs(adapter as PromotableAdapter, 'one');
  return { proofs, staging: adapter.stage(proofs.claim, proofs.certificate, 'act') };
}

async function hold(adapter: PromotableAdapter<string>) {
  const { proofs, staging } = stage(adapter);
  const staged = await staging;
  assert.ok(staged.kind === 'held', JSON.stringify(staged));
  return { stage: staged.stage, proofs };
}

const BEGUN = ['adapter:stage-opened', 'apply act'];

test('an action that fails ends its candidate, and what the rollback left is reported', async () => {
  const left = [{ kind: 'sequence', name: 's', detail: 'moved' }] as never;
  const { calls, adapter } = recorded({
    apply: async () => stageFailed('action-failed', `no ${'x'.repeat(2000)}\ud800`),
    end: async () => left,
  });
  const staged = await stage(adapter).staging;
  assert.ok(staged.kind === 'failed');
  assert.equal(staged.reason, 'action-failed');
  assert.equal(staged.detail.length, 1000, 'a detail that a terminal can keep');
  assert.equal(staged.residue, left);
  assert.ok(!calls.includes('adapter:action-done'));
});

test('an occurrence that has a marker is refused by its disposition, and its action does not run', async () => {
  for (const disposition of ['committed', 'void'] as const) {
    const ended: string[] = [];
    const end = async (how: string) => void ended.push(how);
    const candidate = { end } as unknown as Candidate<string>;
    const hold = async () => ({ kind: 'open', candidate, marker: { disposition } }) as const;
    const staged = await stage(recorded({}, { hold }).adapter).staging;
    assert.equal(staged.kind === 'failed' && staged.reason, `already-${disposition}`);
    assert.deepEqual(ended, ['discarded']);
  }
});

test('a marker is handed on as its five fields, whatever else the row of an engine holds', async () => {
  const fields = { occurrence: 'o', disposition: 'void', text: 't', sealKey: 'k', sealMac: 'm' };
  const row = Object.assign(Object.create(null), fields, { rowid: 1 });
  const markers = { find: async () => row, void: async () => ({ kind: 'conflict', marker: row }) };
  const { adapter } = recorded({}, { markers: markers as never });
  assert.deepEqual(await adapter.markers.find('o' as never), fields);
  assert.deepEqual(await adapter.markers.void(row), { kind: 'conflict', marker: fields });
});

test('whatever reading an action throws refuses the action', () => {
  const refusal = refuseAction('no such tool');
  for (const error of [new EffectMatchError('ERR_EM_CANON_UNSUPPORTED', 'odd'), new Error('trap')])
    assert.throws(() => readUntrusted(() => assert.fail(error)), {
      code: 'ERR_EM_ACTION_INVALID',
      cause: error,
    });
  assert.throws(() => readUntrusted(() => assert.fail(refusal)), refusal);
  assert.throws(() => copyAction({ at: new Date(0) }), { code: 'ERR_EM_ACTION_INVALID' });
  assert.throws(() => copyAction({ text: 'abc' }, 5), /longer than 5 characters/);
});

test('what an engine throws carries the code of the adapter, and its candidate ends', async () => {
  const { calls, adapter } = recorded({
    apply: async () => {
      throw new Error('the disk is gone');
    },
  });
  await assert.rejects(stage(adapter).staging, {
    code: 'ERR_EM_ADAPTER_UNAVAILABLE',
    message: 'the backend could not be used: the disk is gone',
  });
  assert.equal(calls.at(-1), 'discarded');
});

test('a candidate ends once: committed, discarded or unknown, as its commit says', async () => {
  const thrown = async (): Promise<Promotion> => {
    throw new Error('lost');
  };
  const cases: readonly [Candidate<string>['commit'], Promotion['kind'], string][] = [
    [async () => ({ kind: 'confirmed' }), 'confirmed', 'committed'],
    [async () => ({ kind: 'refused', reason: 'r', detail: 'd' }), 'refused', 'discarded'],
    [async () => ({ kind: 'unknown', cause: 'c' }), 'unknown', 'unknown'],
    [thrown, 'unknown', 'unknown'],
  ];
  for (const [commit, kind, how] of cases) {
    const { calls, adapter } = recorded({ commit });
    const held = await hold(adapter);
    const permit = held.proofs.permit(await held.stage.observe());
    assert.equal((await held.stage.promote(permit)).kind, kind);
    await held.stage.discard();
    await held.stage[Symbol.asyncDispose]();
    await assert.rejects(held.stage.promote(permit), { code: 'ERR_EM_INVARIANT' });
    await assert.rejects(held.stage.observe(), { code: 'ERR_EM_INVARIANT' });
    await adapter.close();
    assert.deepEqual(calls, [...BEGUN, 'adapter:action-done', how, 'close']);
  }
});

test('an end that throws is tried again in the same way, also by closing', async () => {
  let fails = 2;
  const tried: string[] = [];
  const { adapter } = recorded({
    commit: async () => ({ kind: 'unknown', cause: 'c' }),
    end: async (how) => {
      tried.push(how);
      fails -= 1;
      if (fails >= 0) throw new Error('not now');
    },
  });
  const held = await hold(adapter);
  await held.stage.promote(held.proofs.permit(await held.stage.observe()));
  await assert.rejects(held.stage.discard(), /not now/);
  await adapter.close();
  assert.deepEqual(tried, ['unknown', 'unknown', 'unknown']);
});

test('a discard while a promotion is under way waits for it and changes nothing', async () => {
  let finish: (promotion: Promotion) => void = () => {};
  const { calls, adapter } = recorded({
    commit: () => new Promise((resolve) => (finish = resolve)),
  });
  const held = await hold(adapter);
  const promoting = held.stage.promote(held.proofs.permit(await held.stage.observe()));
  const discarding = held.stage.discard();
  const closing = adapter.close();
  finish({ kind: 'confirmed' });
  assert.deepEqual(await promoting, { kind: 'confirmed' });
  await Promise.all([discarding, closing]);
  assert.deepEqual(calls.slice(-2), ['committed', 'close']);
});

test('an adapter that is closed while an action runs ends the candidate, and stages no more', async () => {
  let closing: Promise<void> | undefined;
  const { calls, adapter } = recorded({
    apply: async () => {
      closing = adapter.close();
      return { kind: 'done' };
    },
  });
  const closed = { code: 'ERR_EM_ADAPTER_UNAVAILABLE', message: /closed/ };
  await assert.rejects(stage(adapter).staging, closed);
  await closing;
  await adapter.close();
  assert.deepEqual(calls, ['adapter:stage-opened', 'close', 'discarded']);
  await assert.rejects(stage(adapter).staging, closed);
  await assert.rejects(adapter.survey(), closed);
});

test('a survey that is equal is the same object, with a frozen list', async () => {
  let configuration = 'c';
  const { adapter } = recorded({}, { survey: async () => ({ ...SURVEY, configuration }) });
  const first = await adapter.survey();
  assert.ok(Object.isFrozen(first.outlets));
  assert.equal(await adapter.survey(), first);
  configuration = 'other';
  assert.equal((await adapter.survey()).configuration, 'other');
});

test('a stage that has ended answers nothing, also after a promotion', async () => {
  const ends: ((held: Awaited<ReturnType<typeof hold>>) => Promise<unknown>)[] = [
    ({ stage: held }) => held.discard(),
    async ({ stage: held, proofs }) => held.promote(proofs.permit(await held.observe())),
  ];
  for (const end of ends) {
    const held = await hold(recorded().adapter);
    await end(held);
    for (const ask of ['read', 'observe', 'recheck'] as const)
      await assert.rejects(held.stage[ask]([]), /the stage is still held/, ask);
  }
});

test('an engine is not asked to read nothing', async () => {
  const never = async () => assert.fail('it was asked');
  const { adapter } = recorded({ read: never }, { read: never });
  assert.deepEqual(await adapter.read([]), []);
  assert.deepEqual(await (await hold(adapter)).stage.read([]), []);
});
