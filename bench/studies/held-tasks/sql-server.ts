// An upstream MCP server with one tool that reads a SQLite file and one that writes to it, as others
// offer them. Its arguments: the file.
import { DatabaseSync } from 'node:sqlite';
import { Server } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';

const [, , file = ''] = process.argv;
const db = new DatabaseSync(file, { timeout: 5000 });
const schema = { type: 'object' as const, properties: { sql: { type: 'string' as const } } };
const tools = [
  { name: 'look', inputSchema: schema },
  { name: 'run_sql', inputSchema: schema },
];
const server = new Server({ name: 'sql', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler('tools/list', () => ({ tools }));
server.setRequestHandler('tools/call', ({ params }) => {
  const rows = db.prepare(String(params.arguments?.sql)).all();
  return { content: [{ type: 'text' as const, text: JSON.stringify(rows) }] };
});
await server.connect(new StdioServerTransport());
