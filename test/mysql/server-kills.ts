import assert from 'node:assert/strict';
import type { Step } from '../../src/contract/steps.ts';
import { approver, generateApprover, generated, insert } from '../../src/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { EXECUTION_STEPS } from '../crash/steps.ts';
import { testKeyring } from '../keyring.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { randomOf } from '../random.ts';
import { type ProtectedMariadb, protectedMariadb } from './protected.ts';
import { type MariadbServer, startServer } from './server.ts';

const KEY = generateApprover('approver');
/** The steps of an execution that commits. */
export const KILLED_AT = EXECUTION_STEPS.filter((step) => step !== 'path:discarded');
const SCHEMA = 'create table t (id int auto_increment primary key, v int not null)';

/** When the server dies: at a step, or some milliseconds after it. */
interface Moment {
  readonly step: Step;
  readonly afterMs: number | undefined;
}

/** Every other kill is at the next step; the others are around COMMIT. */
function momentOf(seed: string, index: number): Moment {
  const first = randomOf(seed).below(KILLED_AT.length);
  const step = KILLED_AT[(first + index / 2) % KILLED_AT.length];
  if (step !== undefined) return { step, afterMs: undefined };
  return { step: 'adapter:marker-written', afterMs: randomOf(`${seed}/${index}`).spread(0.2, 10) };
}

/** How often each verdict was settled, and how often the server died at each step. */
export interface KillSummary {
  readonly ends: ReadonlyMap<string, number>;
  readonly steps: ReadonlyMap<Step, number>;
}

/**
 * Kills a real server again and again while a real runtime executes. After each restart a fresh
 * runtime recovers, and rows, markers and verdicts must agree.
 */
export async function killServer(
  seed: string,
  kills: number,
  report: (done: number) => void = () => {},
): Promise<KillSummary> {
  await using server = await startServer();
  const db = await server.createDatabase();
  const place = await protectedMariadb(SCHEMA, { relations: ['t'] }, db);
  const ends = new Map<string, number>();
  const steps = new Map<Step, number>();
  for (let index = 0; index < kills; index += 1) {
    const moment = momentOf(seed, index);
    const end = await killOnce(server, place, { seed, index, ...moment });
    ends.set(end, (ends.get(end) ?? 0) + 1);
    steps.set(moment.step, (steps.get(moment.step) ?? 0) + 1);
    report(index + 1);
  }
  assert.deepEqual(await db.run(`select occurrence from ${place.control}.stage`), []);
  return { ends, steps };
}

async function killOnce(
  server: MariadbServer,
  place: ProtectedMariadb,
  { seed, index: v, step, afterMs }: Moment & { readonly seed: string; readonly index: number },
): Promise<string> {
  let isArmed = false;
  let timer: NodeJS.Timeout | undefined;
  const kill = () => {
    if (server.pid !== undefined) process.kill(server.pid, 'SIGKILL');
  };
  const reached = (now: Step) => {
    if (!isArmed || now !== step) return;
    isArmed = false;
    if (afterMs === undefined) kill();
    else timer = setTimeout(kill, afterMs);
  };
  const config = {
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
    adapters: { db: place.factory() },
  };
  const runtime = await createRuntime(config, { reached });
  const effects = [insert('t', { id: generated('new'), v })];
  const task = { adapter: 'db', task: `kill ${v}`, planRevision: 1, effects };
  const license = approver(KEY).sign(await runtime.prepare(task), { expiresIn: '10m' });
  const action = { sql: 'insert into t (v) values (?)', values: [v] };
  isArmed = true;
  const told = await runtime.execute(license, action).then(
    ({ kind }) => kind,
    () => 'fault',
  );
  clearTimeout(timer);
  assert.ok(!isArmed, `seed ${seed}, kill ${v}: ${step} was not reached, told ${told}`);
  await runtime.close().catch(() => {});
  await server.kill();
  await server.restart();

  const fresh = await createRuntime(config);
  await fresh.recover({ now: true });
  const verdict = await fresh.ensure(license, action);
  await fresh.close();
  const [found] = await place.db.run(`select count(*) as n from t where v = ${v}`);
  const when = afterMs === undefined ? step : `${afterMs} ms after ${step}`;
  const where = `seed ${seed}, kill ${v}, ${when}: told ${told}, settled ${verdict.kind}`;
  assert.ok(verdict.kind === 'committed' || verdict.kind === 'rejected', where);
  assert.equal(found?.n, verdict.kind === 'committed' ? 1 : 0, where);
  if (told === 'committed' || told === 'rejected') assert.equal(verdict.kind, told, where);
  return verdict.kind;
}
