/** Issues of a GitHub repository, compared by their registered fields. @module */
import type { AdapterFactory } from '../../contract/adapter.ts';
import { type GithubAction, openAdapter } from './adapter.ts';
import type { GithubOptions } from './options.ts';

export type { GithubAction } from './adapter.ts';
export type { GithubOptions } from './options.ts';

/**
 * Issues of one repository: create, retitle, rebody, close, reopen, and labels and assignees. A
 * match says that the registered fields were as approved when they were read back, not that nobody
 * else wrote them.
 */
export function github(options: GithubOptions): AdapterFactory<GithubAction> {
  return { open: async (context) => await openAdapter(options, context) };
}
