import { describe } from 'node:test';
import { claimTests } from './ledger/claims.ts';
import { journalTests } from './ledger/journal.ts';
import type { LedgerKit } from './ledger/kit.ts';
import { processTests } from './ledger/processes.ts';
import { resolutionTests } from './ledger/resolutions.ts';
import { shadowTests } from './ledger/shadows.ts';
import { verdictTests } from './ledger/verdicts.ts';

export type { LedgerKit, LedgerStore } from './ledger/kit.ts';

/**
 * What every implementation of the `Ledgers` port has to hold, as `node:test` suites. It knows
 * nothing of how a store works inside; what it finds in one is found through the port, by a second
 * opening or by another process.
 */
export function ledgerConformance(name: string, kit: LedgerKit): void {
  describe(`${name}: claims`, () => claimTests(kit));
  describe(`${name}: verdicts`, () => verdictTests(kit));
  describe(`${name}: resolutions`, () => resolutionTests(kit));
  describe(`${name}: shadows`, () => shadowTests(kit));
  describe(`${name}: journal`, () => journalTests(kit));
  describe(`${name}: processes`, () => processTests(kit));
}
