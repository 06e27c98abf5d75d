/**
 * What promotable adapters share, for authors of others.
 *
 * @module
 */
export {
  type ColumnShape,
  invalid,
  type ManifestSchema,
  plainSchema,
  type RelationShape,
} from './manifest-schema.ts';
export { normaliseManifest, normaliseRead } from './normalise.ts';
export { PermitCheck, type StagedUnder } from './permit-check.ts';
