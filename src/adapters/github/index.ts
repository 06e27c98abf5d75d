/** Adapter for the issues of a GitHub repository, compared by their registered fields. @module */
import '../../node-version.ts';

import type { AdapterFactory } from '../../contract/adapter.ts';
import { type GithubAction, type GithubOptions, openAdapter } from './adapter.ts';

export type { GithubAction, GithubOptions };

/**
 * Issues of one repository: create, change title, body, labels and assignees, close and reopen. A
 * match means that the registered fields were as approved when they were read back. It does not say
 * who wrote them.
 */
export function github(options: GithubOptions): AdapterFactory<GithubAction> {
  return { open: async (context) => await openAdapter(options, context) };
}
