// Goal: whatever an agent and its host do with tasks, what is durable is the approval or the initial
// state, and the journal says which. Method: random sequences of calls that succeed, fail, do too
// much or too little, ends, timeouts and a second task at the same time, on every real backend; a
// model of two sentences predicts the verdict. (Kills: test/crash/tasks.test.ts.)
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../src/contract/clock.ts';
import { approver, generateApprover } from '../../src/index.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import type { Task } from '../../src/runtime/task.ts';
import { openBench } from '../../src/testing/adapter/kit.ts';
import type { AdapterKit } from '../../src/testing/index.ts';
import { filesKit } from '../adapters/files-kit.ts';
import { mysqlKit } from '../adapters/mysql-kit.ts';
import { postgresKit } from '../adapters/postgres-kit.ts';
import { snapshotKit } from '../adapters/snapshot-kit.ts';
import { sqliteKit } from '../adapters/sqlite-kit.ts';
import { testKeyring } from '../keyring.ts';
import { skipWithoutMariadb } from '../mysql/binaries.ts';
import { chooseSeed, randomOf, runsOf } from '../random.ts';

const CALLS = ['effect', 'extra', 'failing', 'nonsense'] as const;
const ENDS = ['finish', 'discard', 'timeout', 'interrupt', 'close'] as const;
type Call = (typeof CALLS)[number];

const script = fc.record({
  calls: fc.array(fc.constantFrom<Call>('effect', 'effect', 'failing', ...CALLS), { maxLength: 5 }),
  end: fc.constantFrom('finish', 'finish', 'finish', ...ENDS),
  /** Whether calls and the end are sent without waiting for each other. */
  together: fc.boolean(),
  /** Whether the same license is presented a second time meanwhile. */
  twice: fc.boolean(),
  /** Whether a task with its own license does the same thing meanwhile. */
  rival: fc.boolean(),
});
type Script = ReturnType<typeof script.generate>['value'];

interface Tried {
  readonly kit: AdapterKit;
  readonly runs: number;
  /** A snapshot counts what its tools do, so there the effect must not be repeated. */
  readonly isCounted?: boolean;
  readonly skip?: string | false;
}

const KITS: Readonly<Record<string, Tried>> = {
  sqlite: { kit: sqliteKit, runs: 20 },
  files: { kit: filesKit, runs: 10 },
  snapshot: { kit: snapshotKit, runs: 5, isCounted: true },
  postgres: { kit: postgresKit('read committed'), runs: 6 },
  mariadb: { kit: mysqlKit(), runs: 5, skip: skipWithoutMariadb() },
};

const key = generateApprover('team');
const keyring = testKeyring();

/** It commits if it was finished, did the effect, and did nothing more. */
function isExpected({ calls, end }: Script, isCounted: boolean): boolean {
  const effects = calls.filter((call) => call === 'effect').length;
  const isDone = isCounted ? effects === 1 : effects > 0;
  return end === 'finish' && isDone && !calls.includes('extra');
}

/** A second task; one that its runtime was closed under has done nothing. */
async function startRival(runtime: Runtime, license: unknown, action: unknown) {
  try {
    const { kind } = await runtime.task(license, (task) => task.call(action));
    return kind;
  } catch {
    return 'closed';
  }
}

async function play(kit: AdapterKit, plan: Script, after: unknown): Promise<string> {
  const specimen = await kit.fresh();
  const folder = mkdtempSync(join(tmpdir(), 'task-properties-'));
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const before = await specimen.readDurable();
  const runtime = await createRuntime(
    {
      store: join(folder, 'effectmatch.db'),
      keyring,
      issuers: { team: { key: key.publicKey, may: ['it'] } },
      adapters: { it: specimen.factory },
      restageMs: 0,
    },
    { clock },
  );
  try {
    const approve = async (name: string) => {
      const effects = specimen.effect.leaves;
      const terms = { adapter: 'it', task: name, planRevision: 1, effects };
      return approver(key).sign(await runtime.prepare(terms), { expiresIn: '1h' });
    };
    const license = await approve('first');
    const rivals = await approve('rival');
    const stop = new AbortController();
    const task = await runtime.open(license, { signal: stop.signal });
    assert.ok(task.kind === 'open', JSON.stringify(task));
    const actions = { ...specimen, effect: specimen.effect.action, nonsense: { nonsense: true } };
    const made = [];
    const effect = specimen.effect.action;
    const rival = plan.rival ? startRival(runtime, rivals, effect) : undefined;
    for (const call of plan.calls) {
      const calling = task.call(actions[call]);
      made.push(calling);
      if (!plan.together) await calling;
    }
    const second = plan.twice ? await runtime.open(license) : undefined;
    assert.notEqual(second?.kind, 'open', 'a license opens one task');
    if (!plan.together || plan.end !== 'finish') await Promise.all(made);
    if (plan.end === 'timeout') aheadMs = 120_000;
    if (plan.end === 'interrupt') stop.abort();
    if (plan.end === 'discard') await task.discard();
    if (plan.end === 'close') await runtime.close();
    const terminal: Terminal = await (plan.end === 'close' ? task.ended : (task as Task).finish());
    const ends = [terminal.kind, await rival];
    const isDone = ends.includes('committed');
    assert.notDeepEqual(ends, ['committed', 'committed'], 'the same thing is done once');
    assert.deepEqual(await specimen.readDurable(), isDone ? after : before, ends.join());
    return terminal.kind;
  } finally {
    await runtime.close();
    await specimen.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const [name, { kit, runs: usual, isCounted = false, skip = false }] of Object.entries(KITS)) {
  const claim = `property: on ${name} a task leaves the approval or the initial state`;
  test(claim, { skip }, async () => {
    const done: Omit<Script, 'rival'> = {
      ...{ calls: ['effect'], end: 'finish', together: false, twice: false },
    };
    const examples: [Script][] = [true, false].map((rival) => [{ ...done, rival }]);
    const after = await outcomeOf(kit);
    const seed = randomOf(`${chooseSeed()}/${name}`).below(2 ** 31);
    const property = fc.asyncProperty(script, async (plan) => {
      const kind = await play(kit, plan, after);
      const expected = isExpected(plan, isCounted) ? 'committed' : 'rejected';
      // A rival may hold the lock, or be first.
      if (!plan.rival || expected === 'rejected') assert.equal(kind, expected);
    });
    await fc.assert(property, { numRuns: runsOf(usual), seed, examples });
  });
}

/** What the effect leaves, promoted past the runtime. */
async function outcomeOf(kit: AdapterKit): Promise<unknown> {
  await using bench = await openBench(kit);
  const { stage, proofs } = await bench.hold('outcome');
  await stage.promote(proofs.permit(await stage.observe()));
  return await bench.specimen.readDurable();
}
