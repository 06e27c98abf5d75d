/**
 * What promotable adapters share, for authors of others.
 *
 * @module
 */
export { PermitCheck, type StagedUnder } from './permit-check.ts';
