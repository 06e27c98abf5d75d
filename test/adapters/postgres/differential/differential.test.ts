// Goal: what the observer says an operation did is what it did, on schemas and operations that
// nobody thought of. Method: random schemas and operations from a printed seed; a superuser dumps
// every table before and after, and E must be the difference. EFFECTMATCH_SEED repeats a run,
// EFFECTMATCH_OPERATIONS says how many are to be compared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isInstalled } from '../../../postgres/server.ts';
import { chooseSeed } from '../../../random.ts';
import { emptyTally, playSchema, type Tally } from './campaign.ts';

const seed = chooseSeed();
const wanted = Number(process.env.EFFECTMATCH_OPERATIONS ?? '200');
const PER_SCHEMA = 40;

function describe({ failed, incomplete, ...numbers }: Tally): string {
  const list = (counts: ReadonlyMap<string, number>) =>
    [...counts].map(([what, count]) => `${what} ${count}`).join(', ');
  return `${JSON.stringify(numbers)}; failed: ${list(failed)}; incomplete: ${list(incomplete)}`;
}

async function play(label: string, operations: number, version: 17 | 15): Promise<void> {
  const tally = emptyTally();
  for (let schema = 0; tally.promoted < operations; schema += 1) {
    await playSchema(`${label}/${schema}`, PER_SCHEMA, tally, version);
  }
  console.log(`differential ${version}: seed ${seed}: ${describe(tally)}`);
  assert.ok(tally.effects > 0, 'operations wrote');
  // Of a few dozen, none may happen to write where it must not.
  if (tally.operations >= 200) assert.ok(tally.discarded > 0, 'some were discarded');
}

test('E is the difference between dumps before and after', async () => {
  await play(seed, wanted, 17);
});

test('the same holds on PostgreSQL 15', {
  skip: !isInstalled(15) && 'PostgreSQL 15 is not installed here',
}, async () => {
  await play(`${seed}/15`, Math.ceil(wanted / 10), 15);
});
