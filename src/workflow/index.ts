/**
 * Graphs of operations and dependent work that outlive a process.
 *
 * @module
 */
import '../node-version.ts';

export {
  type ContinuationContext,
  type ContinuationNode,
  defineWorkflow,
  type NodeContext,
  type OperationNode,
  type Workflow,
  type WorkflowNode,
  type WorkflowOptions,
} from './definition.ts';
export { type DrawnNode, drawRun } from './draw.ts';
export type { EngineHost, OpenEngine, WorkflowEngine } from './engine.ts';
export { type InProcessOptions, inProcess } from './in-process.ts';
export type { RunRecord } from './records.ts';
export type { HandoffReport, ReportedNode } from './report.ts';
export type { RunStatus, RunView } from './run.ts';
export type { Instance, NodeFact, NodeResult, NodeState } from './state.ts';
export {
  type HaltedRun,
  startWatcher,
  type Watcher,
  type WatcherFindings,
  type WatcherOptions,
} from './watch.ts';
export {
  openWorkflows,
  type StartOptions,
  type WaitingNode,
  type WorkflowSchedule,
  Workflows,
  type WorkflowsOptions,
} from './workflows.ts';
