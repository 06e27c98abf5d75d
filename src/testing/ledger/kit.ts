import type { LedgerContext, Ledgers } from '../../contract/ledgers.ts';
import { fixtureContext } from './fixtures.ts';

/** What a ledger implementation passes to the conformance suite. */
export interface LedgerKit {
  /**
   * Whether records survive a killed process, and whether several processes may use the store at
   * once.
   */
  readonly durable: boolean;
  readonly shared: boolean;
  /** Creates an empty store for this test alone. */
  create(): Promise<LedgerStore>;
  /**
   * A module that exports `openLedgers(location, context)`, for separate processes. Needed if the
   * ledger is durable or shared; without it those tests are skipped, with a reason.
   */
  readonly module?: URL;
}

/** One store, which can be opened any number of times. */
export interface LedgerStore {
  /** What another process needs to find the store. */
  readonly location: string;
  open(context: LedgerContext): Promise<Ledgers>;
  remove(): Promise<void>;
}

/** A store for one test, closed and removed when the test ends. */
export interface LedgerBench extends AsyncDisposable {
  readonly context: LedgerContext;
  readonly store: LedgerStore;
  /** Opens the store again on each call. */
  open(): Promise<Ledgers>;
}

/** Creates a fresh store without opening it. */
export async function prepareBench(kit: LedgerKit): Promise<LedgerBench> {
  const context = fixtureContext();
  const store = await kit.create();
  const opened: Ledgers[] = [];
  const open = async (): Promise<Ledgers> => {
    const ledgers = await store.open(context);
    opened.push(ledgers);
    return ledgers;
  };
  const dispose = async (): Promise<void> => {
    for (const ledgers of opened) await ledgers.close();
    await store.remove();
  };
  return { context, store, open, [Symbol.asyncDispose]: dispose };
}

/** Creates and opens a fresh store. */
export async function openBench(
  kit: LedgerKit,
): Promise<LedgerBench & { readonly ledgers: Ledgers }> {
  const bench = await prepareBench(kit);
  return { ...bench, ledgers: await bench.open() };
}
