// Goal: a promotion of a folder says `refused` only with proof that nothing became durable, by the
// reason's own name. Method: real candidates behind a connection whose COMMIT or ROLLBACK fails in
// every way the verdict depends on.
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { readCurrent, readEntries } from '../../../src/adapters/files/control.ts';
import { walkCandidate } from '../../../src/adapters/files/evidence.ts';
import { layoutOf, treeOf } from '../../../src/adapters/files/layout.ts';
import { promoteCandidate } from '../../../src/adapters/files/promotion.ts';
import type { Promotion } from '../../../src/contract/adapter.ts';
import { EffectMatchError } from '../../../src/errors.ts';
import { overlay } from '../../world/world.ts';
import { Site, write } from './site.ts';

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
  /** What happens to the control file or the folders after the candidate was observed. */
  readonly before?: (place: {
    readonly db: DatabaseSync;
    readonly occurrence: string;
    readonly folder: string;
    readonly root: string;
    readonly versions: string;
  }) => void;
}

interface Result {
  readonly promotion: Promotion;
  /** Whether the candidate is the version that counts, as another connection sees it. */
  readonly durable: boolean;
  readonly steps: readonly string[];
}

async function promote(given: Case): Promise<Result> {
  await using site = new Site({ a: 'old', 'folder/b': 'b' });
  const { stage, proofs } = await site.hold(await site.open(), write('a', 'new'));
  const { marker } = proofs.permit(await stage.observe());
  const layout = layoutOf({ root: site.root });
  const folder = stage.candidate.split(':').at(-1) ?? '';
  using real = new DatabaseSync(layout.database);
  const version = readCurrent(real) ?? assert.fail();
  const entries = readEntries(real, version.number);
  const base = { version, tree: treeOf(layout, version.folder), entries, folders: new Map() };
  const walk = walkCandidate(treeOf(layout, folder), entries);
  given.before?.({
    db: real,
    occurrence: marker.occurrence,
    folder,
    root: site.root,
    versions: layout.versions,
  });
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
      if (given.marker !== undefined && sql.startsWith('insert into main.marker'))
        throw given.marker;
      const statement = real.prepare(sql);
      const stand = stands[sql];
      return stand === undefined
        ? statement
        : overlay(statement, {
            run() {
              stand(() => statement.run());
              return { changes: 0, lastInsertRowid: 0 };
            },
          });
    },
  });
  const steps: string[] = [];
  const tools = { db, layout, busyTimeoutMs: 0, reached: (step: string) => steps.push(step) };
  const promotion = await promoteCandidate(tools, { folder, base, walk }, marker);
  if (real.isTransaction) real.exec('rollback');
  using other = new DatabaseSync(layout.database, { readOnly: true });
  return { promotion, durable: readCurrent(other)?.folder === folder, steps };
}

async function assertRefused(reason: string, given: Case, detail: RegExp = /./): Promise<void> {
  const { promotion, durable, steps } = await promote(given);
  assert.equal(promotion.kind === 'refused' ? promotion.reason : promotion.kind, reason);
  assert.match(promotion.kind === 'refused' ? promotion.detail : '', detail);
  assert.equal(durable, false);
  assert.ok(!steps.includes('adapter:commit-returned'));
}

async function assertUnknown(cause: RegExp, given: Case, became: boolean): Promise<void> {
  const { promotion, durable } = await promote(given);
  assert.ok(promotion.kind === 'unknown', JSON.stringify(promotion));
  assert.match(String(promotion.cause), cause);
  assert.equal(durable, became);
}

test('a commit that returns is confirmed, and the root shows it', async () => {
  const { promotion, durable, steps } = await promote({});
  assert.deepEqual(promotion, { kind: 'confirmed' });
  assert.ok(durable);
  assert.deepEqual(steps, ['adapter:marker-written', 'adapter:commit-returned']);
});

test('before COMMIT every failure is a refusal by its own name', async () => {
  await assertRefused('marker-conflict', {
    before: ({ db, occurrence }) =>
      db.prepare("insert into marker values (?, 'void', '{}', 'k', 'm')").run(occurrence),
  });
  await assertRefused('stage-lost', { before: ({ db }) => db.exec('delete from stage') });
  // What to do about it differs: approve again, or put the folder back.
  for (const sql of [
    "update version set folder = 'restored' where number = 1",
    'update version set number = 7; update pointer set version = 7',
    'delete from pointer',
  ]) {
    await assertRefused(
      'base-changed',
      { before: ({ db }) => db.exec(sql) },
      /another promotion came first/,
    );
  }
  await assertRefused('marker-failed', { before: ({ db }) => db.exec('drop table entry') });
  await assertRefused('flush-failed', {
    before: ({ versions, folder }) => rmSync(join(versions, folder), { recursive: true }),
  });
});

test('a folder of the candidate that cannot be flushed refuses it', async () => {
  await assertRefused('flush-failed', {
    before: ({ versions, folder }) =>
      rmSync(join(versions, folder, 'tree', 'folder'), { recursive: true }),
  });
  const { promotion } = await promote({
    before: ({ versions, folder }) => rmSync(join(versions, folder, 'tree', 'a')),
  });
  assert.equal(promotion.kind, 'confirmed', 'files were flushed when they were written');
});

test('a marker that cannot be written refuses, whatever the error is called', async () => {
  for (const code of ['ERR_EM_STORE_BUSY', 'ERR_EM_STORE_UNAVAILABLE'] as const) {
    await assertRefused('marker-failed', { marker: Object.assign(new Error('foreign'), { code }) });
    await assertRefused('marker-failed', { marker: new EffectMatchError(code, 'ours') });
  }
});

test('busy at COMMIT refuses after the rollback, and what ended the transaction in any other way proves nothing', async () => {
  await assertRefused('busy', { commit: fails(failure(BUSY)) });
  await assertRefused('constraint', { commit: fails(failure(CONSTRAINT)) });
  await assertUnknown(/COMMIT failed/, { commit: fails(failure(IOERR)) }, false);
  for (const code of [BUSY, CONSTRAINT, IOERR]) {
    await assertUnknown(/COMMIT failed/, { commit: runsAndFails(failure(code)) }, true);
  }
});

test('a rollback that fails proves nothing, whatever it was for', async () => {
  const rollback = fails(failure(IOERR));
  await assertUnknown(/SQLite said 10/, { rollback, commit: fails(failure(BUSY)) }, false);
  await assertUnknown(
    /SQLite said 10/,
    { rollback, before: ({ db }) => db.exec('drop table entry') },
    false,
  );
});

test('a commit whose switch fails counts, and is not confirmed', async () => {
  const { promotion, durable, steps } = await promote({
    before({ root }) {
      renameSync(root, `${root}.aside`);
      mkdirSync(root);
      writeFileSync(join(root, 'foreign'), '');
    },
  });
  assert.equal(promotion.kind, 'unknown');
  assert.ok(durable);
  assert.ok(steps.includes('adapter:commit-returned'));
});
