/**
 * What promotable adapters share, for authors of others.
 *
 * @module
 */
export {
  type ColumnShape,
  invalid,
  type ManifestSchema,
  normaliseManifest,
  normaliseRead,
  plainSchema,
  type RelationShape,
} from './normalise.ts';
export { PermitCheck, type StagedUnder } from './permit-check.ts';
