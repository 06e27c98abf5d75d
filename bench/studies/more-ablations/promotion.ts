// What keeps the journal and the backend in agreement when a process dies or is thought to be dead.
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { breakMarkers } from '../../../test/world/markers.ts';
import { overlay } from '../../../test/world/overlay.ts';
import type { Ending, Pair } from '../ablations/pair.ts';
import { beforePromotion, type InvoiceDesk, openInvoiceDesk } from './invoice.ts';

type Played = Awaited<ReturnType<InvoiceDesk['read']>>;

/** The verdict must be what the file shows. */
function judgeAgreement({ verdict, status }: Played): Ending {
  if (status === 'paid') return verdict === 'committed' ? 'stopped' : 'admitted';
  return verdict === 'rejected' ? 'stopped' : 'neither';
}

class ProcessDied extends Error {}

/** Recovery finds no marker in the backend: as if promotions left none. */
const unmarked = (factory: AdapterFactory) =>
  breakMarkers(factory, {
    find: async () => undefined,
    void: async () => ({ kind: 'inserted' }),
  });

/** The process dies once the file is written and before that is in the journal. */
async function dieAfterPromotion(removed: boolean): Promise<Played> {
  await using desk = await openInvoiceDesk();
  let isPaying = false;
  const dying = await desk.open({
    internals: {
      reached(step) {
        if (isPaying && step === 'path:promoted') throw new ProcessDied();
      },
    },
  });
  const license = await desk.approve(dying);
  isPaying = true;
  await desk.pay(dying, license);
  const later = await desk.open(removed ? { adapter: unmarked } : {});
  await later.recover({ now: true });
  return await desk.read(license);
}

const COMMIT_MARKER: Pair = {
  name: 'commit marker, process dies after promotion',
  runs: (removed) => [
    {
      name: 'invoice',
      run: async () => judgeAgreement(await dieAfterPromotion(removed)),
    },
  ],
  controls: (removed) => [
    {
      name: 'invoice',
      run: () => payUndisturbed(removed ? { adapter: unmarked } : {}),
    },
  ],
};

/** Another process is open all the time and recovers nothing that needs it. */
async function payUndisturbed(other: Parameters<InvoiceDesk['open']>[0]): Promise<boolean> {
  await using desk = await openInvoiceDesk();
  const paying = await desk.open();
  const license = await desk.approve(paying);
  await desk.pay(paying, license);
  await (await desk.open(other)).recover({ now: true });
  const { verdict, status } = await desk.read(license);
  return verdict === 'committed' && status === 'paid';
}

/** Recovery says that it has made the attempt's marker void, and writes nothing. */
const unvoided = (factory: AdapterFactory) =>
  breakMarkers(factory, { void: async () => ({ kind: 'inserted' }) });

/** A process that was given up for dead goes on where it was: at its promotion. */
async function promoteLate(removed: boolean): Promise<Played> {
  await using desk = await openInvoiceDesk();
  const recovering = await desk.open(removed ? { adapter: unvoided } : {});
  const late = await desk.open({
    adapter: beforePromotion(() => recovering.recover({ now: true })),
  });
  const license = await desk.approve(late);
  await desk.pay(late, license);
  return await desk.read(license);
}

const VOID_MARKER: Pair = {
  name: 'void marker, late promotion',
  runs: (removed) => [
    { name: 'invoice', run: async () => judgeAgreement(await promoteLate(removed)) },
  ],
  controls: (removed) => [
    {
      name: 'invoice',
      run: () => payUndisturbed(removed ? { adapter: unvoided } : {}),
    },
  ],
};

/** Every claim looks as if its holder had been silent for too long. */
function leaseless(factory: LedgersFactory): LedgersFactory {
  return {
    async open(context) {
      const ledgers = await factory.open(context);
      return overlay(ledgers, {
        unsettled: async (options) =>
          (await ledgers.unsettled(options)).map((entry) => ({ ...entry, leaseExpired: true })),
      });
    },
  };
}

/** Another process recovers whatever is due while a live one is about to promote. */
async function recoverMeanwhile(removed: boolean): Promise<Played> {
  await using desk = await openInvoiceDesk();
  const other = await desk.open(removed ? { ledger: leaseless } : {});
  const live = await desk.open({ adapter: beforePromotion(() => other.recover()) });
  const license = await desk.approve(live);
  await desk.pay(live, license);
  return await desk.read(license);
}

/** A live execution that somebody else gave up: nothing is wrong, and nothing is done either. */
function judgeLive({ verdict, status }: Played): Ending {
  if (verdict === 'committed' && status === 'paid') return 'stopped';
  return verdict === 'rejected' && status === 'pending' ? 'admitted' : 'neither';
}

const LEASE: Pair = {
  name: 'lease, live execution given up',
  runs: (removed) => [
    { name: 'invoice', run: async () => judgeLive(await recoverMeanwhile(removed)) },
  ],
  controls: (removed) => [
    {
      name: 'invoice',
      run: () => payUndisturbed(removed ? { ledger: leaseless } : {}),
    },
  ],
};

export const PROMOTION_PAIRS: readonly Pair[] = [COMMIT_MARKER, VOID_MARKER, LEASE];
