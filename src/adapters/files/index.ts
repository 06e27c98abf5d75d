/** Adapter for a folder. Changes are held, compared and promoted as whole versions. @module */
import '../../node-version.ts';

import type { AdapterFactory } from '../../contract/adapter.ts';
import type { CheckedFilesAction } from './action.ts';
import { type FilesOptions, openAdapter } from './adapter.ts';

export type { CheckedFilesAction, FileOperation, FilesAction } from './action.ts';
export type { FilesOptions } from './adapter.ts';

/**
 * Protects a folder. Operations run in a copy of the current version that shares every untouched
 * file, a walk of the copy finds the changes, and exactly that copy becomes the next version
 * together with its marker.
 */
export function files(options: FilesOptions): AdapterFactory<CheckedFilesAction> {
  return { open: async (context) => await openAdapter(options, context) };
}
