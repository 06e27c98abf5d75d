import type { Profile } from './effect.ts';

/**
 * One registered relation (or folder, or collection): what the profile compares and what it leaves
 * out.
 */
export interface Target {
  readonly name: string;
  /** Every compared column, key columns included, in backend order. */
  readonly columns: readonly string[];
  /** Key columns; empty where the relation has no key and compares as a multiset of rows. */
  readonly key: readonly string[];
  /** Columns not compared on rows that A names; listed in every rendering. */
  readonly volatile: readonly string[];
}

/**
 * What a deployment registered for one adapter. Part of the frame, so a change invalidates old
 * licenses.
 */
export interface Registration {
  readonly profile: Profile;
  /** What journal and receipts keep of values: the values themselves, or keyed digests. */
  readonly values: 'plain' | 'digest';
  readonly targets: readonly Target[];
  /**
   * How a change is made where it cannot be held first; renderings say so. Absent where candidates
   * are held.
   */
  readonly capability?: 'MEDIATED' | 'OPAQUE';
  /** What closes the backend's outlets, if it is not the backend's rights alone. */
  readonly boundary?: 'managed';
}
