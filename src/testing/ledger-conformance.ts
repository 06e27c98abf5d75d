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
 * What every implementation of the `Ledgers` port must do, as `node:test` suites. The suites know
 * nothing about a store's internals: they look at a store only through the port, by opening it
 * again or from another process.
 */
export function ledgerConformance(name: string, kit: LedgerKit): void {
  describe(`${name}: claims`, () => claimTests(kit));
  describe(`${name}: verdicts`, () => verdictTests(kit));
  describe(`${name}: resolutions`, () => resolutionTests(kit));
  describe(`${name}: shadows`, () => shadowTests(kit));
  describe(`${name}: journal`, () => journalTests(kit));
  describe(`${name}: processes`, () => processTests(kit));
}
