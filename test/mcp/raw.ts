import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/** What came back for one HTTP request. */
export interface Raw {
  readonly status: number;
  readonly body: string;
  /** Our code in the JSON-RPC error, if there is one. */
  readonly code: string | undefined;
}

/** Sends anything at all, such as clients do not. */
export async function sendRaw(
  url: string,
  { method = 'POST', headers = {}, body = '' as string | Buffer },
): Promise<Raw> {
  return await new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, async (response) => {
      const received = await text(response);
      const [, code] = /"code":"(ERR_EM_\w+)"/.exec(received) ?? [];
      resolve({ status: response.statusCode ?? 0, body: received, code });
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {}, form: {} } },
};

/** A call of a tool by the revision of 2026, with whatever else its parameters should have. */
export function callMessage(name: string, input: unknown, more: object = {}): string {
  const params = { name, arguments: input, _meta: META, ...more };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
}

/** The headers that go with it. */
export function callHeaders(token: string, tool = ''): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': tool,
  };
}
