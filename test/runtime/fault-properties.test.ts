// Goal: whatever fails together, the journal never contradicts what became durable. Method:
// outcomes and up to three faults at random, in execution, recovery and a second recovery;
// fast-check shrinks a failure and prints its seed.
import { test } from 'node:test';
import fc from 'fast-check';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { runsOf } from '../random.ts';
import { everyFault } from '../world/world.ts';
import { type Change, play } from './play.ts';

const change = (id: number): fc.Arbitrary<Change> =>
  fc.oneof(
    fc.record({
      op: fc.constant('update' as const),
      id: fc.constant(id),
      status: fc.constantFrom('paid', 'late'),
    }),
    fc.record({ op: fc.constant('delete' as const), id: fc.constant(id) }),
    fc.record({
      op: fc.constant('insert' as const),
      id: fc.constant(id + 3),
      status: fc.constantFrom('paid', 'late'),
    }),
  );
const changes = fc
  .tuple(fc.subarray([1, 2, 3], { minLength: 1 }))
  .chain(([ids]) => fc.tuple(...ids.map(change)));
const fault = fc.constantFrom(...everyFault());

test('property: after any three faults, release, rejection, commit and recovery agree with the durable state', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('books' as const, 'bank' as const),
      fc.constantFrom('MEDIATED' as const, 'OPAQUE' as const),
      changes,
      fc.option(changes, { nil: undefined, freq: 3 }),
      fc.array(fault, { minLength: 1, maxLength: 3 }),
      async (adapter, remote, approved, other, faults) => {
        await play({ adapter, remote, approved, written: other ?? approved, faults });
      },
    ),
    { numRuns: runsOf(400) },
  );
});

test('property: the same with ledgers in a file', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('books' as const, 'bank' as const),
      changes,
      fc.array(fault, { minLength: 1, maxLength: 2 }),
      async (adapter, approved, faults) => {
        const ledgers = temporaryLedgers;
        await play({ adapter, approved, written: approved, faults, ledgers });
      },
    ),
    { numRuns: runsOf(10) },
  );
});
