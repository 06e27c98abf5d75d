// A license is used twice at a payment service. The second use must not pay again. The ablation
// removes the memory of the first use: the second worker has another ledger.
import { join } from 'node:path';
import { openRig } from '../../../test/adapters/http/rig.ts';
import { keepFact, keepVerdict } from '../../facts.ts';
import type { Ending, Pair } from './pair.ts';

async function payTwice(removed: boolean): Promise<Ending> {
  await using rig = await openRig('OPAQUE', { open: true });
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  keepVerdict(await runtime.execute(license, rig.action));
  const before: number = rig.payments.length;
  // A service remembers idempotency keys only for a while.
  rig.account.requests.clear();
  const other = await rig.start(removed ? { store: join(rig.folder, 'other.db') } : {});
  const again = keepVerdict(await other.execute(license, rig.action));
  const after: number = rig.payments.length;
  keepFact({ before, after });
  if (before === 1 && after === 2) return 'admitted';
  return before === 1 && after === 1 && again.kind === 'rejected' && again.reason === 'spent'
    ? 'stopped'
    : 'neither';
}

async function payOnce(removed: boolean): Promise<boolean> {
  await using rig = await openRig('OPAQUE', { open: true });
  const runtime = await rig.start(removed ? { store: join(rig.folder, 'other.db') } : {});
  const { kind } = keepVerdict(await runtime.execute(await rig.approve(runtime), rig.action));
  keepFact({ payments: rig.payments.length });
  return kind === 'committed' && rig.payments.length === 1;
}

export const REPLAY: Pair = {
  name: 'one-use binding, replay',
  paper: 20,
  runs: (removed) => [{ name: 'payment', run: () => payTwice(removed) }],
  controls: (removed) => [{ name: 'payment', run: () => payOnce(removed) }],
};
