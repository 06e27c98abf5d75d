import { messageOf } from '../errors.ts';
import { unclassified } from '../protocol/boundary.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import { isOperation, type Workflow } from './definition.ts';

/** Why a workflow cannot start. */
export interface Blocker {
  readonly node: string;
  readonly why: string;
}

/** What the nodes of a workflow are checked against. */
interface PreflightParts {
  readonly runtime: Runtime;
  readonly operations: NonNullable<RuntimeConfig['operations']>;
}

const NO_QUEUE =
  'handOver needs the ledger in the PostgreSQL database of the queue; this ledger is elsewhere';
/** Why a node without a possible approver cannot run. */
export const NO_APPROVER = 'no configured approver may sign it';

/**
 * Checks everything that needs no proposal: that every operation is configured and has an approver,
 * that every adapter's boundary can be certified, and that the ledger supports hand-overs. A
 * proposal checks the rest.
 */
export async function findBlockers(
  { runtime, operations }: PreflightParts,
  workflow: Workflow,
): Promise<readonly Blocker[]> {
  const blockers: Blocker[] = [];
  const adapters = new Map<string, string>();
  for (const [node, definition] of workflow.nodes) {
    if (!isOperation(definition)) {
      if (definition.handOver !== undefined && runtime.ledgers.handOver === undefined)
        blockers.push({ node, why: NO_QUEUE });
      continue;
    }
    const { operation: name } = definition;
    const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
    if (operation === undefined)
      blockers.push({ node, why: `operation "${name}" is not configured` });
    else adapters.set(operation.adapter, adapters.get(operation.adapter) ?? node);
    if (operation !== undefined && runtime.issuersFor({ operation: name }).length === 0)
      blockers.push({ node, why: NO_APPROVER });
  }
  for (const [adapter, node] of adapters) {
    const why = await findOpenBoundary(runtime, adapter);
    if (why !== undefined) blockers.push({ node, why });
  }
  return blockers;
}

async function findOpenBoundary(runtime: Runtime, adapter: string): Promise<string | undefined> {
  try {
    // Only the proposal shows whether a node reaches an outlet that is behind something.
    const open = unclassified(await runtime.survey(adapter))
      .filter(({ behind }) => behind === undefined)
      .map(({ outlet }) => outlet);
    if (open.length === 0) return undefined;
    return `the boundary of "${adapter}" is open (${open.slice(0, 3).join(', ')}); run \`effectmatch doctor\``;
  } catch (error) {
    return `"${adapter}" cannot be surveyed: ${messageOf(error)}`;
  }
}
