// Goal: the reference ledgers keep every promise of the port, so that they can stand for any store
// in other tests. Method: the conformance suite; each store is a factory of its own.
import { memoryLedgers } from '../../src/ledger/memory.ts';
import { ledgerConformance } from '../../src/testing/ledger-conformance.ts';

ledgerConformance('memory', {
  durable: false,
  shared: false,
  async create() {
    const { open } = memoryLedgers();
    return { location: 'memory', open, remove: async () => {} };
  },
});
