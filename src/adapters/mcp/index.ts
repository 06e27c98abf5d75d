/** Adapter for MCP server tools whose writes cannot be held back. @module */
import '../../node-version.ts';

export type { OpaqueAction } from '../../http/constrained.ts';
export { opaqueMcp } from './adapter.ts';
export type {
  ClassifiedTool,
  FoundByTools,
  McpOperation,
  McpReadBack,
  McpTarget,
  OpaqueMcpOptions,
  Plan,
  PlannedEffect,
  ReadingCall,
  UpstreamServer,
} from './options.ts';
