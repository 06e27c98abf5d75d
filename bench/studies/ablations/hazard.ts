// A payment service leaves more than was approved. Whoever continues later knows that only from the
// saved terminal.

import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import { type Terminal, terminalRecord } from '../../../src/protocol/terminal.ts';
import { openRig } from '../../../test/adapters/http/rig.ts';
import { overlay } from '../../../test/world/world.ts';
import { keepFact, keepVerdict } from '../../facts.ts';
import type { Ending, Pair } from './pair.ts';

/** The ledger loses a divergence: its record is never written. */
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
 * The ledger without the hazard: that a request was carried out is remembered, and that its outcome
 * was another one is not. Losing the record is not enough to admit the fault: see {@link LOST}.
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

/** One process pays, another asks whether it may book the payment. */
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

/** The saved divergence is lost. The work is halted all the same: no decision is no permission. */
export const LOST: Pair = {
  ...hazard('durable hazard, record lost', losing),
  removedEnds: 'stopped',
};

/** The saved divergence is taken for a commit, as by a ledger that knows no other end. */
export const DURABLE_HAZARD: Pair = {
  ...hazard('durable hazard, continuation', forgetful),
  paper: 20,
};
