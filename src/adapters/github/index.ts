/** Issues of a GitHub repository, compared by their registered fields. @module */
import '../../node-version.ts';

import type { AdapterFactory } from '../../contract/adapter.ts';
import { type GithubAction, type GithubOptions, openAdapter } from './adapter.ts';

export type { GithubAction, GithubOptions };

/**
 * Issues of one repository: create, retitle, rebody, close, reopen, and labels and assignees. A
 * match says that the registered fields were as approved when they were read back, not who wrote
 * them.
 */
export function github(options: GithubOptions): AdapterFactory<GithubAction> {
  return { open: async (context) => await openAdapter(options, context) };
}
