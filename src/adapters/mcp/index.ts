/** Tools of an MCP server that write where nothing can be held back. @module */
import '../../node-version.ts';

export type { OpaqueAction } from '../../http/constrained.ts';
export { opaqueMcp } from './adapter.ts';
export type {
  ClassifiedTool,
  McpOperation,
  McpReadBack,
  McpTarget,
  OpaqueMcpOptions,
  Plan,
  PlannedEffect,
  ReadBackResult,
  ReadingCall,
  UpstreamServer,
} from './options.ts';
