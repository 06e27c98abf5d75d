// Goal: a void marker decides once, and a recovery that stops half way does not keep the others
// waiting for ever. Method: the marker table of a provisioned database; this process sleeps, as if
// stopped, between insert and COMMIT.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { markersOf } from '../../../src/adapters/postgres/markers.ts';
import type { Markers } from '../../../src/contract/adapter.ts';
import type { MarkerText } from '../../../src/contract/proof.ts';
import { type Reached, unobserved } from '../../../src/contract/steps.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';

let place: ProtectedDatabase;
let control: Connection;

before(async () => {
  place = await protectedDatabase('create table entry (id integer primary key)', {
    relations: ['entry'],
  });
  control = await Connection.open(place.options.control, 'test control');
});
after(async () => {
  await control.close();
  await place[Symbol.asyncDispose]();
});

function markers(reached: Reached, idleTimeoutMs: number): Markers {
  return markersOf({
    control: async () => control,
    open: () => Connection.open(place.options.control, 'test recovery'),
    reached,
    lockTimeoutMs: 250,
    idleTimeoutMs,
    endOverdue: async () => 0,
  });
}

const voidMarker = (occurrence: string): MarkerText => ({
  ...{ occurrence, disposition: 'void', text: '{}', sealKey: 'k', sealMac: 'm' },
});

test('of many void markers for one occurrence one is inserted, and all others find it', async () => {
  const table = markers(unobserved, 30_000);
  const results = await Promise.all(
    Array.from({ length: 6 }, () => table.void(voidMarker('occ_many'))),
  );
  assert.deepEqual(results.map(({ kind }) => kind).sort(), [
    ...Array(5).fill('conflict'),
    'inserted',
  ]);
  assert.deepEqual(await table.find('occ_many' as OccurrenceId), voidMarker('occ_many'));
});

test('while a recovery holds its marker, another one is told so and changes nothing', async () => {
  await using holder = await Connection.open(place.options.control, 'test holder');
  await holder.script(
    "begin; insert into effectmatch.marker values ('occ_held', 'void', '{}', 'k', 'm', null)",
  );
  const told = await markers(unobserved, 30_000).void(voidMarker('occ_held'));
  assert.equal(told.kind, 'busy');
  await holder.script('rollback');
  assert.equal(await markers(unobserved, 30_000).find('occ_held' as OccurrenceId), undefined);
});

test('the server takes the marker back from a recovery that stopped, and the next one decides', async () => {
  const stopped: Reached = (step) => {
    if (step === 'adapter:void-written')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
  };
  const code = 'ERR_EM_ADAPTER_UNAVAILABLE';
  await assert.rejects(markers(stopped, 200).void(voidMarker('occ_stopped')), { code });
  assert.equal(await markers(unobserved, 200).find('occ_stopped' as OccurrenceId), undefined);
  assert.deepEqual(await markers(unobserved, 200).void(voidMarker('occ_stopped')), {
    kind: 'inserted',
  });
});
