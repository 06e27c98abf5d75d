/**
 * The MCP server. It needs the package `@modelcontextprotocol/server`, so only the `mcp` verb
 * imports it.
 *
 * @module
 */
export { type Listening, listenHttp } from './http.ts';
export { type AgentServers, type AgentServersOptions, openAgentServers } from './server.ts';
export { serveAgentOnStdio } from './stdio.ts';
