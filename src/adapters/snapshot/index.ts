/** JSON state behind tools, held, compared as a whole and promoted by version. @module */
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
 * A field that its record does not have, for manifests: `update('orders', { id: 1 }, { note:
 * ['call', absentField] })` approves that the field goes. JSON has no bytes, so an empty run of
 * them cannot be mistaken for data.
 */
export const absentField: Uint8Array = new Uint8Array(0);

/**
 * Protects a JSON state that tools change: they work on a private copy, the difference of the two
 * documents is compared, and exactly that copy becomes the durable state in one SQLite transaction
 * with its marker.
 */
export function snapshot(options: SnapshotOptions): AdapterFactory<CheckedSnapshotAction> {
  return { open: async (context) => await openAdapter(options, context) };
}
