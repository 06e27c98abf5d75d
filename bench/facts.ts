// Facts that are kept with the record of a run: returned verdicts, digests of the states that were
// read back, and answers of other processes.
import { AsyncLocalStorage } from 'node:async_hooks';
import { hash } from 'node:crypto';

type KeptFact = { readonly [kind: string]: unknown };

const running = new AsyncLocalStorage<KeptFact[]>();

/** Runs the work and returns its result with the facts that it kept. */
export async function collectFacts<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly facts: readonly KeptFact[] }> {
  const facts: KeptFact[] = [];
  const result = await running.run(facts, work);
  return { result, facts };
}

/** Keeps a fact with the record of the current run. Outside a run the fact is dropped. */
export function keepFact(fact: KeptFact): void {
  running.getStore()?.push(fact);
}

/** The parts of a terminal that say how an attempt ended. */
interface Ended {
  readonly kind: string;
  readonly occurrence?: string;
  readonly execution?: string;
  readonly at?: string;
  readonly reason?: string;
  readonly approved?: string;
  readonly outcome?: { readonly kind: string; readonly observed?: string } | undefined;
}

/** How an attempt ended, and the digest of what was approved. */
export function summariseVerdict(terminal: Ended) {
  const { kind, at, reason, occurrence, execution, approved, outcome } = terminal;
  return { kind, at, reason, occurrence, execution, approved, outcome: outcome?.kind };
}

/** Keeps a verdict. */
export function keepVerdict<T extends Ended>(terminal: T): T {
  keepFact({ verdict: summariseVerdict(terminal) });
  return terminal;
}

/** The parts of a runtime that prove to others how an attempt ended. */
interface Proving<Occurrence> {
  readonly receiptKeys: readonly string[];
  receipt(occurrence: Occurrence): Promise<unknown>;
}

/** Keeps the signed receipt of an occurrence, and the keys that verify it. */
export async function keepReceipt<Occurrence>(
  runtime: Proving<Occurrence>,
  occurrence: Occurrence,
): Promise<void> {
  keepFact({ receipt: await runtime.receipt(occurrence), receiptKeys: runtime.receiptKeys });
}

/** Keeps the digest of a state and returns the state. */
export function keepState<T>(name: string, state: T): T {
  keepFact({ state: name, digest: digestOf(state) });
  return state;
}

/** What is held against each other when a run has ended. */
interface ComparedStates<T> {
  readonly initial: T;
  readonly approved: T;
  /** Read by code that took no part in the run. */
  readonly durable: T;
}

/**
 * Compares what is durable with what was approved and with what was there before. Keeps the
 * digests, so that the comparison can be made again.
 */
export function compareStates<T>(
  { initial, approved, durable }: ComparedStates<T>,
  digest: (state: T) => string = digestOf,
): { readonly isApproved: boolean; readonly isInitial: boolean } {
  const states = {
    initial: digest(initial),
    approved: digest(approved),
    durable: digest(durable),
  };
  keepFact({ states });
  return {
    isApproved: states.durable === states.approved,
    isInitial: states.durable === states.initial,
  };
}

/** The digest of a state. The order of its fields does not matter. */
export function digestOf(state: unknown): string {
  return hash('sha256', JSON.stringify(sorted(state)) ?? 'undefined');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}
