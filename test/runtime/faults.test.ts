// Goal: whatever fails, and wherever, the journal never contradicts what became durable.
// Method: every fault there is, in the executing process and in recovery, one by one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Step } from '../../src/contract/steps.ts';
import { everyFault, type Fault } from '../world/world.ts';
import { type Change, play } from './play.ts';

const FAULTS = everyFault();
const PAY: readonly Change[] = [{ op: 'update', id: 1, status: 'paid' }];
const WRONG: readonly Change[] = [{ op: 'update', id: 2, status: 'paid' }];
const diesAt = (step: Step): Fault => ({ kind: 'step', step, ending: 'die' });

/** Faults that can strike where nothing is executed. */
function concernsRecovery(fault: Fault): boolean {
  const step = 'step' in fault ? fault.step : 'at' in fault ? fault.at : undefined;
  if (step !== undefined) return /^(recovery|continuation|adapter:void)/.test(step);
  if (fault.kind === 'call') return /^(markers|ledgers)\.|readBack$/.test(fault.call);
  return fault.kind === 'evidence' || fault.kind === 'silence';
}

/** Which faults have struck somewhere: one that never does proves nothing. */
const seen = new Set<string>();

for (const adapter of ['books', 'bank'] as const) {
  test(`${adapter}: every fault in an execution that would be exact`, async () => {
    for (const fault of FAULTS) {
      const { struck } = await named(fault, () =>
        play({ adapter, approved: PAY, written: PAY, faults: [fault] }),
      );
      if (struck[0]) seen.add(JSON.stringify(fault));
    }
  });

  test(`${adapter}: every fault in an execution that does something else`, async () => {
    for (const fault of FAULTS) {
      const { paid, struck } = await named(fault, () =>
        play({ adapter, remote: 'OPAQUE', approved: PAY, written: WRONG, faults: [fault] }),
      );
      assert.equal(paid, false);
      if (struck[0]) seen.add(JSON.stringify(fault));
    }
  });

  for (const step of [
    'path:claimed',
    adapter === 'books' ? 'path:promoted' : 'path:dispatched',
  ] as const) {
    test(`${adapter}: every fault in the recovery of a process that died at ${step}`, async () => {
      for (const fault of FAULTS.filter(concernsRecovery)) {
        const faults = [diesAt(step), fault, fault];
        const { struck } = await named(fault, () =>
          play({ adapter, approved: PAY, written: PAY, faults }),
        );
        assert.equal(struck[0], true);
        if (struck[1]) seen.add(JSON.stringify(fault));
      }
    });
  }
}

test('every fault struck somewhere above', () => {
  const never = FAULTS.filter((fault) => fault.kind !== 'none' && !seen.has(JSON.stringify(fault)));
  assert.deepEqual(never, []);
});

async function named<T>(fault: Fault, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`with the fault ${JSON.stringify(fault)}`, { cause: error });
  }
}
