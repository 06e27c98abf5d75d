import { isDeepStrictEqual } from 'node:util';
import { EffectMatchError } from '../../../src/errors.ts';
import { unclassified } from '../../../src/protocol/boundary.ts';
import { compareStates } from '../../facts.ts';
import type { Construction, Expected } from './constructions.ts';
import type { Ear } from './ear.ts';
import { payment, readBack, withPaid } from './shop.ts';
import type { Office, Site } from './site.ts';
import type { Watch } from './watch.ts';

/** How an attempt ended. */
export type Ended = Awaited<ReturnType<Office['execute']>>;

/**
 * Runs one trial of a construction: approve a payment, set up the configuration (no approval can be
 * prepared while an outlet is open), execute, read back, and undo the configuration. After a
 * refusal, make the payment, to show that nothing else caused the refusal. Returns what differed
 * from the expectation.
 */
export async function runTrial(
  site: Site,
  ear: Ear,
  construction: Construction,
): Promise<string | undefined> {
  const { open, whileHeld, close, action = payment, reach, expected } = construction;
  const run = async (sql: string | undefined) => void (sql && (await site.db.run(sql)));
  const id = site.nextInvoice();
  const before = await readBack(site.db);
  const watch: Watch = { surveys: [] };
  await using office = await site.open({ watch });
  const license = await office.approve(id);
  await run(open);
  const reached = reach && (await site.tryAsAgent(reach.sql));
  watch.surveys.length = 0;
  watch.held = () => run(whileHeld);
  const ended = await office.execute(license, action(id));
  const [after, heard] = [await readBack(site.db), await ear.heard()];
  watch.held = undefined;
  await run(close);

  if (reached !== reach?.ends)
    return `the agent's login ended with ${reached} and not with ${reach?.ends}`;
  if (heard.length > 0) return `a notification arrived: ${heard.join(', ')}`;
  const wrong = misses(ended, expected, watch);
  if (wrong !== undefined) return wrong;
  const paid = withPaid(before, [id]);
  const found = compareStates({ initial: before, approved: paid, durable: after });
  if (expected.kind === 'committed') {
    return found.isApproved ? undefined : 'the rows are not those that were approved';
  }
  if (!found.isInitial) return 'it was refused, and rows changed';
  const again = await payAgain(office, id);
  if (again instanceof Error) return `taken back, it cannot be approved: ${again.message}`;
  if (again.kind !== 'committed') return `taken back, it is still refused: ${describe(again)}`;
  return isDeepStrictEqual(await readBack(site.db), paid)
    ? undefined
    : 'paid at last, the rows are wrong';
}

/** Approves and pays again. The approval itself fails if an outlet is still open. */
async function payAgain(office: Office, id: number): Promise<Ended | EffectMatchError> {
  try {
    return await office.execute(await office.approve(id), payment(id));
  } catch (error) {
    if (error instanceof EffectMatchError && error.code === 'ERR_EM_BOUNDARY_OPEN') return error;
    throw error;
  }
}

function misses(ended: Ended, expected: Expected, { surveys }: Watch): string | undefined {
  const [certified] = surveys;
  const gate = surveys.at(-1);
  if (expected.kind === 'committed') {
    if (ended.kind !== 'committed') return describe(ended);
    const { denied } = expected;
    const isListed = certified?.outlets.some(
      (found) => found.disposition === 'denied' && denied?.test(found.outlet),
    );
    return denied === undefined || isListed ? undefined : `no outlet ${denied} is listed as denied`;
  }
  if (expected.at === 'admission') {
    const isRefused =
      ended.kind === 'rejected' && ended.at === 'action' && expected.because.test(ended.detail);
    return isRefused ? undefined : describe(ended);
  }
  if (!isRejectedAt(ended, expected.at)) return describe(ended);
  if (expected.at === 'boundary') {
    const open = certified === undefined ? [] : unclassified(certified);
    const strange = open.find(({ outlet }) => !expected.open.test(outlet));
    return open.length > 0 && strange === undefined
      ? undefined
      : `open was ${strange?.outlet ?? 'nothing'}`;
  }
  const isSeen = surveys.length === 2 && contentOf(certified) !== contentOf(gate);
  return isSeen
    ? undefined
    : `the configuration at the gate is the certified one, and it was ${describe(ended)}`;
}

/** The configuration's digest, without the row versions that a certificate also binds. */
export function contentOf(survey: Watch['surveys'][number] | undefined): string | undefined {
  return survey?.configuration.split(' ')[0];
}

/** Whether an attempt was refused at this step because of the boundary. */
export function isRejectedAt(ended: Ended, at: 'boundary' | 'final-gate'): boolean {
  if (ended.kind !== 'rejected') return false;
  return (
    ended.at === at &&
    ended.reason === (at === 'boundary' ? 'outlet-unclassified' : 'boundary-changed')
  );
}

/** Describes an ending in one line, for debugging. */
export function describe(ended: Ended): string {
  if (ended.kind !== 'rejected') return ended.kind;
  return `rejected at ${ended.at} (${ended.reason}): ${ended.detail.slice(0, 300)}`;
}
