/**
 * Tools with which agents ask for changes and read data, in any framework.
 *
 * @module
 */
import '../node-version.ts';

export {
  answerOf,
  answerOfError,
  answerOfRows,
  TOOL_ANSWER_SCHEMA,
  type ToolAnswer,
  type ToolStatus,
} from './answer.ts';
export type { JsonSchema } from './json-schema.ts';
export { boundTools } from './task-tools.ts';
export {
  type AdapterTools,
  type AgentTool,
  type AgentToolsOptions,
  agentTools,
  type CallOptions,
  type ToolAnnotations,
} from './tools.ts';
