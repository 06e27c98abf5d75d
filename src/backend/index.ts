/**
 * The kernel of promotable adapters, for authors of backends: what is the same for every engine.
 *
 * @module
 */
import '../node-version.ts';

export {
  type Fields,
  readFields,
  refuseAction,
  refuseUnknown,
} from '../contract/action-input.ts';
export { misnamedOption, type OptionNames } from '../contract/options.ts';
export { copyAction, readItems, readUntrusted } from './action.ts';
export {
  type Applied,
  alreadyDecided,
  type Backend,
  type Candidate,
  type CandidateEnd,
  type CandidateEvidence,
  type HoldRequest,
  type HoldResult,
  type PromotionRefusal,
  refusedPromotion,
  type StageFailure,
  stageFailed,
  stagePrevented,
} from './candidate.ts';
export {
  type ColumnShape,
  invalid,
  type ManifestSchema,
  plainSchema,
  type RelationShape,
} from './manifest-schema.ts';
export { normaliseManifest, normaliseRead, normaliseReads } from './normalise.ts';
export { adapterFault, promotable } from './promotable.ts';
export { bytesAsText, ResultCollector } from './results.ts';
export {
  type AdapterRefusal,
  adapterCode,
  deniedOutlets,
  fingerprint,
  openOutlet,
  refusalsOf,
} from './setup.ts';
