/**
 * The MCP server. It needs the package `@modelcontextprotocol/server`, so it is imported only by
 * the verb that serves.
 *
 * @module
 */
export { type Listening, listenHttp } from './http.ts';
export { type AgentServers, type AgentServersOptions, openAgentServers } from './server.ts';
export { serveAgentOnStdio } from './stdio.ts';
