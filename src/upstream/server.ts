/** Another MCP server: a program to start, or an address. */
export interface UpstreamServer {
  /** The program to start and its arguments. */
  readonly command?: readonly string[];
  /** More environment variables for it. Of ours it gets only those that every program needs. */
  readonly env?: Readonly<Record<string, string>>;
  /** Or the address of a server that speaks Streamable HTTP, with the headers to send. */
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long a call may take; 30 s unless said otherwise. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/** Why a server cannot be reached with these options; undefined if it can. */
export function serverRefusal({ command, url, timeoutMs = 1 }: UpstreamServer): string | undefined {
  if ((command === undefined) === (url === undefined)) return 'give either `command` or `url`';
  if (url !== undefined && !/^https?:/.test(URL.parse(url)?.protocol ?? ''))
    return '`url` must be http or https';
  const isList = command === undefined || (Array.isArray(command) && command.length > 0);
  if (!isList || !(command ?? []).every((word) => typeof word === 'string'))
    return '`command` must be a list: the program, then its arguments';
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > TIMEOUT_MAX_MS)
    return `\`timeoutMs\` must be a whole number from 1 to ${TIMEOUT_MAX_MS}`;
  return undefined;
}
