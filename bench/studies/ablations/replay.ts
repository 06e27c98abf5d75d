// A license that is used twice at a payment service: the second use must not pay again.
import { randomBytes } from 'node:crypto';
import type { Ledgers, LedgersFactory } from '../../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { openRig } from '../../../test/adapters/http/rig.ts';
import { overlay } from '../../../test/world/world.ts';
import type { Ending, Pair } from './pair.ts';

/**
 * The ledger without one-use enforcement: every presentation of a license gets a new right of its
 * own.
 */
function reusable(factory: LedgersFactory): LedgersFactory {
  return {
    async open(context) {
      const ledgers = await factory.open(context);
      const changes: Partial<Ledgers> = {
        async claim(request) {
          const result = await ledgers.claim(request);
          if (result.kind === 'claimed' || result.reason !== 'spent') return result;
          return {
            kind: 'claimed',
            claim: request.claim(`occ_${randomBytes(20).toString('hex')}` as OccurrenceId),
          };
        },
        standing: async (task, attempt) => ({
          ...(await ledgers.standing(task, attempt)),
          holds: true,
        }),
        async consumePermit(permit) {
          // The store refuses whoever does not hold a claim that it gave out; that is the same
          // enforcement.
          await ledgers.consumePermit(permit).catch(() => undefined);
          return { kind: 'consumed' };
        },
        record: (terminal, durability) =>
          ledgers.record(terminal, durability).catch(() => terminal.record),
      };
      return overlay(ledgers, changes);
    },
  };
}

async function payTwice(removed: boolean): Promise<Ending> {
  await using rig = await openRig('OPAQUE', { open: true });
  const runtime = await rig.start(removed ? { store: reusable(sqliteLedgers(rig.ledger)) } : {});
  const license = await rig.approve(runtime);
  await runtime.execute(license, rig.action);
  const before: number = rig.payments.length;
  const again = await runtime.execute(license, rig.action);
  const after: number = rig.payments.length;
  if (before === 1 && after === 2) return 'admitted';
  return before === 1 && after === 1 && again.kind === 'rejected' && again.reason === 'spent'
    ? 'stopped'
    : 'neither';
}

async function payOnce(removed: boolean): Promise<boolean> {
  await using rig = await openRig('OPAQUE', { open: true });
  const runtime = await rig.start(removed ? { store: reusable(sqliteLedgers(rig.ledger)) } : {});
  const { kind } = await runtime.execute(await rig.approve(runtime), rig.action);
  return kind === 'committed' && rig.payments.length === 1;
}

export const REPLAY: Pair = {
  name: 'one-use binding, replay',
  paper: 20,
  runs: (removed) => [{ name: 'payment', run: () => payTwice(removed) }],
  controls: (removed) => [{ name: 'payment', run: () => payOnce(removed) }],
};
