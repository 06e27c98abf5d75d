// What keeps a payment service from being asked twice, too late, or believed too much.
import { copyFileSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Evidence } from '../../../src/contract/adapter.ts';
import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { openRig, PAYMENT } from '../../../test/adapters/http/rig.ts';
import { alterEvidence, overlay } from '../../../test/world/overlay.ts';
import { keepFact, keepVerdict } from '../../facts.ts';
import type { Ending, Pair } from '../ablations/pair.ts';

const HIDDEN = 'notice';

/** The look-up does not mention the notice; without the second witness, its counts do not either. */
function forgetNotice(evidence: Evidence, removed: boolean): Evidence {
  const records = [...evidence.records].filter(({ target }) => target !== HIDDEN);
  const channels = evidence.channels.map((report) => {
    if (report.kind === 'records') return { ...report, count: records.length };
    if (report.kind !== 'counts' || !removed) return report;
    return { ...report, counts: report.counts.filter(({ target }) => target !== HIDDEN) };
  });
  return { ...evidence, records, channels };
}

async function payUnseen(removed: boolean, isFault: boolean) {
  await using rig = await openRig();
  const bank = alterEvidence(rig.factory(), (evidence) => forgetNotice(evidence, removed));
  const runtime = await rig.start({ adapters: { bank } });
  const license = await rig.approve(runtime);
  if (isFault) rig.faults.arm('hidden-effect');
  const terminal = keepVerdict(await runtime.execute(license, rig.action));
  let booked = 0;
  await runtime.continuation(terminal, 'book').release(() => {
    booked += 1;
  });
  const notices = rig.account.notices.size;
  keepFact({ booked, notices });
  return { kind: terminal.kind, booked, notices };
}

const SECOND_WITNESS: Pair = {
  name: 'second witness, look-up that hides an effect',
  runs: (removed) => [
    {
      name: 'payment',
      async run(): Promise<Ending> {
        const { kind, booked, notices } = await payUnseen(removed, true);
        if (notices !== 1) return 'neither';
        if (kind === 'committed' && booked === 1) return 'admitted';
        return kind === 'indeterminate' && booked === 0 ? 'stopped' : 'neither';
      },
    },
  ],
  controls: (removed) => [
    { name: 'payment', run: async () => (await payUnseen(removed, false)).booked === 1 },
  ],
};

/** Before the permit is consumed something happens; without the fence, a void permit is as good. */
function consuming(
  factory: LedgersFactory,
  meanwhile: () => Promise<unknown>,
  removed: boolean,
): LedgersFactory {
  return {
    async open(context) {
      const ledgers = await factory.open(context);
      return overlay(ledgers, {
        async consumePermit(permit) {
          await meanwhile();
          const state = await ledgers.consumePermit(permit);
          return removed && state.kind === 'void' ? { kind: 'consumed' } : state;
        },
      });
    },
  };
}

/** A process that was given up for dead goes on where it was: before its request is sent. */
async function sendLate(removed: boolean, isFault: boolean) {
  await using rig = await openRig();
  const recovering = await rig.start();
  const meanwhile = async () => {
    if (isFault) await recovering.recover({ now: true });
  };
  const store = consuming(sqliteLedgers(rig.ledger), meanwhile, removed);
  const late = await rig.start({ store });
  const license = await rig.approve(late);
  await late.execute(license, rig.action).then(keepVerdict, () => {});
  const [{ occurrence }] = lineagesOf(license);
  const terminal = await recovering.terminal(occurrence);
  if (terminal !== undefined) keepVerdict(terminal);
  const payments: number = rig.payments.length;
  keepFact({ payments });
  return { verdict: terminal?.kind, payments };
}

const REMOTE_FENCE: Pair = {
  name: 'remote fence, late request',
  runs: (removed) => [
    {
      name: 'payment',
      async run(): Promise<Ending> {
        const { verdict, payments } = await sendLate(removed, true);
        if (verdict !== 'rejected') return 'neither';
        return payments === 0 ? 'stopped' : 'admitted';
      },
    },
  ],
  controls: (removed) => [
    {
      name: 'payment',
      async run() {
        const { verdict, payments } = await sendLate(removed, false);
        return verdict === 'committed' && payments === 1;
      },
    },
  ],
};

const AT_ONCE = 8;

/** The ledger as it was when the power failed: what was not flushed is gone. */
function copyLedger(ledger: string, from: string, to: string): void {
  const files = globSync(`${basename(ledger)}*`, { cwd: from });
  for (const file of files) copyFileSync(join(from, file), join(to, file));
}

/**
 * Payments claimed together and acknowledged. Then the power fails, and another process presents
 * the licenses again. Without the group's flush the ledger is as it was before.
 */
async function presentAfterFailure(removed: boolean) {
  await using rig = await openRig('OPAQUE', { open: true });
  const folder = dirname(rig.ledger);
  const office = await rig.start();
  const licenses: SignedLicense[] = [];
  for (let index = 1; index <= AT_ONCE; index += 1)
    licenses.push(await rig.approve(office, { ...PAYMENT, task: `payment ${index}` }));
  await office.close();
  const flushed = join(folder, 'flushed');
  mkdirSync(flushed);
  copyLedger(rig.ledger, folder, flushed);
  const payAll = async (runtime: Runtime) => {
    const ended = await Promise.all(
      licenses.map((license) => runtime.execute(license, rig.action)),
    );
    ended.map(keepVerdict);
    await runtime.close();
  };
  await payAll(await rig.start());
  const before: number = rig.payments.length;
  // The service has long forgotten the idempotency keys.
  rig.account.requests.clear();
  if (removed) {
    for (const file of globSync(`${rig.ledger}*`)) rmSync(file);
    copyLedger(rig.ledger, flushed, folder);
  }
  await payAll(await rig.start());
  const after: number = rig.payments.length;
  keepFact({ before, after });
  return { before, after };
}

const GROUP_COMMIT: Pair = {
  name: 'group commit, power failure',
  runs: (removed) => [
    {
      name: 'payments',
      async run(): Promise<Ending> {
        const { before, after } = await presentAfterFailure(removed);
        if (before !== AT_ONCE) return 'neither';
        if (after === AT_ONCE) return 'stopped';
        return after === 2 * AT_ONCE ? 'admitted' : 'neither';
      },
    },
  ],
};

export const REMOTE_PAIRS: readonly Pair[] = [SECOND_WITNESS, REMOTE_FENCE, GROUP_COMMIT];
