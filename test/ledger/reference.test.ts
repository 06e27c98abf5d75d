// Goal: the reference that stores are compared with is itself a ledger.
// Method: the conformance suite, as every other ledger runs it.
import { ledgerConformance } from '../../src/testing/ledger-conformance.ts';
import { referenceLedgers } from './reference.ts';

ledgerConformance('reference', {
  durable: false,
  shared: false,
  async create() {
    const { open } = referenceLedgers();
    return { location: 'memory', open, remove: async () => {} };
  },
});
