// Goal: of a committed and a void marker for one occurrence exactly one becomes durable, whoever is
// first. Method: real files and processes; the conflict inside a promotion is made on a connection
// of the test's own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { insertMarker } from '../../../src/adapters/sqlite/control.ts';
import type { Step } from '../../../src/contract/steps.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { commitHeld } from '../../../src/sqlite/commit.ts';
import { markerTable } from '../../../src/sqlite/marker-table.ts';
import {
  change,
  freshFile,
  freshOccurrence,
  held,
  look,
  marker,
  open,
  promote,
} from './database.ts';

const SCHEMA = 'create table t (id integer primary key, v)';
const INSERT = { sql: 'insert into t values (1, 2)' };

test('a void marker is inserted once, found, agreed with, and forgotten', async () => {
  const file = freshFile(SCHEMA);
  const steps: Step[] = [];
  await using adapter = await open({ file, relations: ['t'] }, (step) => steps.push(step));
  const occurrence = freshOccurrence() as OccurrenceId;
  const first = marker(occurrence, 'void');
  assert.equal(await adapter.markers.find(occurrence), undefined);
  assert.deepEqual(await adapter.markers.void(first), { kind: 'inserted' });
  assert.deepEqual(steps, ['adapter:void-written', 'adapter:void-committed']);
  const second = { ...first, text: 'another', sealMac: 'another' };
  assert.deepEqual(await adapter.markers.void(second), { kind: 'conflict', marker: first });
  assert.deepEqual(await adapter.markers.find(occurrence), first);
  await adapter.markers.forget(occurrence);
  await adapter.markers.forget(occurrence);
  assert.equal(await adapter.markers.find(occurrence), undefined);
});

test('what a commit entails is repeated for a committed marker that is found, and for nothing else', async () => {
  const file = freshFile(SCHEMA);
  await (await open({ file, relations: ['t'] })).close();
  using db = new DatabaseSync(file);
  const table = markerTable({ table: 'effectmatch_marker', voidDeadlineMs: 1000 });
  let redone = 0;
  const redo = async () => {
    redone += 1;
  };
  const markers = table.markersOf(db, { busyTimeoutMs: 1000, reached: () => {}, redo });
  const [voided, committed] = [freshOccurrence(), freshOccurrence()] as OccurrenceId[];
  assert.ok(voided !== undefined && committed !== undefined);
  assert.equal(await markers.find(voided), undefined);
  assert.deepEqual(await markers.void(marker(voided, 'void')), { kind: 'inserted' });
  assert.equal((await markers.find(voided))?.disposition, 'void');
  assert.equal((await markers.void(marker(voided, 'void'))).kind, 'conflict');
  assert.equal(redone, 0);
  table.insertMarker(db, marker(committed, 'committed'));
  assert.equal((await markers.find(committed))?.disposition, 'committed');
  assert.equal(redone, 1);
  assert.equal((await markers.void(marker(committed, 'void'))).kind, 'conflict');
  assert.equal(redone, 2);
});

test('a void marker after a promotion finds the committed one', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: ['t'] });
  const occurrence = freshOccurrence();
  await using candidate = await held(adapter, INSERT, occurrence);
  await promote(candidate, occurrence);
  assert.deepEqual(await adapter.markers.void(marker(occurrence, 'void')), {
    kind: 'conflict',
    marker: marker(occurrence, 'committed'),
  });
});

test('a promotion that meets a marker of its occurrence is refused with everything rolled back', async () => {
  const file = freshFile(SCHEMA);
  await (await open({ file, relations: ['t'] })).close();
  const occurrence = freshOccurrence();
  change(file, `insert into effectmatch_marker values ('${occurrence}', 'void', '{}', 'k', 'm')`);
  using db = new DatabaseSync(file);
  db.exec("begin immediate; insert into t values (1, 'lost')");
  const promotion = await commitHeld(db, {
    marker: marker(occurrence),
    insertMarker,
    busyTimeoutMs: 0,
    reached: () => assert.fail('no step is reached'),
    check: () => undefined,
    write: () => undefined,
  });
  assert.equal(promotion.kind === 'refused' && promotion.reason, 'marker-conflict');
  assert.equal(db.isTransaction, false);
  assert.deepEqual(look(file, 'select * from t'), []);
});

test('a marker that is neither committed nor void is reported, not read', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: ['t'] });
  const occurrence = freshOccurrence() as OccurrenceId;
  change(file, `insert into effectmatch_marker values ('${occurrence}', 'maybe', '{}', 'k', 'm')`);
  await assert.rejects(adapter.markers.find(occurrence), { code: 'ERR_EM_MARKER_CONFLICT' });
});

test('processes that start at once on a new file agree on one backend id', async () => {
  const file = freshFile(SCHEMA);
  const script = `
    import { openAdapter } from '${fileURLToPath(new URL('../../../src/adapters/sqlite/adapter.ts', import.meta.url))}';
    const context = { name: 'a', clock: { now: Date.now }, reached() {} };
    const adapter = await openAdapter({ file: ${JSON.stringify(file)}, relations: ['t'] }, context);
    process.stdout.write(adapter.identity.backend);
    await adapter.close();`;
  const ids = await Promise.all(Array.from({ length: 4 }, () => outputOf(script)));
  assert.match(ids[0] ?? '', /^[0-9a-f]{32}$/);
  assert.equal(new Set(ids).size, 1);
  assert.deepEqual(look(file, "select value from effectmatch_meta where name = 'backend'"), [
    { value: ids[0] },
  ]);
});

function outputOf(script: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    let out = '';
    let err = '';
    child.stdout.on('data', (data) => {
      out += data;
    });
    child.stderr.on('data', (data) => {
      err += data;
    });
    child.on('close', (code) => (code === 0 ? resolve(out) : reject(new Error(err))));
  });
}
