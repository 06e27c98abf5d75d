import { isDeepStrictEqual } from 'node:util';
import type { Lineage, Release } from '../../../src/runtime/continuation.ts';
import { keepFact } from '../../facts.ts';
import { payment, readBack, withPaid } from './shop.ts';
import type { Office, Site } from './site.ts';
import { describe } from './trial.ts';

const REGISTERED = 'reconcile';

/**
 * A construction of continuation authority. It asks for work that depends on a commit, and returns
 * what differed from the expectation.
 */
export interface ContinuationCase {
  readonly name: string;
  readonly expected: 'released' | 'refused';
  ask(trial: ContinuationTrial): Promise<string | undefined>;
}

interface ContinuationTrial {
  readonly site: Site;
  readonly office: Office;
  /** The lineage of the committed payment. */
  readonly from: Lineage;
}

export const CONTINUATIONS: readonly ContinuationCase[] = [
  {
    name: 'registered under the license',
    expected: 'released',
    ask: async ({ office, from }) =>
      shouldEnd(await request(office, from, REGISTERED), 'released, ran 1'),
  },
  {
    name: 'independent reader',
    expected: 'refused',
    async ask({ site, office, from }) {
      // Both can read that the invoice is paid. The license does not name the first continuation,
      // and the second runtime has no journal of the payment.
      await using reader = await site.open();
      return (
        shouldEnd(await request(office, from, 'report'), 'unregistered, ran 0') ??
        shouldEnd(await request(reader, from, REGISTERED), 'no-terminal, ran 0')
      );
    },
  },
  {
    name: 'lineage of another license',
    expected: 'refused',
    async ask({ site, office, from }) {
      const other = await pay(site, office);
      const wrong = { occurrence: from.occurrence, lineage: other.lineage };
      return (
        shouldEnd(await request(office, wrong, REGISTERED), 'lineage, ran 0') ??
        shouldEnd(await request(office, from, REGISTERED), 'released, ran 1')
      );
    },
  },
  {
    name: 'replay, here and in another runtime',
    expected: 'refused',
    async ask({ site, office, from }) {
      const first = shouldEnd(await request(office, from, REGISTERED), 'released, ran 1');
      if (first !== undefined) return first;
      await using another = await site.open({ ledger: office.ledger });
      return (
        shouldEnd(await request(office, from, REGISTERED), 'already-released, ran 0') ??
        shouldEnd(await request(another, from, REGISTERED), 'already-released, ran 0')
      );
    },
  },
];

/** Commits a payment that registers one continuation, then asks for work as constructed. */
export async function runContinuation(
  site: Site,
  { ask }: ContinuationCase,
): Promise<string | undefined> {
  await using office = await site.open();
  return await ask({ site, office, from: await pay(site, office) });
}

async function pay(site: Site, office: Office): Promise<Lineage> {
  const id = site.nextInvoice();
  const before = await readBack(site.db);
  const terminal = await office.execute(
    await office.approve(id, { continuations: [REGISTERED] }),
    payment(id),
  );
  if (terminal.kind !== 'committed') throw new Error(describe(terminal));
  if (!isDeepStrictEqual(await readBack(site.db), withPaid(before, [id])))
    throw new Error('the rows are wrong');
  return terminal;
}

/** Asks once and counts how often the work ran. */
async function request({ runtime }: Office, from: Lineage, name: string): Promise<string> {
  let ran = 0;
  const release: Release<void> = await runtime.continuation(from, name).release(() => {
    ran += 1;
  });
  const answer = release.kind === 'released' ? 'released' : release.why;
  keepFact({ release: name, answer, ran });
  return `${answer}, ran ${ran}`;
}

function shouldEnd(found: string, expected: string): string | undefined {
  return found === expected ? undefined : `${found} instead of ${expected}`;
}
