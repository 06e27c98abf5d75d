/**
 * Conformance suites for adapters and ledgers, and a deployment in memory with one chosen fault.
 * @module
 */
export { type AdapterKit, adapterConformance, type Specimen } from './adapter-conformance.ts';
export { type LedgerKit, type LedgerStore, ledgerConformance } from './ledger-conformance.ts';
export { mintProofs, type Proofs } from './proofs.ts';
export {
  alterEvidence,
  everyFault,
  type Fault,
  overlay,
  overlayAdapter,
  overlayStages,
  type Started,
  silence,
  WORLD_TARGETS,
  World,
  type WorldOptions,
  withoutChannel,
} from './world.ts';
