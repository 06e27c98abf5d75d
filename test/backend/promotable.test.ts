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
import type {
  CallAnswer,
  PromotableAdapter,
  Promotion,
  Survey,
} from '../../src/contract/adapter.ts';
import { systemClock } from '../../src/contract/clock.ts';
import type { ConsumedPermit } from '../../src/contract/proof.ts';
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

test('what an engine reads and what an action returns is handed on', async () => {
  const answers = [{ target: 't', key: { id: 1 }, row: null }];
  const reads = [{ target: 't', key: { id: 1 } }];
  const results = [{ rows: [{ id: 1 }] }] as never;
  const read = async () => answers;
  const { adapter } = recorded({ read, apply: async () => ({ kind: 'done', results }) }, { read });
  assert.equal(await adapter.read(reads), answers);
  const { stage: held } = await hold(adapter);
  assert.equal(await held.read(reads), answers);
  assert.equal(held.results, results);
});

test('an engine is not asked to read nothing', async () => {
  const never = async () => assert.fail('it was asked');
  const { adapter } = recorded({ read: never }, { read: never });
  assert.deepEqual(await adapter.read([]), []);
  assert.deepEqual(await (await hold(adapter)).stage.read([]), []);
});

const LONG = `no ${'x'.repeat(2000)}`;

test('optional parts of a backend are there if it has them, and otherwise absent', () => {
  const parts = {
    ...{ readsMany: true as const, taskMaxMs: 5 },
    query: async () => ({}) as never,
    explainChange: () => ({}) as never,
    commitLog: () => undefined,
    settingRefusal: () => undefined,
    joinActions: () => 'joined',
  } as const;
  const names = [...Object.keys(parts), 'hold'];
  const present = (adapter: object) => names.filter((name) => name in adapter).sort();
  assert.deepEqual(present(recorded().adapter), []);
  assert.deepEqual(present(recorded({}, { holdsTasks: true }).adapter), ['hold']);
  const full = recorded({}, { ...parts, holdsTasks: true }).adapter;
  assert.deepEqual(present(full), names.toSorted());
});

test('a failure is reported as it is, without a residue that there is not', async () => {
  const failing = { apply: async () => stageFailed('action-failed', 'no') };
  const failed = await stage(recorded(failing).adapter).staging;
  assert.deepEqual(failed, { kind: 'failed', reason: 'action-failed', detail: 'no' });
  const { adapter } = recorded({}, { hold: async () => stageFailed('gone', LONG) });
  const unheld = await stage(adapter).staging;
  assert.deepEqual(unheld, { kind: 'failed', reason: 'gone', detail: LONG.slice(0, 1000) });
});

test('an error of the shared driver gets the code of the adapter, and one about the adapter keeps its own', async () => {
  const told = async (error: unknown) => {
    const { adapter } = recorded({ apply: () => Promise.reject(error) });
    return await stage(adapter).staging.catch(({ code, message }) => [code, message]);
  };
  const unavailable = 'ERR_EM_ADAPTER_UNAVAILABLE';
  const words = (what: string) => `the backend could not be used: ${what}`;
  assert.deepEqual(await told('odd'), [unavailable, words('odd')]);
  const busy = new EffectMatchError('ERR_EM_STORE_BUSY', 'locked');
  assert.deepEqual(await told(busy), [unavailable, words('locked')]);
  const own = new EffectMatchError('ERR_EM_ADAPTER_REFUSED', 'not this table');
  assert.deepEqual(await told(own), ['ERR_EM_ADAPTER_REFUSED', 'not this table']);
});

test('the first error is reported, whatever happens when the candidate ends', async () => {
  const end = () => Promise.reject(new Error('not now'));
  const apply = () => Promise.reject(new Error('first'));
  await assert.rejects(stage(recorded({ apply, end }).adapter).staging, /first/);
  const { adapter } = recorded({ end }, { holdsTasks: true });
  const closing = holdTask(adapter);
  await adapter.close();
  await assert.rejects(closing, /the adapter is closed/);
});

/** A permit that fits, with parts of its record, of what it binds, or of its marker replaced. */
function altered(permit: ConsumedPermit, record: object, bound: object = {}, marker: object = {}) {
  const changed = { ...permit.record, ...record, bound: { ...permit.record.bound, ...bound } };
  return { ...permit, record: changed, marker: { ...permit.marker, ...marker } } as ConsumedPermit;
}

const MISMATCHES: Readonly<Record<string, (permit: ConsumedPermit) => ConsumedPermit>> = {
  'another occurrence': (permit) => altered(permit, { occurrence: 'other' }),
  'another execution': (permit) => altered(permit, { execution: 'other' }),
  'another claim': (permit) => altered(permit, { claim: 'other' }),
  'another certificate': (permit) => altered(permit, { certificate: 'other' }),
  'a request': (permit) =>
    ({ ...permit, record: { ...permit.record, bound: { request: 'r' } } }) as never,
  'another candidate': (permit) => altered(permit, {}, { candidate: 'other' }),
  'other evidence': (permit) => altered(permit, {}, { evidence: 'other' }),
  'another marker': (permit) => altered(permit, {}, {}, { occurrence: 'other' }),
};

for (const [what, alter] of Object.entries(MISMATCHES)) {
  test(`a permit for ${what} is refused as that, and the candidate ends`, async () => {
    const { calls, adapter } = recorded();
    const { stage, proofs } = await hold(adapter);
    assert.deepEqual(await stage.promote(alter(proofs.permit(await stage.observe()))), {
      kind: 'refused',
      reason: 'permit-mismatch',
      detail: `the permit is for ${what}; nothing was promoted`,
    });
    assert.equal(calls.at(-1), 'discarded');
  });
}

test('a void marker is no marker of a commit', async () => {
  const { stage, proofs } = await hold(recorded().adapter);
  const permit = proofs.permit(await stage.observe());
  const promotion = await stage.promote(altered(permit, {}, {}, { disposition: 'void' }));
  assert.ok(promotion.kind === 'refused');
  assert.match(promotion.detail, /another marker/);
});

test('the permit for an observed candidate promotes, also after a recheck that found the same', async () => {
  for (const rechecks of [0, 1]) {
    const { stage, proofs } = await hold(recorded().adapter);
    const permit = proofs.permit(await stage.observe());
    for (let count = 0; count < rechecks; count += 1) await stage.recheck();
    assert.equal((await stage.promote(permit)).kind, 'confirmed');
  }
});

test('without an observation, or after a recheck that found something else, every permit is refused', async () => {
  for (const isObserved of [false, true]) {
    for (const evidence of ['evidence', 'other', undefined]) {
      const recheck = async () => (isObserved ? 'other' : 'evidence');
      const { stage, proofs } = await hold(recorded({ recheck }).adapter);
      const fits = proofs.permit({ candidate: 'candidate', evidence: 'evidence' });
      if (isObserved) await stage.observe();
      await stage.recheck();
      const promotion = await stage.promote(altered(fits, {}, { evidence }));
      assert.ok(promotion.kind === 'refused');
      assert.match(promotion.detail, /not observed, or that changed/);
    }
  }
});

test('an observation after a recheck that found something else makes the candidate promotable again', async () => {
  let evidence = 'evidence';
  const observe = async () => ({ ...EVIDENCE, evidence });
  const { stage, proofs } = await hold(recorded({ observe, recheck: async () => 'other' }).adapter);
  await stage.observe();
  await stage.recheck();
  evidence = 'other';
  assert.equal((await stage.promote(proofs.permit(await stage.observe()))).kind, 'confirmed');
});

test('a stage that is disposed of ends its candidate', async () => {
  const { calls, adapter } = recorded();
  const disposed = await hold(adapter);
  await disposed.stage[Symbol.asyncDispose]();
  assert.equal(calls.at(-1), 'discarded');
});

test('while a promotion is under way the stage answers nothing, and a long refusal is cut', async () => {
  let finish: (promotion: Promotion) => void = () => {};
  const { adapter } = recorded({ commit: () => new Promise((resolve) => (finish = resolve)) });
  const held = await hold(adapter);
  const promoting = held.stage.promote(held.proofs.permit(await held.stage.observe()));
  await assert.rejects(held.stage.observe(), /the stage is still held/);
  finish({ kind: 'refused', reason: 'r', detail: LONG });
  assert.deepEqual(await promoting, { kind: 'refused', reason: 'r', detail: LONG.slice(0, 1000) });
});

test('a survey that is the same object is not compared, and an absent marker stays absent', async () => {
  const toJSON = () => assert.fail('it was serialised');
  const survey = Object.assign({ ...SURVEY }, { toJSON });
  const markers = { find: async () => undefined, void: async () => ({ kind: 'inserted' }) };
  const parts = { survey: async () => survey, markers: markers as never };
  const { adapter } = recorded({}, parts);
  assert.equal(await adapter.survey(), await adapter.survey());
  assert.equal(await adapter.markers.find('o' as never), undefined);
  assert.deepEqual(await adapter.markers.void({} as never), { kind: 'inserted' });
});

/** Opens a task on an adapter whose backend holds tasks. */
async function holdTask(adapter: PromotableAdapter<string>) {
  const { claim, certificate } = mintProofs(adapter as PromotableAdapter, 'task');
  const held = await adapter.hold?.(claim, certificate, {
    ...{ reads: [], settings: {}, deadlineMs: 1000 },
  });
  assert.ok(held !== undefined);
  return held;
}

async function openTask(changes: Partial<Candidate<string>>) {
  const { adapter, calls } = recorded(changes, { holdsTasks: true });
  const held = await holdTask(adapter);
  assert.ok(held.kind === 'held');
  return { task: held.stage, calls };
}

test('a task is not opened where nothing is held, or on an occurrence that has a marker', async () => {
  const failing = recorded({}, { holdsTasks: true, hold: async () => stageFailed('gone', LONG) });
  const failed = await holdTask(failing.adapter);
  assert.deepEqual(failed, { kind: 'failed', reason: 'gone', detail: LONG.slice(0, 1000) });
  const ended: string[] = [];
  const end = async (how: string) => void ended.push(how);
  const marker = { disposition: 'committed' } as const;
  const candidate = { end } as unknown as Candidate<string>;
  const decided = async () => ({ kind: 'open', candidate, marker }) as const;
  const refused = await holdTask(recorded({}, { holdsTasks: true, hold: decided }).adapter);
  assert.equal(refused.kind === 'failed' && refused.reason, 'already-committed');
  assert.deepEqual(ended, ['discarded']);
});

test('calls of a task are answered until it is complete or over, and a failure is cut', async () => {
  const answers: CallAnswer[] = [{ kind: 'done' }, stageFailed('action-failed', LONG)];
  const call = async () => answers.shift() ?? assert.fail('one call too many');
  const complete = async () => stageFailed('late', LONG);
  const { task, calls } = await openTask({ call, complete });
  assert.deepEqual(await task.call('one'), { kind: 'done' });
  const cut = { kind: 'failed', detail: LONG.slice(0, 1000) };
  assert.deepEqual(await task.call('two'), { ...cut, reason: 'action-failed' });
  assert.deepEqual(await task.complete(), { ...cut, reason: 'late' });
  await assert.rejects(task.call('three'), /calls come before the stage is complete/);
  const steps = ['adapter:stage-opened', 'adapter:action-done', 'adapter:action-done'];
  assert.deepEqual(calls, steps);
  const over = await openTask({ call });
  await over.task.discard();
  await assert.rejects(over.task.call('four'), /the stage is still held/);
  const bare = await openTask({});
  await assert.rejects(bare.task.call('five'), /a candidate for a task takes calls/);
  assert.deepEqual(await bare.task.complete(), { kind: 'done' });
});
