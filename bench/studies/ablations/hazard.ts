// A payment service does more than was approved. A later process learns that only from the recorded
// terminal. The ablation loses that record, and nothing else.

import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import { openRig } from '../../../test/adapters/http/rig.ts';
import { overlay } from '../../../test/world/world.ts';
import { keepFact, keepVerdict } from '../../facts.ts';
import type { Ending, Pair } from './pair.ts';

/** A ledger that loses a divergence: it never writes the record. */
function losing(factory: LedgersFactory): LedgersFactory {
  return {
    async open(context) {
      const ledgers = await factory.open(context);
      return overlay(ledgers, {
        record: async (terminal, durability) =>
          terminal.record.kind === 'diverged'
            ? terminal.record
            : await ledgers.record(terminal, durability),
      });
    },
  };
}

/**
 * What the dependent work makes of no record: EffectMatch halts it; a host of the paper's kind runs
 * whatever no recorded hazard stops.
 */
type Silence = 'halts' | 'permits';

/** One process pays, and another asks whether it may book the payment. */
async function continueAfter(silence: Silence, removed: boolean, isFault: boolean) {
  await using rig = await openRig('OPAQUE');
  const store = () => (removed ? { store: losing(sqliteLedgers(rig.ledger)) } : {});
  const paying = await rig.start(store());
  const license = await rig.approve(paying);
  if (isFault) rig.faults.arm('hidden-effect');
  const { occurrence, lineage } = keepVerdict(await paying.execute(license, rig.action));
  let booked = 0;
  const book = () => {
    booked += 1;
  };
  const later = await rig.start(store());
  const release = await later.continuation({ occurrence, lineage }, 'book').release(book);
  const why = release.kind === 'halted' ? release.why : release.kind;
  if (silence === 'permits' && why === 'no-terminal') book();
  const notices: number = rig.account.notices.size;
  keepFact({ release: why, booked, notices });
  return { booked, notices, why };
}

async function continueDiverged(silence: Silence, removed: boolean): Promise<Ending> {
  const { booked, notices, why } = await continueAfter(silence, removed, true);
  if (notices !== 1) return 'neither';
  if (booked === 1) return 'admitted';
  return why === (removed ? 'no-terminal' : 'diverged') ? 'stopped' : 'neither';
}

function hazard(name: string, silence: Silence): Pick<Pair, 'name' | 'runs' | 'controls'> {
  return {
    name,
    runs: (removed) => [{ name: 'payment', run: () => continueDiverged(silence, removed) }],
    controls: (removed) => [
      {
        name: 'payment',
        run: async () => (await continueAfter(silence, removed, false)).booked === 1,
      },
    ],
  };
}

/** Without the record the work is still halted, because nothing permits it. */
export const LOST: Pair = {
  ...hazard('durable hazard, record lost', 'halts'),
  removedEnds: 'stopped',
};

/** The paper's case: without the record nothing stops the work. */
export const DURABLE_HAZARD: Pair = {
  ...hazard('durable hazard, continuation', 'permits'),
  paper: 20,
};
