// Goal: a server that is killed around COMMIT costs no verdict and no effect, and a `committed` is
// never taken back. Method: a real server is stopped at random moments around COMMIT and killed;
// processes recover together; rows are compared.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Step } from '../../src/contract/steps.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import type { OperationKind } from '../crash/backends/backend.ts';
import { postgresOn } from '../crash/backends/postgres.ts';
import { ADAPTER, ISSUER, type Operation } from '../crash/commands.ts';
import type { Facts } from '../crash/facts.ts';
import { createTemplate, type Installation, taskOf } from '../crash/installation.ts';
import { Pool } from '../crash/pool.ts';
import { claimedTasks, Scene } from '../crash/scene.ts';
import { EXECUTION_STEPS } from '../crash/steps.ts';
import { chooseSeed, type Random, randomOf } from '../random.ts';
import { Freezer } from './freeze.ts';
import { startServer } from './server.ts';

/**
 * Raised by whoever wants to look longer: EFFECTMATCH_SERVER_KILLS=200 node --test
 * test/postgres/server-crash.test.ts
 */
const KILLS = Number(process.env.EFFECTMATCH_SERVER_KILLS ?? 8);
/** At most so many more, each at COMMIT, until one was lost after it had become durable. */
const MORE_KILLS = 40;
const AT_ONCE = 5;
const KINDS: readonly OperationKind[] = ['append', 'derive', 'bulk'];
const LEDGER_KINDS: readonly OperationKind[] = [...KINDS, 'surprise'];
/** What ends the server: a crash, an immediate shutdown, an orderly restart. */
const ENDS = ['SIGKILL', 'SIGQUIT', 'SIGINT'] as const;
/** Steps that all operations take; the orders of these and of the ends have no common length. */
const STEPS_TAKEN = EXECUTION_STEPS.filter((step) => step !== 'path:discarded');
const seed = chooseSeed();
let pool: Pool;

before(() => {
  pool = new Pool(5);
});
after(() => pool.close());

test('a server killed around COMMIT leaves every operation settled as it really ended', async () => {
  await endServers(undefined);
});

test('a server that has the ledger too, killed or stopped at any step, loses no verdict and no effect', async () => {
  await endServers('ledger beside');
});

async function endServers(ledger: 'ledger beside' | undefined): Promise<void> {
  // On a disk a flush takes long enough for a server to die between it and its answer.
  delete process.env.EFFECTMATCH_SERVER_TMPDIR;
  // What is not flushed at once is lost with the server.
  await using server = await startServer({ settings: { wal_writer_delay: '10s' } });
  const mixed = ledger === undefined ? KINDS : LEDGER_KINDS;
  const kinds = Array.from(
    { length: (KILLS + MORE_KILLS) * (1 + AT_ONCE) },
    (_, index) => mixed[index % mixed.length] ?? 'append',
  );
  await using template = await createTemplate(
    postgresOn(() => server.createDatabase(), ledger),
    kinds,
  );
  await using installation = await template.copy();
  await using scene = new Scene(pool, installation);
  // The runtime that asks for all operations lives through every crash; those that recover are new
  // each time.
  let reached: (step: Step) => void = () => {};
  await using runtime = await openRuntime(installation, (step) => reached(step));
  const counts = { kills: 0, operations: 0, confirmed: 0, rejected: 0 };
  const seen = { ...counts, lostButCommitted: 0, lostAndVoid: 0, lostClaims: 0 };
  while (seen.kills < KILLS || (seen.lostButCommitted === 0 && seen.kills < KILLS + MORE_KILLS)) {
    const label = `${seed}/${seen.kills}`;
    const first = seen.kills * (1 + AT_ONCE);
    const [alone, ...batch] = installation.operations.slice(first, first + 1 + AT_ONCE);
    assert.ok(alone);
    const times = new Map<Step, number>();
    reached = (step) => times.set(step, performance.now());
    // After it every session knows the server that was started.
    await runtime.execute(alone.license, alone.action);
    const atStep = ledger !== undefined && seen.kills < KILLS;
    const { end, step } = planEnd(atStep ? seen.kills : undefined);
    const freezer = new Freezer(server, end);
    const isMore = seen.kills >= KILLS;
    reached = freezeAround(freezer, randomOf(label), { step, times, isMore });
    const running = Promise.all(batch.map((operation) => execute(runtime, operation, freezer)));
    // Nobody hears anything from a stopped server; the kill closes its connections.
    await Promise.race([running, freezer.stopped]);
    freezer.freeze();
    if (end === 'SIGKILL') await server.kill();
    // A ledger that is down with the server is waited for, until the server is back.
    if (ledger === undefined) await running;
    await server.restart();
    const told = await running;
    reached = () => {};
    await scene.recoverTogether(2 + (seen.kills % 3));
    const facts = await scene.compare({ stage: 'settled' });
    assert.deepEqual(scene.violations, [], `seed ${label}`);
    batch.forEach((operation, index) => {
      const ended = endOf(facts, operation);
      if (told[index] === 'committed')
        assert.equal(ended, 'committed', `${label}: a confirmed commit was lost`);
      if (told[index] === 'rejected')
        assert.equal(
          ended,
          'rejected',
          `${label}: a rejection was lost, or the operation is durable`,
        );
      if (told[index] === 'committed') seen.confirmed += 1;
      else if (told[index] === 'rejected') seen.rejected += 1;
      else if (ended === 'committed') seen.lostButCommitted += 1;
      else seen.lostAndVoid += 1;
    });
    const claimed = claimedTasks(facts);
    seen.lostClaims += batch.filter((operation) => !claimed.has(taskOf(operation))).length;
    seen.kills += 1;
    seen.operations += 1 + batch.length;
  }
  const asked = installation.operations.slice(0, seen.operations);
  await scene.releaseTwice(...asked);
  await scene.compare({ stage: 'settled', released: asked.map(({ n }) => n) });
  assert.deepEqual(scene.violations, [], `seed ${seed}`);
  console.log(`server kills, seed ${seed}: ${JSON.stringify(seen)}`);
  assert.ok(seen.lostButCommitted > 0, 'no COMMIT was lost after it had become durable');
  assert.ok(seen.lostAndVoid + seen.rejected > 0, 'no COMMIT was lost before it became durable');
}

/** Every other end of a server with a ledger comes at the next step; all others around COMMIT. */
function planEnd(turn: number | undefined) {
  if (turn === undefined || turn % 2 === 0) return { end: 'SIGKILL', step: undefined } as const;
  const at = (turn - 1) / 2;
  const end = ENDS[at % ENDS.length] ?? 'SIGKILL';
  return { end, step: STEPS_TAKEN[at % STEPS_TAKEN.length] };
}

/** When to stop the server. */
interface Moment {
  readonly step: Step | undefined;
  readonly times: ReadonlyMap<Step, number>;
  readonly isMore: boolean;
}

/**
 * Stops the server soon after one of the operations has come to a step, or has sent its COMMIT if
 * none is named; which one, and how soon, is chance. An undisturbed operation, whose steps have
 * these times, shows how long a COMMIT takes on a machine as busy as this one is now. The kills
 * that are tried in addition come when a COMMIT is likely to be durable and not yet answered.
 */
function freezeAround(
  freezer: Freezer,
  chance: Random,
  { step, times, isMore }: Moment,
): (step: Step) => void {
  const around = [
    ['path:gate-passed', 8000],
    ['adapter:marker-written', 2000],
  ] as const;
  const [trigger, usual] = step === undefined ? chance.pick(around) : [step, 1500];
  const [begun, ended] = [times.get(trigger), times.get('adapter:commit-returned')];
  const took = begun === undefined || ended === undefined ? 0 : (ended - begun) * 1000;
  const longest = step === undefined ? Math.max(usual, 2 * took) : usual;
  const delay = isMore ? took * (0.3 + 1.2 * chance.fraction()) : chance.spread(1, longest);
  let left = chance.below(AT_ONCE);
  return (step) => {
    if (step === 'path:validated' || step === 'path:observed') freezer.look();
    if (step !== trigger) return;
    left -= 1;
    if (left === -1) void waitMicroseconds(delay).then(() => freezer.freeze());
  };
}

/** Turning the loop, because the COMMIT must be able to leave meanwhile. */
async function waitMicroseconds(microseconds: number): Promise<void> {
  const until = process.hrtime.bigint() + BigInt(Math.round(microseconds * 1000));
  while (process.hrtime.bigint() < until) await setImmediate();
}

function openRuntime(installation: Installation, reached: (step: Step) => void): Promise<Runtime> {
  const { ledger, keyring, issuerKey, leaseMs, folder } = installation.site;
  return createRuntime(
    {
      store: ledger,
      keyring,
      issuers: { [ISSUER]: { key: issuerKey, may: [ADAPTER] } },
      adapters: { [ADAPTER]: installation.backend.factory(folder) },
      leaseMs,
      recoverAtStart: false,
    },
    { reached },
  );
}

/** What the caller is told: a verdict, or that the backend is gone. */
async function execute(
  runtime: Runtime,
  { license, action }: Operation,
  freezer: Freezer,
): Promise<string> {
  try {
    return (await runtime.execute(license, action)).kind;
  } catch (error) {
    // Printed here, because what cannot be cleaned up on a stopped server would hide it.
    if (
      !(error instanceof EffectMatchError) ||
      error.code !== 'ERR_EM_ADAPTER_UNAVAILABLE' ||
      !freezer.frozen
    ) {
      console.error(`frozen: ${freezer.frozen}`, error);
      throw error;
    }
    return error.code;
  }
}

/** The conclusive verdict that the journal has about an operation in the end. */
function endOf(facts: Facts, { occurrence }: Operation): string | undefined {
  const ends = facts.journals
    .flat()
    .filter((line) => line.kind === 'terminal' && line.occurrence === occurrence);
  return ends.map((line) => line.record.kind).find((kind) => kind !== 'indeterminate');
}
