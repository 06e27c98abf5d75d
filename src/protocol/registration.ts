import type { Profile } from './effect.ts';

/**
 * One registered relation, folder or collection: what the profile compares and what it leaves out.
 */
export interface Target {
  readonly name: string;
  /** Every compared column, including key columns, in backend order. */
  readonly columns: readonly string[];
  /** Key columns. Empty if the relation has no key and is compared as a multiset of rows. */
  readonly key: readonly string[];
  /** Columns not compared on rows that A names; listed in every rendering. */
  readonly volatile: readonly string[];
}

/**
 * What a deployment registered for one adapter. Part of the frame, so a change invalidates older
 * licenses.
 */
export interface Registration {
  readonly profile: Profile;
  /** Whether journal and receipts keep the values themselves or keyed digests. */
  readonly values: 'plain' | 'digest';
  readonly targets: readonly Target[];
  /**
   * How a change is made if it cannot be held first; renderings say so. Absent if candidates are
   * held.
   */
  readonly capability?: 'MEDIATED' | 'OPAQUE';
  /** What closes the backend's outlets, if not the backend's permissions alone. */
  readonly boundary?: 'managed';
}
