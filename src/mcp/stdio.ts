import { isUtf8 } from 'node:buffer';
import { Transform, type TransformCallback } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { MAX_MESSAGE } from './http.ts';
import type { AgentServers } from './server.ts';

/** Serves one agent over stdin and stdout until the client closes stdin or `signal` aborts. */
export async function serveAgentOnStdio(
  servers: AgentServers,
  agent: string,
  { signal, onError }: { readonly signal: AbortSignal; readonly onError: (error: Error) => void },
): Promise<void> {
  const lines = new CheckedLines((refusal) => process.stdout.write(`${refusal}\n`));
  const transport = new StdioServerTransport(process.stdin.pipe(lines), process.stdout, {
    maxBufferSize: 2 * MAX_MESSAGE,
  });
  const handle = serveStdio(() => servers.open(agent), { transport, onerror: onError });
  await new Promise<void>((resolve) => {
    process.stdin.once('close', resolve);
    process.stdin.once('end', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
  await handle.close();
}

/** Forwards whole lines, and rejects lines that are too long or not UTF-8. */
class CheckedLines extends Transform {
  readonly #refuse: (message: string) => void;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(refuse: (message: string) => void) {
    super();
    this.#refuse = refuse;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#take(chunk.subarray(start, end + 1));
      this.#endLine();
      start = end + 1;
    }
    this.#take(chunk.subarray(start));
    done();
  }

  #take(part: Buffer): void {
    this.#length += part.length;
    if (this.#length <= MAX_MESSAGE) this.#parts.push(part);
    else this.#parts = [];
  }

  #endLine(): void {
    const line = Buffer.concat(this.#parts);
    const isLong = this.#length > MAX_MESSAGE;
    this.#parts = [];
    this.#length = 0;
    if (isLong) this.#refuse(refusal(`a message has at most ${MAX_MESSAGE} bytes`));
    else if (!isUtf8(line)) this.#refuse(refusal('the message is not UTF-8'));
    else this.push(line);
  }
}

function refusal(why: string): string {
  const data = { code: 'ERR_EM_INPUT_INVALID' };
  const error = { code: -32_700, message: `ERR_EM_INPUT_INVALID: ${why}`, data };
  return JSON.stringify({ jsonrpc: '2.0', id: null, error });
}
