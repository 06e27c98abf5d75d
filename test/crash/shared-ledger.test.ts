// Goal: with the ledger in PostgreSQL, beside the business data, any process can finish what
// another one left, and one license buys one effect. Method: the cases of the crash matrix and of
// the contention tests on that ledger; real processes that share nothing but its address and keys.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Step } from '../../src/contract/steps.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { type OperationKind, WORLD_KINDS } from './backends/backend.ts';
import { postgresLedgerBackend } from './backends/postgres.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { type Child, Pool } from './pool.ts';
import { inGroups, type KillPlan, runKillCases, runStreamCase } from './scenario.ts';
import { type CaseResult, Scene } from './scene.ts';
import { RECOVERY_STEPS, RELEASE_STEPS } from './steps.ts';

const LANES = 2;
/** More by hand: EFFECTMATCH_CONTENDERS=64 EFFECTMATCH_OCCURRENCES=1000 node --test <this file> */
const CONTENDERS = Number(process.env.EFFECTMATCH_CONTENDERS ?? 8);
const OCCURRENCES = Number(process.env.EFFECTMATCH_OCCURRENCES ?? 25);
const ROUNDS = 10;
/**
 * Each decision about a contended license holds the ledger's turn for a round trip of its process.
 * Of very many processes on few cores the last one waits for longer than the usual 30 seconds.
 */
const PATIENCE_MS = 10_000 * CONTENDERS;
const STREAMS = 4;
const seed = chooseSeed();
let pool: Pool;
let template: Template;

before(async () => {
  pool = new Pool(CONTENDERS + 2);
  template = await createTemplate(postgresLedgerBackend, WORLD_KINDS);
});
after(async () => {
  await pool.close();
  await template[Symbol.asyncDispose]();
});

async function runAll<T>(
  cases: readonly T[],
  run: (installation: Installation, item: T) => Promise<CaseResult>,
): Promise<number> {
  let kills = 0;
  await runLanes(cases, LANES, async (item) => {
    await using installation = await template.copy();
    const result = await run(installation, item);
    assert.deepEqual(result.violations, [], `seed ${seed}, case ${JSON.stringify(item)}`);
    kills += result.kills;
  });
  return kills;
}

/** The steps that an undisturbed execution takes. */
async function stepsOf(kind: OperationKind): Promise<readonly Step[]> {
  await using installation = await template.copy();
  const child = await pool.take();
  await child.ask('open', { site: installation.site });
  await child.ask('execute', { operation: installation.operationOf(kind) });
  const steps = await child.ask('steps', {});
  await pool.give(child);
  return steps;
}

const killCases = (installation: Installation, plans: readonly KillPlan[]) =>
  runKillCases(pool, installation, plans);

test('a process killed at any step of an execution leaves the approved outcome once, or nothing', async () => {
  const kinds = ['append', 'surprise', 'failing'] as const;
  const steps = new Map<OperationKind, readonly Step[]>();
  for (const kind of kinds) steps.set(kind, await stepsOf(kind));
  // One kind at each step, and at the next step the next kind that reaches it.
  const cases = (steps.get('append') ?? []).flatMap((execute, index): KillPlan[] => {
    const reaching = kinds.filter((kind) => steps.get(kind)?.includes(execute));
    const kind = reaching[index % reaching.length];
    return kind === undefined ? [] : [{ kind, execute, recover: [], release: [] }];
  });
  cases.push({ kind: 'surprise', execute: 'path:discarded', recover: [], release: [] });
  assert.equal(await runAll(inGroups(cases), killCases), cases.length);
});

test('a recovery or release killed at any of its steps is finished by the next process', async () => {
  const recoveries = RECOVERY_STEPS.map((step): KillPlan => {
    return { kind: 'derive', execute: 'adapter:commit-returned', recover: [step], release: [] };
  });
  const releases = RELEASE_STEPS.map((step): KillPlan => {
    return { kind: 'append', execute: undefined, recover: [], release: [step] };
  });
  await runAll([...recoveries.map((plan) => [plan]), ...inGroups(releases)], killCases);
});

test('a stream of operations cut off at random moments loses and repeats nothing', async () => {
  const cases = Array.from({ length: 4 }, (_, index) => `${seed}/stream/${index}`);
  await runAll(cases, (installation, label) => runStreamCase(pool, installation, randomOf(label)));
});

test(`${CONTENDERS} processes race one license ${ROUNDS} times: one effect, each time`, async () => {
  const kinds = Array.from({ length: ROUNDS }, (): OperationKind => 'append');
  await using contended = await createTemplate(postgresLedgerBackend, kinds);
  await using installation = await contended.copy();
  await using scene = new Scene(pool, installation);
  const children: Child[] = [];
  const site = { ...installation.site, patienceMs: PATIENCE_MS };
  await runLanes([...Array(CONTENDERS).keys()], 4, async () => {
    children.push(await scene.fresh({ site }));
  });
  for (const operation of installation.operations) {
    await Promise.all(children.map((child) => child.ask('load', { operation })));
    const terminals = await Promise.all(children.map((child) => child.ask('fire', {})));
    const ends = terminals.map((end) => (end.kind === 'rejected' ? end.reason : end.kind));
    assert.deepEqual(ends.sort(), ['committed', ...Array(CONTENDERS - 1).fill('spent')]);
  }
  await Promise.all(children.map((child) => scene.done(child)));
  await scene.compare({ stage: 'settled' });
  assert.deepEqual(scene.violations, [], `seed ${seed}`);
});

test(`${STREAMS} processes work through the same ${OCCURRENCES} licenses: one effect, verdict and release of each`, async () => {
  const kinds = Array.from({ length: OCCURRENCES }, (): OperationKind => 'append');
  await using shared = await createTemplate(postgresLedgerBackend, kinds);
  await using installation = await shared.copy();
  await using scene = new Scene(pool, installation);
  const { operations, releases } = installation;
  const children = await Promise.all(Array.from({ length: STREAMS }, () => scene.fresh()));
  const work = async (child: Child) => {
    for (let from = 0; from < operations.length; from += 25)
      await child.ask('stream', { operations: operations.slice(from, from + 25), releases });
  };
  await Promise.all(children.map(work));
  const released = operations.map(({ n }) => n);
  const { journals, markers, state } = await scene.compare({ stage: 'settled', released });
  assert.deepEqual(scene.violations, []);
  const count = (kind: string) =>
    journals.flat().filter(({ record }) => record.kind === kind).length;
  assert.equal(count('committed'), OCCURRENCES);
  assert.equal(markers.length, OCCURRENCES);
  assert.equal(state.filter((line) => line.startsWith('entry')).length, OCCURRENCES);
  await Promise.all(children.map((child) => scene.done(child)));
});

test('each of two app servers ends what the other left, sees its verdicts and releases its work', async () => {
  await using installation = await template.copy();
  await using scene = new Scene(pool, installation);
  const { releases } = installation;
  const [first, second, ...more] = installation.operations.filter(({ kind }) => kind === 'append');
  assert.ok(first && second, `${more.length} more`);
  const [one, two] = [await scene.fresh(), await scene.fresh()];
  for (const [dying, living, operation, step, end] of [
    ['one', two, first, 'adapter:commit-returned', 'committed'],
    ['two', one, second, 'path:gate-passed', 'rejected'],
  ] as const) {
    assert.equal(await scene.dieAt(step, 'execute', { operation }), true, dying);
    const [recovered] = await living.ask('recover', {});
    assert.ok(recovered?.kind === 'settled' && recovered.terminal.kind === end);
    const other = living === one ? two : one;
    assert.deepEqual(await other.ask('terminal', { operation }), recovered.terminal);
    const released = await other.ask('release', { operation, releases });
    assert.equal(released.kind, end === 'committed' ? 'released' : 'halted');
  }
  await scene.compare({ stage: 'settled', released: [first.n] });
  assert.deepEqual(scene.violations, []);
});
