// A payment service leaves more than was approved. Whoever continues later knows that only from the
// saved terminal.
import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import { type Terminal, terminalRecord } from '../../../src/protocol/terminal.ts';
import { openRig } from '../../../test/adapters/http/rig.ts';
import { overlay } from '../../../test/world/world.ts';
import type { Ending, Pair } from './pair.ts';

/**
 * The ledger without the hazard: that a request was carried out is remembered, and that its outcome
 * was another one is not. A ledger that lost the terminal altogether would not do, because an
 * absent decision halts as well.
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
async function continueAfter(removed: boolean, isFault: boolean) {
  await using rig = await openRig('OPAQUE');
  const store = () => (removed ? { store: forgetful(sqliteLedgers(rig.ledger)) } : {});
  const paying = await rig.start(store());
  const license = await rig.approve(paying);
  if (isFault) rig.faults.arm('hidden-effect');
  const { occurrence, lineage } = await paying.execute(license, rig.action);
  let booked = 0;
  const later = await rig.start(store());
  const release = await later.continuation({ occurrence, lineage }, 'book').release(() => {
    booked += 1;
  });
  return {
    booked,
    notices: rig.account.notices.size,
    why: release.kind === 'halted' ? release.why : release.kind,
  };
}

async function continueDiverged(removed: boolean): Promise<Ending> {
  const { booked, notices, why } = await continueAfter(removed, true);
  if (notices !== 1) return 'neither';
  return booked === 1 ? 'admitted' : why === 'diverged' ? 'stopped' : 'neither';
}

export const DURABLE_HAZARD: Pair = {
  name: 'durable hazard, continuation',
  paper: 20,
  runs: (removed) => [{ name: 'payment', run: () => continueDiverged(removed) }],
  controls: (removed) => [
    { name: 'payment', run: async () => (await continueAfter(removed, false)).booked === 1 },
  ],
};
