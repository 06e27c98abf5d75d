// Goal: the SQLite ledgers keep every promise of the port, also across processes and after a kill.
// Method: the conformance suite on real files in a temporary folder, with real processes.
import { ledgerConformance } from '../../src/testing/ledger-conformance.ts';
import { sqliteKit } from './sqlite-store.ts';

ledgerConformance('sqlite', sqliteKit);
