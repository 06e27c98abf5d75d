import type { AdapterFactory } from '../../src/contract/adapter.ts';

/**
 * The same backend for tests of what an execution refuses: `prepare` does not look at the rows, so
 * that an outcome can be approved that cannot come about.
 */
export function blind<Action>(factory: AdapterFactory<Action>): AdapterFactory<Action> {
  return {
    ...factory,
    async open(context) {
      const { readsMany: _, ...adapter } = await factory.open(context);
      return adapter;
    },
  };
}
