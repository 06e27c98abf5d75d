import type { SnapshotTool } from '../../../src/adapters/snapshot/index.ts';

/**
 * A module with these tools, made from their source text, so that a test can show its tools where
 * it calls them. They run in a worker: nothing outside their own bodies exists there.
 */
export function toolModule(tools: { readonly [name: string]: SnapshotTool }): URL {
  const entries = Object.entries(tools).map(([name, tool]) => {
    const source = tool.toString();
    const isMethod = new RegExp(`^(async\\s+)?${name}\\s*\\(`).test(source);
    return isMethod ? source : `${name}: ${source}`;
  });
  return scriptModule(`export default { ${entries.join(',\n')} };`);
}

/** A module of this JavaScript. */
export function scriptModule(source: string): URL {
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`);
}
