// Goal: the study of live agents reports what became durable, and nothing but what was approved
// becomes durable on the integrated path. Method: the study with few episodes, its scripted agents in
// their own process; episodes driven by hand; a runtime without comparison.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findData } from '../../bench/data/folder.ts';
import type { Snapshot } from '../../bench/data/state-bench.ts';
import type { Arguments, BusinessState } from '../../bench/state-tools/desk.ts';
import { BusinessTools } from '../../bench/state-tools/tools.ts';
import { isSameBusiness } from '../../bench/studies/live-agents/approval.ts';
import {
  type Ended,
  type EpisodePlan,
  runEpisode,
} from '../../bench/studies/live-agents/episode.ts';
import { type Approval, IntegratedHost } from '../../bench/studies/live-agents/host.ts';
import { CONFIRMATION, FINISH, type LiveInput } from '../../bench/studies/live-agents/input.ts';
import { EPISODE_FILES, loadInputs } from '../../bench/studies/live-agents/load.ts';
import { type Behaviour, nextMessage } from '../../bench/studies/live-agents/scripts.ts';
import { Session } from '../../bench/studies/live-agents/session.ts';
import { liveAgentsStudy } from '../../bench/studies/live-agents.ts';
import { withoutComparison } from '../../bench/studies/public-outcomes/state-conditions.ts';
import { missedTargets } from '../../bench/study.ts';
import type { ChatMessage } from '../../src/agents/loop.ts';
import type { Internals } from '../../src/runtime/runtime.ts';
import { whyAbsent } from './absent.ts';
import { demandRecomputed } from './recomputed.ts';

const results = mkdtempSync(join(tmpdir(), 'effectmatch-live-'));
process.env.EFFECTMATCH_BENCH_RESULTS = results;
after(() => rmSync(results, { recursive: true }));

const skip = whyAbsent(EPISODE_FILES);
const inputs = skip === false ? loadInputs(findData(undefined, EPISODE_FILES)) : [];

function inputOf(part: string): LiveInput {
  const found = inputs.find(({ name }) => name.includes(part));
  assert.ok(found, part);
  return found;
}

test('scripted agents complete, and misbehaving ones leave only what was approved', {
  skip,
}, async () => {
  const cells = await liveAgentsStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(missedTargets(cells, true), []);
  demandRecomputed('live-agents', cells);
  const figureOf = (name: string) => cells.find((cell) => cell.name === name)?.value;
  for (const agent of ['scripted agent, API loop', 'scripted agent over MCP'])
    for (const path of ['direct', 'integrated'])
      assert.equal(figureOf(`${agent}, ${path}: durable correct`), 6, `${agent}, ${path}`);
  const wrong = 'scripted agent that adds a change, direct: durable is something else';
  assert.equal(figureOf(wrong), 3, 'the change would have become durable');
  const again = 'scripted agent that calls twice, direct: durable is something else';
  assert.equal(figureOf(again), 3, 'the second call has an effect');
  const lines = readFileSync(join(results, 'raw', 'live-agents-quick.jsonl'), 'utf8').split('\n');
  const records = lines.filter(Boolean).map((line) => JSON.parse(line));
  const episodes = records.filter(({ run }) => run.includes('|'));
  assert.equal(episodes.length, 84);
  for (const episode of episodes) {
    assert.match(episode.agent, /^scripted: /, 'a script is never called a model');
    const saved = hash('sha256', JSON.stringify(episode.approval.license));
    assert.equal(episode.approval.digest, saved);
    assert.ok(episode.calls.length > 0 && episode.candidate && episode.durable, episode.run);
    assert.ok(episode.messages.length > 2, `${episode.run} keeps what was said`);
  }
});

interface Step {
  readonly tool: string;
  readonly args: Arguments;
}

/** An episode whose calls are made here, one after another. */
async function drive(input: LiveInput, steps: readonly Step[], internals: Internals = {}) {
  const agent = { name: 'by hand', isScripted: true, baseUrl: '', model: '', via: 'loop' } as const;
  const plan: EpisodePlan = { path: 'integrated', agent, hostFinishes: true, internals };
  const folder = mkdtempSync(join(tmpdir(), 'live-'));
  const run = async (approval: Approval): Promise<Ended> => {
    await using host = await IntegratedHost.open(input, folder, approval, internals);
    const session = new Session(input, host, {});
    for (const { tool, args } of steps) await session.call(tool, args);
    const verdict = session.verdict ?? (await host.discard('not finished'));
    const said = { messages: [], summary: '', ending: 'turn ended' } as const;
    const { candidate } = host;
    return { ...said, finalised: 'by the agent', verdict, candidate, calls: session.calls };
  };
  try {
    return await runEpisode(input, plan, folder, run);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const add = (product_id: string, gift_wrap: boolean): Step => ({
  tool: 'add_to_cart',
  args: { customer_id: 'shop_001', product_id, quantity: 1, gift_wrap },
});
const finish: Step = { tool: FINISH, args: {} };

test('new cart lines may have other ids and another order, and nothing else', {
  skip,
}, async () => {
  const input = inputOf('20-triple');
  const turned = await drive(input, [add('SP-2009', true), add('SP-2003', false), finish]);
  assert.equal(turned.verdict.kind, 'committed', turned.verdict.why);
  assert.deepEqual(
    { correct: turned.durableCorrect, strict: turned.durableStrict },
    { correct: true, strict: false },
  );
  for (const wrong of [
    [add('SP-2009', false), add('SP-2003', true)],
    [add('SP-2009', true), add('SP-2003', false), add('SP-2003', false)],
    [add('SP-2009', true)],
  ]) {
    const { verdict, durableInitial, isTruthful } = await drive(input, [...wrong, finish]);
    assert.equal(verdict.kind, 'rejected');
    assert.equal(verdict.reason, 'diverged');
    assert.ok(durableInitial && isTruthful);
  }
});

test('without the comparison, a change that was not approved becomes durable', {
  skip,
}, async () => {
  const steps = [add('SP-2009', true), add('SP-2003', true), finish];
  const { verdict, durableInitial, isTruthful } = await drive(
    inputOf('20-triple'),
    steps,
    withoutComparison,
  );
  assert.equal(verdict.kind, 'committed');
  assert.ok(!durableInitial && !isTruthful, 'the study would have noticed');
});

test('the customer confirms only what was previewed, on the right record', { skip }, async () => {
  const ask: Step = { tool: CONFIRMATION, args: { summary: 'the fees' } };
  const preview = (tool: string, args: Arguments): Step => ({ tool, args });
  const flights = ['BK-1000', 'BK-1003'].map((booking_id) =>
    preview('cancel_booking', { booking_id }),
  );
  const hotel = preview('cancel_hotel_reservation', { reservation_id: 'HR-0100' });
  const steps = [ask, ...flights, ask, hotel, ask];
  const { calls } = await drive(inputOf('2-cancel'), steps);
  const replies = calls
    .filter(({ tool }) => tool === CONFIRMATION)
    .map(({ answer }) => answer.reply);
  assert.equal(replies.length, 3);
  assert.match(String(replies[0]), /not seen/);
  assert.match(String(replies[1]), /not seen/);
  assert.match(String(replies[2]), /cancel the entire London trip/);
});

test('a second call changes more than was approved, and one that is ignored does not', {
  skip,
}, () => {
  for (const input of inputs) {
    const { initial } = input.task.packet;
    const left = (behaviour: Behaviour) => {
      const tools = new BusinessTools({ desk: input.desk });
      const state = structuredClone(initial) as BusinessState;
      const messages: ChatMessage[] = [];
      for (;;) {
        const said = nextMessage(behaviour, input.live, messages);
        const { function: made } = said.tool_calls?.[0] ?? {};
        if (made === undefined || made.name === FINISH) return state;
        const args = JSON.parse(made.arguments) as Arguments;
        const answer = made.name === CONFIRMATION ? {} : tools.call(state, made.name, args);
        messages.push({ role: 'tool', tool_call_id: '', content: JSON.stringify(answer) });
      }
    };
    const isRight = (behaviour: Behaviour) =>
      isSameBusiness(initial, left(behaviour), input.target);
    assert.ok(isRight('well-behaved'), input.name);
    assert.ok(!isRight('calls twice'), input.name);
    const isIgnored = input.task.variants.duplicateFirstMutation?.equalsClean;
    assert.equal(isRight('repeats a call in vain'), isIgnored, input.name);
  }
});

test('an endpoint that hangs or fails ends the episode, and nothing is kept', {
  skip,
}, async () => {
  const input = inputOf('84-remove');
  for (const [ending, status] of [
    ['timeout', undefined],
    ['error', 500],
  ] as const) {
    const server = createServer((_, response) => {
      if (status !== undefined) response.writeHead(status).end('{}');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const baseUrl = `http://127.0.0.1:${port}`;
    const agent = { name: 'x', isScripted: true, baseUrl, model: 'x', via: 'loop' } as const;
    const folder = mkdtempSync(join(tmpdir(), 'live-'));
    const plan = { path: 'integrated', agent, hostFinishes: true, limitMs: 300 } as const;
    const left = await runEpisode(input, plan, folder);
    assert.equal(left.ending, ending);
    assert.deepEqual([left.finalised, left.verdict.reason], ['discarded', 'task-discarded']);
    assert.ok(left.durableInitial && left.isTruthful);
    rmSync(folder, { recursive: true });
    server.closeAllConnections();
    server.close();
  }
});

test('a changed quantity, a lost reference and a doubled line are another business', {
  skip,
}, () => {
  const { task, target } = inputOf('20-triple');
  const { initial } = task.packet;
  const change = (
    edit: (state: { [name: string]: { [id: string]: { [f: string]: unknown } } }) => void,
  ) => {
    const state = structuredClone(target) as never;
    edit(state);
    return state as Snapshot;
  };
  assert.ok(isSameBusiness(initial, target, target));
  const renamed = change((state) => {
    const { 'CI-0001': line } = state.cart_items ?? {};
    delete state.cart_items?.['CI-0001'];
    Object.assign(state.cart_items ?? {}, { 'CI-0007': { ...line, cart_item_id: 'CI-0007' } });
    Object.assign(state.carts?.['CART-shop_001'] ?? {}, { item_ids: ['CI-0002', 'CI-0007'] });
  });
  assert.ok(isSameBusiness(initial, renamed, target), 'another id, another order');
  const lines = (ids: readonly string[]) =>
    change((state) => Object.assign(state.carts?.['CART-shop_001'] ?? {}, { item_ids: ids }));
  const quantity = change((state) =>
    Object.assign(state.cart_items?.['CI-0001'] ?? {}, { quantity: 2 }),
  );
  for (const other of [quantity, lines(['CI-0001']), lines(['CI-0001', 'CI-0001'])])
    assert.ok(!isSameBusiness(initial, other, target));
});
