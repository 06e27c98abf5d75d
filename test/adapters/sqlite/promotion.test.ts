// Goal: a promotion says `refused` only with proof that nothing became durable, and `confirmed`
// only after a commit. Method: a real file behind a connection whose COMMIT or ROLLBACK fails in
// every way that the verdict depends on.
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { insertMarker, markersOf } from '../../../src/adapters/sqlite/control.ts';
import { type Backend, promotable, refusedPromotion } from '../../../src/backend/index.ts';
import type { Markers, Promotion } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { EffectMatchError } from '../../../src/errors.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { commitHeld, type MarkedCommit } from '../../../src/sqlite/commit.ts';
import { overlay } from '../../world/world.ts';
import { change, freshFile, freshOccurrence, look, marker, open } from './database.ts';

const BUSY = 5;
const IOERR = 10;
const CONSTRAINT = 19;
const failure = (errcode: number) =>
  Object.assign(new Error(`SQLite said ${errcode}`), { errcode });

const TOUCHED = { check: () => refusedPromotion('candidate-changed', 'it was') };

/** What stands in for a statement: given the real one to call or not. */
type Stand = (run: () => void) => void;
const FAILS =
  (errcode: number): Stand =>
  () => {
    throw failure(errcode);
  };
const RUNS_AND_FAILS =
  (errcode: number): Stand =>
  (run) => {
    run();
    throw failure(errcode);
  };

interface Case {
  readonly commit?: Stand;
  readonly rollback?: Stand;
  readonly marked?: Partial<MarkedCommit>;
  readonly prepare?: (file: string, occurrence: string) => void;
  readonly begin?: false;
}

/**
 * Promotes one row on a fresh file, and says what became of the row as another connection sees it
 * afterwards.
 */
async function promote(
  given: Case,
): Promise<{ promotion: Promotion; durable: boolean; steps: string[] }> {
  const file = freshFile('create table t (id integer primary key)');
  await (await open({ file, relations: ['t'] })).close();
  const occurrence = freshOccurrence();
  given.prepare?.(file, occurrence);
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
  });
  if (given.begin !== false) real.exec('begin immediate; insert into t values (1)');
  const promotion = await commitHeld(db, {
    marker: marker(occurrence),
    insertMarker,
    busyTimeoutMs: 0,
    reached: (step) => steps.push(step),
    check: () => undefined,
    write: () => undefined,
    ...given.marked,
  });
  real.close();
  return { promotion, durable: look(file, 'select * from t').length > 0, steps };
}

async function assertRefused(reason: string, given: Case): Promise<void> {
  const { promotion, durable } = await promote(given);
  assert.equal(promotion.kind === 'refused' ? promotion.reason : promotion.kind, reason);
  assert.equal(durable, false);
}

async function assertUnknown(cause: RegExp, given: Case, became: boolean): Promise<void> {
  const { promotion, durable, steps } = await promote(given);
  assert.ok(promotion.kind === 'unknown', promotion.kind);
  assert.match(String(promotion.cause), cause);
  assert.equal(durable, became);
  assert.ok(!steps.includes('adapter:commit-returned'));
}

test('a commit that returns with the transaction over is confirmed', async () => {
  const { promotion, durable, steps } = await promote({});
  assert.deepEqual(promotion, { kind: 'confirmed' });
  assert.ok(durable);
  assert.deepEqual(steps, ['adapter:marker-written', 'adapter:commit-returned']);
});

test('a commit that returns with the transaction open confirms nothing', async () => {
  await assertUnknown(/with the transaction open/, { commit: () => {} }, false);
});

test('before COMMIT every failure is a refusal by its own name', async () => {
  await assertRefused('candidate-changed', { marked: TOUCHED });
  await assertRefused('backend-replaced', {
    marked: { write: () => refusedPromotion('backend-replaced', 'it was') },
  });
  const conflict = (file: string, occurrence: string) =>
    change(file, `insert into effectmatch_marker values ('${occurrence}', 'void', '{}', 'k', 'm')`);
  await assertRefused('marker-conflict', { prepare: conflict });
  await assertRefused('marker-conflict', { prepare: conflict, begin: false });
  await assertRefused('marker-failed', {
    prepare: (file) => change(file, 'drop table effectmatch_marker'),
  });
});

test('busy or a violated constraint at COMMIT refuses while the transaction is open, and proves nothing once it is over', async () => {
  await assertRefused('busy', { commit: FAILS(BUSY) });
  await assertRefused('constraint', { commit: FAILS(CONSTRAINT) });
  await assertUnknown(/COMMIT failed/, { commit: RUNS_AND_FAILS(BUSY) }, true);
  await assertUnknown(/COMMIT failed/, { commit: RUNS_AND_FAILS(CONSTRAINT) }, true);
});

test('any other failure of COMMIT proves nothing, with the transaction open or over', async () => {
  await assertUnknown(/COMMIT failed: SQLite said 10/, { commit: FAILS(IOERR) }, false);
  await assertUnknown(/COMMIT failed: SQLite said 10/, { commit: RUNS_AND_FAILS(IOERR) }, true);
});

test('what passes for busy at COMMIT is our own error of that code and nothing like it', async () => {
  const throws = (error: Error) => () => {
    throw error;
  };
  const other = new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', 'the disk is gone');
  await assertUnknown(/the disk is gone/, { commit: throws(other) }, false);
  const foreign = Object.assign(new Error('not ours'), { code: 'ERR_EM_STORE_BUSY' });
  await assertUnknown(/not ours/, { commit: throws(foreign) }, false);
});

test('a refusal whose rollback fails or does not end the transaction is no refusal', async () => {
  const marked = TOUCHED;
  await assertUnknown(/SQLite said 10/, { marked, rollback: FAILS(IOERR) }, false);
  await assertUnknown(/SQLite said 10/, { marked, rollback: RUNS_AND_FAILS(IOERR) }, false);
  await assertUnknown(
    /candidate-changed: .* did not end it/,
    { marked, rollback: FAILS(BUSY) },
    false,
  );
  await assertUnknown(/did not end it/, { marked, rollback: () => {} }, false);
  await assertRefused('candidate-changed', { marked, rollback: RUNS_AND_FAILS(BUSY) });
});

function markersBehindKernel(db: DatabaseSync): Markers {
  const markers = markersOf(db, { busyTimeoutMs: 0, reached: unobserved });
  const backend = { markers } as unknown as Backend<unknown>;
  return promotable(backend, { clock: systemClock, reached: unobserved }).markers;
}

test('faults under the markers carry the adapter code, and stated ones their own', async () => {
  const file = freshFile('create table t (id integer primary key)');
  await (await open({ file, relations: ['t'] })).close();
  const occurrence = freshOccurrence() as OccurrenceId;
  using db = new DatabaseSync(file);
  const markers = markersBehindKernel(db);

  using other = new DatabaseSync(file);
  other.exec('begin exclusive');
  const unavailable = { code: 'ERR_EM_ADAPTER_UNAVAILABLE' };
  await assert.rejects(
    markers.forget(occurrence),
    unavailable,
    'a lock is no answer about a marker',
  );
  assert.equal((await markers.void(marker(occurrence, 'void'))).kind, 'busy');
  other.exec('rollback');
  const foreign = Object.assign(new Error('not ours'), { code: 'ERR_EM_STORE_BUSY' });
  const failing = overlay(db, {
    exec() {
      throw foreign;
    },
  });
  const unreachable = markersBehindKernel(failing);
  await assert.rejects(
    unreachable.void(marker(occurrence, 'void')),
    unavailable,
    'only our own busy is busy',
  );

  change(file, `insert into effectmatch_marker values ('${occurrence}', 'maybe', '{}', 'k', 'm')`);
  const stated = { code: 'ERR_EM_MARKER_CONFLICT' };
  await assert.rejects(markers.find(occurrence), stated);
  await assert.rejects(markers.void(marker(occurrence, 'void')), stated);

  change(file, 'drop table effectmatch_marker');
  await assert.rejects(markers.find(occurrence), unavailable);
  await assert.rejects(markers.void(marker(occurrence, 'void')), unavailable);
  await assert.rejects(markers.forget(occurrence), unavailable);
});
