import type { LedgerContext } from '../../contract/ledgers.ts';
import type { About, UnsettledEntry } from '../store.ts';
import { type FetchedRow, FetchedTables } from './fetched.ts';

/** What this process knows about an attempt that it holds. */
interface HeldAttempt {
  readonly rows: readonly FetchedRow[];
  readonly entry: UnsettledEntry;
}

/** What this process believes about the tables, in the form that the server compares. */
export interface Belief {
  readonly positions: string;
  /** Occurrences, and how many rows each of them has. */
  readonly occurrences: readonly string[];
  readonly counts: readonly string[];
  /** Nonces that are unused. */
  readonly unused: readonly { readonly issuer: string; readonly nonce: string }[];
  /** Revisions that are not superseded. */
  readonly tasks: readonly string[];
  readonly revisions: readonly string[];
}

/** Tables as this process believes them to be. */
export interface Assumed {
  readonly tables: FetchedTables;
  readonly belief: Belief;
}

/** Limits the map: attempts that another process ended are never removed from it. */
const HELD_MAX = 256;
/** How long a server time may be extrapolated with this process's clock. */
const CLOCK_MS = 60_000;
/** After wrong guesses, at most this many groups are decided without a guess. */
const SKIPPED_MAX = 32;

/**
 * What this process knows without asking: the last position, the attempts it holds, and that a new
 * license is unused. A decision that needs only this takes one message, in which the server checks
 * these beliefs against its tables before it writes. A wrong guess wastes that message, so guesses
 * become rare while other processes decide too.
 */
export class LedgerMemory {
  readonly #held = new Map<string, HeldAttempt>();
  /** The log that the server last reported writing to. */
  log: string | undefined;
  #positions: number | undefined;
  #clock = { serverMs: 0, at: Number.NEGATIVE_INFINITY };
  #skip = 0;
  #skipNext = 1;

  /** The tables for these decisions; undefined if something must be fetched. */
  assume(context: LedgerContext, abouts: readonly About[]): Assumed | undefined {
    const elapsed = performance.now() - this.#clock.at;
    if (this.#positions === undefined || elapsed > CLOCK_MS) return undefined;
    if (this.#skip > 0) {
      this.#skip -= 1;
      return undefined;
    }
    const tables = new FetchedTables(context);
    tables.lists.positions = this.#positions;
    tables.lists.nowMs = Math.floor(this.#clock.serverMs + elapsed);
    const known = new Map<string, number>();
    const unused: { readonly issuer: string; readonly nonce: string }[] = [];
    const plans: { readonly task: string; readonly revision: number }[] = [];
    for (const about of abouts) {
      const { binding, plan, occurrences = [], ...more } = about;
      if (Object.keys(more).length > 0) return undefined;
      if (binding !== undefined) {
        unused.push(binding);
        for (const first of binding.occurrences.slice(0, 1))
          known.set(first, this.#held.get(first)?.rows.length ?? 0);
      }
      if (plan !== undefined) plans.push(plan);
      for (const occurrence of occurrences) {
        const held = this.#held.get(occurrence);
        if (held === undefined) return undefined;
        known.set(occurrence, held.rows.length);
      }
    }
    tables.addOccurrences(known.keys());
    for (const occurrence of known.keys()) this.#addHeld(tables, occurrence);
    const belief = {
      positions: String(this.#positions),
      occurrences: [...known.keys()],
      counts: [...known.values()].map(String),
      unused,
      tasks: plans.map(({ task }) => task),
      revisions: plans.map(({ revision }) => String(revision)),
    };
    return { tables, belief };
  }

  /** The server rejected the assumptions. */
  wasWrong(): void {
    this.#positions = undefined;
    this.#skip = this.#skipNext;
    this.#skipNext = Math.min(this.#skipNext * 2, SKIPPED_MAX);
  }

  wasRight(): void {
    this.#skipNext = 1;
  }

  /** Stores the server's time, and the name of its log if that was asked for. */
  setServer(serverMs: number, log: string | undefined): void {
    this.log = log ?? this.log;
    this.#clock = { serverMs, at: performance.now() };
  }

  /** Updates what is known from a committed transaction. */
  learn(tables: FetchedTables): void {
    this.#positions = tables.lists.positions;
    for (const occurrence of tables.touched()) {
      const held = tables.held(occurrence);
      if (this.#held.size === HELD_MAX) this.#held.clear();
      if (held === undefined) this.#held.delete(occurrence);
      else this.#held.set(occurrence, held);
    }
  }

  #addHeld(tables: FetchedTables, occurrence: string): void {
    const held = this.#held.get(occurrence);
    for (const row of held?.rows ?? [])
      tables.addRow(row, row.seq === held?.entry.claim ? held.entry : undefined);
  }
}
