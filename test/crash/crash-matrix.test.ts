// Goal: wherever and whenever a process dies, the journal never contradicts what is durable, and
// nobody has to decide. Method: real processes end by SIGKILL at every named step and at random
// moments; fresh ones recover and release.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { STEPS, type Step } from '../../src/contract/steps.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { OPERATION_KINDS, type OperationKind, WORLD_KINDS } from './backends/backend.ts';
import { BACKENDS, MARIADB } from './backends/index.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { Pool } from './pool.ts';
import { type KillPlan, runKillCase, runStartCase, runStreamCase } from './scenario.ts';
import type { CaseResult } from './scene.ts';
import { RECOVERY_STEPS, RELEASE_STEPS, REMOTE_STEPS } from './steps.ts';

const LANES = 3;
const seed = chooseSeed();
const deaths = new Map<Step, number>();
const templates: Template[] = [];
const inTurnOnly: Template[] = [];
let pool: Pool;
let kills = 0;
let startedAt = 0;

before(async () => {
  pool = new Pool(14);
  for (const backend of BACKENDS) templates.push(await createTemplate(backend, WORLD_KINDS));
  for (const backend of MARIADB) inTurnOnly.push(await createTemplate(backend, WORLD_KINDS));
  startedAt = performance.now();
});

after(async () => {
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(
    `${kills} kills in ${seconds.toFixed(1)} s (${(kills / seconds).toFixed(1)} per second), seed ${seed}`,
  );
  await pool.close();
  for (const template of [...templates, ...inTurnOnly]) await template[Symbol.asyncDispose]();
});

/** A case and the installation that it begins in. */
interface Placed<T> {
  readonly item: T;
  readonly template: Template;
}

/** Runs cases on copies of their templates and fails with the first installation that is not sound. */
async function runAll<T>(
  cases: readonly Placed<T>[],
  run: (installation: Installation, item: T) => Promise<CaseResult>,
): Promise<number> {
  let died = 0;
  await runLanes(cases, LANES, async ({ item, template }) => {
    await using installation = await template.copy();
    const result = await run(installation, item);
    const where = `${installation.backend.name}, seed ${seed}, case ${JSON.stringify(item)}`;
    assert.deepEqual(result.violations, [], where);
    for (const step of result.died) deaths.set(step, (deaths.get(step) ?? 0) + 1);
    died += result.kills;
  });
  kills += died;
  return died;
}

/** Every case once, the backends in turn. */
function inTurn<T>(cases: readonly T[]): readonly Placed<T>[] {
  const all = [...templates, ...inTurnOnly];
  return cases.flatMap((item, index) => {
    const template = all[index % all.length];
    return template === undefined ? [] : [{ item, template }];
  });
}

/** Every case once on every backend. */
function onEveryBackend<T>(cases: readonly T[]): readonly Placed<T>[] {
  return cases.flatMap((item) => templates.map((template) => ({ item, template })));
}

const IN_TURN = ['snapshot', 'postgres'];
const takesTurns = ({ backend }: Template) => IN_TURN.includes(backend.name);

/** The steps that an undisturbed execution takes, in the order of the list. */
async function stepsOf(kind: OperationKind): Promise<readonly Step[]> {
  const template = templates[0];
  assert.ok(template);
  await using installation = await template.copy();
  const child = await pool.take();
  await child.ask('open', { site: installation.site });
  await child.ask('execute', { operation: installation.operationOf(kind) });
  const steps = await child.ask('steps', {});
  await pool.give(child);
  return steps;
}

test('a process killed at any step of an execution leaves the approved outcome once, or nothing', async () => {
  const cases: KillPlan[] = [];
  for (const kind of OPERATION_KINDS) {
    for (const execute of await stepsOf(kind))
      cases.push({ kind, execute, recover: [], release: [] });
  }
  // `derive` and `bulk` take the same steps as `append`: one backend has them at every step, and
  // streams and recoveries have them on all. Backends that take long to open have one kind at each
  // step, and at the next step the next kind that reaches it.
  const placed = onEveryBackend(cases).filter(
    ({ item, template }) =>
      template === templates[0] ||
      (!takesTurns(template) && item.kind !== 'derive' && item.kind !== 'bulk'),
  );
  for (const [index, execute] of (await stepsOf('append')).entries()) {
    const reaching = cases.filter((one) => one.execute === execute);
    const slow = [...templates.filter(takesTurns), ...inTurnOnly];
    for (const [at, template] of slow.entries()) {
      const item = reaching[(index + at) % reaching.length];
      if (item !== undefined) placed.push({ item, template });
    }
  }
  const died = await runAll(placed, (installation, plan) => runKillCase(pool, installation, plan));
  assert.equal(died, placed.length);
});

test('a recovery killed at any of its steps is finished by the next one', async () => {
  const cases: KillPlan[] = [];
  const steps = await stepsOf('append');
  const unsettled = steps
    .slice(steps.indexOf('path:claimed'))
    .filter((step) => step !== 'path:terminal-recorded');
  for (const execute of unsettled) {
    for (const step of RECOVERY_STEPS)
      cases.push({ kind: 'append', execute, recover: [step], release: [] });
  }
  for (const step of RECOVERY_STEPS) {
    cases.push({ kind: 'surprise', execute: 'path:discarded', recover: [step], release: [] });
    cases.push({ kind: 'failing', execute: 'adapter:stage-opened', recover: [step], release: [] });
    cases.push({
      kind: 'bulk',
      execute: 'adapter:marker-written',
      recover: [step, ...RECOVERY_STEPS],
      release: [],
    });
    cases.push({
      kind: 'derive',
      execute: 'adapter:commit-returned',
      recover: [step, ...RECOVERY_STEPS],
      release: [],
    });
  }
  await runAll(inTurn(cases), (installation, plan) => runKillCase(pool, installation, plan));
});

test('dependent work runs at most once, whoever dies while releasing it', async () => {
  const cases: KillPlan[] = [];
  for (const step of RELEASE_STEPS) {
    cases.push({ kind: 'append', execute: undefined, recover: [], release: [step] });
    cases.push({
      kind: 'derive',
      execute: 'adapter:commit-returned',
      recover: [],
      release: ['continuation:checked', step],
    });
    cases.push({ kind: 'append', execute: 'path:staged', recover: [], release: [step] });
  }
  await runAll(onEveryBackend(cases), (installation, plan) =>
    runKillCase(pool, installation, plan),
  );
});

test('a stream of operations cut off at random moments loses and repeats nothing', async () => {
  const cases = Array.from({ length: 24 }, (_, index) => `${seed}/stream/${index}`);
  await runAll(inTurn(cases), (installation, label) =>
    runStreamCase(pool, installation, randomOf(label)),
  );
});

test('a process killed while it starts does not keep the next one from working', async () => {
  const cases = Array.from({ length: 12 }, (_, index) => `${seed}/start/${index}`);
  await runAll(inTurn(cases), (installation, label) =>
    runStartCase(pool, installation, randomOf(label)),
  );
});

test('every step was died at, except those of the remote path, in at least 500 real kills', () => {
  assert.deepEqual([...new Set([...deaths.keys(), ...REMOTE_STEPS])].sort(), [...STEPS].sort());
  assert.deepEqual(
    REMOTE_STEPS.filter((step) => deaths.has(step)),
    [],
  );
  assert.ok(kills >= 500, `only ${kills} kills`);
});
