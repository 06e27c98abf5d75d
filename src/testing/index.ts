/**
 * Conformance suites for adapters and ledgers, and the types of the kits you pass to them. @module
 */
import '../node-version.ts';

export { type KillKit, type KillSpecimen, killAtEveryStep } from './adapter/kill.ts';
export { type AdapterKit, adapterConformance, type Specimen } from './adapter-conformance.ts';
export { type LedgerKit, type LedgerStore, ledgerConformance } from './ledger-conformance.ts';
export { mintProofs, type Proofs } from './proofs.ts';
