/**
 * Adapter for a JSON state behind tools: held, compared as a whole and promoted by version. @module
 */
import '../../node-version.ts';

import type { AdapterFactory } from '../../contract/adapter.ts';
import type { CheckedSnapshotAction } from './action.ts';
import { openAdapter } from './adapter.ts';
import type { SnapshotOptions } from './options.ts';

export type { CheckedSnapshotAction, SnapshotAction, SnapshotCall } from './action.ts';
export type {
  CollectionOption,
  ReferencesOption,
  SnapshotOptions,
  SnapshotTool,
} from './options.ts';

/**
 * Stands for a missing field in manifests: `update('orders', { id: 1 }, { note: ['call',
 * absentField] })` approves the removal of the field. JSON has no bytes, so empty bytes cannot be
 * mistaken for data.
 */
export const absentField: Uint8Array = new Uint8Array(0);

/**
 * Protects a JSON state that tools change. They work on a private copy, the difference between the
 * two documents is compared, and exactly that copy becomes the durable state in one SQLite
 * transaction with its marker.
 */
export function snapshot(options: SnapshotOptions): AdapterFactory<CheckedSnapshotAction> {
  return { open: async (context) => await openAdapter(options, context) };
}
