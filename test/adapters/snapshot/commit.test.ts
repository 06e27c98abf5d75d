// Goal: a promotion of a state says `refused` only with proof that nothing became durable, by the
// reason's own name. Method: a real file behind a connection whose COMMIT or ROLLBACK fails in
// every way that the verdict depends on.
import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { digestState, readBase } from '../../../src/adapters/snapshot/control.ts';
import {
  type PromotionSite,
  promoteOn,
  promoteState,
  StoreConnection,
} from '../../../src/adapters/snapshot/promotion.ts';
import type { Promotion } from '../../../src/contract/adapter.ts';
import type { MarkerText } from '../../../src/contract/proof.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { EffectMatchError } from '../../../src/errors.ts';
import { overlay } from '../../world/world.ts';
import { change, durable, freshPath, look, open } from './store.ts';
import { toolModule } from './tool-module.ts';

const [BUSY, IOERR, CONSTRAINT] = [5, 10, 19];
const failure = (errcode: number) =>
  Object.assign(new Error(`SQLite said ${errcode}`), { errcode });

/** What stands in for a statement: given the real one to call or not. */
type Stand = (run: () => void) => void;
const fails = (error: unknown): Stand => {
  return () => {
    throw error;
  };
};
const runsAndFails = (error: unknown): Stand => {
  return (run) => {
    run();
    throw error;
  };
};

interface Case {
  readonly commit?: Stand;
  readonly rollback?: Stand;
  /** What preparing the statement that writes the marker throws. */
  readonly marker?: Error;
  readonly tools?: Partial<PromotionSite>;
  readonly before?: (file: string) => void;
  readonly token?: string;
  /** Looks at the connection whenever the event loop is free. */
  readonly watch?: (db: DatabaseSync) => void;
}

const NEXT = '{"list":[],"n":2}';
const MARKER = {
  occurrence: `occ_${'1'.repeat(40)}`,
  disposition: 'committed',
  text: '{}',
  sealKey: 'k',
  sealMac: 'm',
} as unknown as MarkerText;

async function freshStore() {
  const file = freshPath();
  await (
    await open({
      file,
      initial: { n: 1, list: [] },
      collections: { list: { path: '/list', key: 'id' } },
      tools: toolModule({ keep: () => undefined }),
    })
  ).close();
  using db = new DatabaseSync(file, { readOnly: true });
  const { backend, ...base } = readBase(db, 'none');
  return { file, base, backend };
}

async function promote(
  given: Case,
): Promise<{ promotion: Promotion; became: boolean; steps: string[] }> {
  const { file, base, backend } = await freshStore();
  given.before?.(file);
  const steps: string[] = [];
  const real = new DatabaseSync(file);
  const stands: Record<string, Stand | undefined> = {
    commit: given.commit,
    rollback: given.rollback,
  };
  const db = overlay(real, {
    exec(sql: string) {
      const stand = stands[sql];
      if (stand === undefined) real.exec(sql);
      else stand(() => real.exec(sql));
    },
    prepare(sql: string) {
      if (given.marker !== undefined && sql.startsWith('insert into main.effectmatch_marker'))
        throw given.marker;
      const prepared = real.prepare(sql);
      const stand = stands[sql];
      return stand === undefined
        ? prepared
        : overlay(prepared, { run: () => stand(() => prepared.run()) as never });
    },
  });
  const next = { version: base.version + 1, digest: digestState(NEXT), text: NEXT };
  const watching = setInterval(() => given.watch?.(real), 0);
  const promotion = await promoteOn(
    db,
    { marker: MARKER, base, next, token: given.token },
    {
      ...{
        backend,
        busyTimeoutMs: 0,
        isReplaced: () => false,
        connection: new StoreConnection(file, () => false),
      },
      reached: (step) => steps.push(step),
      ...given.tools,
    },
  );
  clearInterval(watching);
  real.close();
  const markers = look(
    file,
    `select * from effectmatch_marker where disposition = 'committed'`,
  ).length;
  const found = durable(file);
  const became = found.version === next.version;
  assert.deepEqual(found.state, { list: [], n: became ? 2 : 1 });
  assert.equal(markers, became ? 1 : 0, 'state and marker become durable together or not at all');
  const tokens = look(file, 'select * from effectmatch_probe').length;
  assert.equal(tokens, became && given.token !== undefined ? 1 : 0);
  return { promotion, became, steps };
}

async function assertRefused(reason: string, given: Case): Promise<void> {
  const { promotion, became, steps } = await promote(given);
  assert.equal(promotion.kind === 'refused' ? promotion.reason : promotion.kind, reason);
  assert.equal(became, false);
  assert.ok(!steps.includes('adapter:commit-returned'));
}

async function assertUnknown(cause: RegExp, given: Case, did: boolean): Promise<void> {
  const { promotion, became, steps } = await promote(given);
  assert.ok(promotion.kind === 'unknown', JSON.stringify(promotion));
  assert.match(String(promotion.cause), cause);
  assert.equal(became, did);
  assert.ok(!steps.includes('adapter:commit-returned'));
}

test('a commit that returns with the transaction over is confirmed', async () => {
  for (const token of [undefined, 'probe']) {
    const { promotion, became, steps } = await promote({ ...(token !== undefined && { token }) });
    assert.deepEqual(promotion, { kind: 'confirmed' });
    assert.ok(became);
    assert.deepEqual(steps, ['adapter:marker-written', 'adapter:commit-returned']);
  }
});

test('a commit that returns with the transaction open confirms nothing', async () => {
  await assertUnknown(/with the transaction open/, { commit: () => {} }, false);
});

test('before COMMIT every failure is a refusal by its own name', async () => {
  await assertRefused('boundary-changed', {
    before: (file) => change(file, 'create table stranger (x)'),
  });
  await assertRefused('backend-replaced', { tools: { isReplaced: () => true } });
  await assertRefused('backend-replaced', { tools: { backend: 'another' } });
  await assertRefused('marker-conflict', {
    before: (file) =>
      change(
        file,
        `insert into effectmatch_marker values ('${MARKER.occurrence}', 'void', '', '', '')`,
      ),
  });
  await assertRefused('marker-failed', { marker: failure(CONSTRAINT) });
  await assertRefused('marker-failed', { marker: failure(IOERR) });
});

test('a writer that stays refuses as busy, and only what SQLite calls busy is busy', async () => {
  const { file, base, backend } = await freshStore();
  using other = new DatabaseSync(file);
  other.exec('begin immediate');
  const next = { version: 2, digest: digestState(NEXT), text: NEXT };
  const connection = new StoreConnection(file, () => false);
  const tools = {
    backend,
    busyTimeoutMs: 0,
    reached: unobserved,
    isReplaced: () => false,
    connection,
  };
  const promotion = await promoteState({ marker: MARKER, base, next, token: undefined }, tools);
  connection.close();
  assert.equal(promotion.kind === 'refused' && promotion.reason, 'busy');
  await assertRefused('busy', { marker: failure(BUSY) });
  await assertRefused('marker-failed', {
    marker: new EffectMatchError('ERR_EM_INVARIANT', 'ours'),
  });
  await assertRefused('marker-failed', {
    marker: Object.assign(new Error('foreign'), { code: 'ERR_EM_STORE_BUSY' }),
  });
});

test('busy or a violated constraint at COMMIT refuses while the transaction is open, and proves nothing once it is over', async () => {
  await assertRefused('busy', { commit: fails(failure(BUSY)) });
  await assertRefused('busy', { commit: fails(failure(CONSTRAINT)) });
  await assertUnknown(/COMMIT failed/, { commit: runsAndFails(failure(BUSY)) }, true);
  await assertUnknown(/COMMIT failed/, { commit: runsAndFails(failure(CONSTRAINT)) }, true);
});

test('any other failure of COMMIT proves nothing, with the transaction open or over', async () => {
  await assertUnknown(/SQLite said 10/, { commit: fails(failure(IOERR)) }, false);
  await assertUnknown(/SQLite said 10/, { commit: runsAndFails(failure(IOERR)) }, true);
  const foreign = Object.assign(new Error('foreign'), { code: 'ERR_EM_STORE_BUSY' });
  await assertUnknown(/foreign/, { commit: fails(foreign) }, false);
  await assertUnknown(
    /ours/,
    { commit: fails(new EffectMatchError('ERR_EM_INVARIANT', 'ours')) },
    false,
  );
});

test('a connection whose COMMIT ended in an unknown way is given up, with the transaction open or over', async () => {
  for (const commit of [fails(failure(IOERR)), runsAndFails(failure(IOERR))]) {
    let dropped = 0;
    const connection = { drop: () => (dropped += 1) } as unknown as StoreConnection;
    const { promotion } = await promote({ commit, tools: { connection } });
    assert.deepEqual([promotion.kind, dropped], ['unknown', 1]);
  }
});

test('busy is tried again only after a rollback that returned', async () => {
  let tries = 0;
  const rollback = () => {
    tries += 1;
    throw failure(IOERR);
  };
  const given = { commit: fails(failure(BUSY)), rollback, tools: { busyTimeoutMs: 1000 } };
  await assertUnknown(/SQLite said 10/, given, false);
  assert.equal(tries, 1);
});

test('a rollback that fails or does not end the transaction proves nothing', async () => {
  await assertUnknown(
    /SQLite said 10/,
    { commit: fails(failure(BUSY)), rollback: fails(failure(IOERR)) },
    false,
  );
  await assertUnknown(/did not end/, { commit: fails(failure(BUSY)), rollback: () => {} }, false);
});

test('a file that is gone is refused and not created', async () => {
  const { file, base, backend } = await freshStore();
  rmSync(file);
  const next = { version: 2, digest: digestState(NEXT), text: NEXT };
  const isReplaced = () => true;
  const connection = new StoreConnection(file, isReplaced);
  const tools = { backend, busyTimeoutMs: 0, reached: unobserved, isReplaced, connection };
  const promotion = await promoteState({ marker: MARKER, base, next, token: undefined }, tools);
  assert.equal(promotion.kind === 'refused' && promotion.reason, 'backend-replaced');
  assert.ok(!existsSync(file));
});

test('a connection is used again only after a promotion that is known to be over', async () => {
  const { file, base, backend } = await freshStore();
  const connection = new StoreConnection(file, () => false);
  const request = {
    marker: MARKER,
    base,
    next: { version: 2, digest: digestState(NEXT), text: NEXT },
    token: undefined,
  };
  const promoting = (reached: PromotionSite['reached']) =>
    promoteState(request, {
      backend,
      busyTimeoutMs: 0,
      isReplaced: () => false,
      connection,
      reached,
    });
  const first = connection.open();
  let met: boolean | undefined;
  const stop = () => {
    queueMicrotask(() => {
      met = first.isOpen;
    });
    throw new EffectMatchError('ERR_EM_INVARIANT', 'stopped inside the transaction');
  };
  await assert.rejects(promoting(stop), /stopped inside/);
  assert.equal(met, false, 'not even the next task of the process meets the transaction');
  const second = connection.open();
  assert.deepEqual(await promoting(unobserved), { kind: 'confirmed' });
  assert.equal(connection.open(), second);
  const promotion = await promoting(unobserved);
  assert.equal(promotion.kind === 'refused' && promotion.reason, 'marker-conflict');
  assert.equal(connection.open(), second, 'a refusal is proved by its rollback');
  connection.close();
  assert.ok(!second.isOpen);
  assert.throws(() => connection.open(), /closed/);
  const late = await promoting(unobserved);
  assert.equal(late.kind === 'refused' && late.reason, 'backend-unavailable');
});

test('a connection that was given up is opened again only for the same file', async () => {
  const { file } = await freshStore();
  let replaced = false;
  const connection = new StoreConnection(file, () => replaced);
  connection.open();
  replaced = true;
  connection.drop();
  rmSync(file);
  assert.throws(() => connection.open(), /not the one that was opened/);
  assert.ok(!existsSync(file));
});

test('a busy COMMIT is rolled back and tried again as a whole, with the connection free in between', async () => {
  let tries = 0;
  let open: boolean | undefined;
  const { promotion, became, steps } = await promote({
    commit(run) {
      tries += 1;
      if (tries < 3) throw failure(BUSY);
      run();
    },
    tools: { busyTimeoutMs: 1000 },
    watch: (db) => {
      if (tries > 0) open ||= db.isTransaction;
    },
  });
  assert.deepEqual([promotion.kind, became, tries], ['confirmed', true, 3]);
  assert.equal(open, false, 'whoever reads meanwhile finds no transaction');
  const written = 'adapter:marker-written';
  assert.deepEqual(steps, [written, written, written, 'adapter:commit-returned']);
});
