// A payment service does more than was approved. A later process learns that only from the recorded
// terminal.

import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import { type Terminal, terminalRecord } from '../../../src/protocol/terminal.ts';
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
 * A ledger without the hazard: it remembers that a request was carried out, but not that its
 * outcome diverged. Losing the record is not enough to admit the fault: see {@link LOST}.
 */
function forgetful(factory: LedgersFactory): LedgersFactory {
  return {
    async open(context) {
      const ledgers = await factory.open(context);
      const { sealer } = context;
      return overlay(ledgers, {
        async record(terminal, durability) {
          const claim = (await ledgers.holder(terminal.record.occurrence))?.claim.record;
          const kept =
            claim === undefined
              ? terminal.record
              : forgetDivergence(terminal.record, claim.claimedAt);
          return await ledgers.record(sealer.seal(terminalRecord, kept), durability);
        },
      });
    },
  };
}

function forgetDivergence(terminal: Terminal, claimedAt: string): Terminal {
  if (terminal.kind !== 'diverged' || terminal.outcome.kind !== 'DIVERGED') return terminal;
  const { outcome, ...rest } = terminal;
  return { ...rest, kind: 'committed', claimedAt, observed: outcome.observed, reconciled: false };
}

/** One process pays, and another asks whether it may book the payment. */
async function continueAfter(removal: Removal | undefined, isFault: boolean) {
  await using rig = await openRig('OPAQUE');
  const store = () => (removal ? { store: removal(sqliteLedgers(rig.ledger)) } : {});
  const paying = await rig.start(store());
  const license = await rig.approve(paying);
  if (isFault) rig.faults.arm('hidden-effect');
  const { occurrence, lineage } = keepVerdict(await paying.execute(license, rig.action));
  let booked = 0;
  const later = await rig.start(store());
  const release = await later.continuation({ occurrence, lineage }, 'book').release(() => {
    booked += 1;
  });
  keepFact({ release: release.kind, booked, notices: rig.account.notices.size });
  return {
    booked,
    notices: rig.account.notices.size,
    why: release.kind === 'halted' ? release.why : release.kind,
  };
}

type Removal = (factory: LedgersFactory) => LedgersFactory;

async function continueDiverged(removal: Removal | undefined): Promise<Ending> {
  const { booked, notices, why } = await continueAfter(removal, true);
  if (notices !== 1) return 'neither';
  if (booked === 1) return 'admitted';
  return why === (removal === losing ? 'no-terminal' : 'diverged') ? 'stopped' : 'neither';
}

function hazard(name: string, removal: Removal): Pick<Pair, 'name' | 'runs' | 'controls'> {
  const chosen = (removed: boolean) => (removed ? removal : undefined);
  return {
    name,
    runs: (removed) => [{ name: 'payment', run: () => continueDiverged(chosen(removed)) }],
    controls: (removed) => [
      {
        name: 'payment',
        run: async () => (await continueAfter(chosen(removed), false)).booked === 1,
      },
    ],
  };
}

/** The recorded divergence is lost. The work is still halted, because nothing permits it. */
export const LOST: Pair = {
  ...hazard('durable hazard, record lost', losing),
  removedEnds: 'stopped',
};

/** The recorded divergence is read as a commit, as if the ledger had no other verdict. */
export const DURABLE_HAZARD: Pair = {
  ...hazard('durable hazard, continuation', forgetful),
  paper: 20,
};
