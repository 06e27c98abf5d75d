/** Another MCP server: a program to start, or a URL. */
export interface UpstreamServer {
  /** The program to start, and its arguments. */
  readonly command?: readonly string[];
  /**
   * More environment variables for the program. It inherits only those that every program needs.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** The URL of a server that speaks Streamable HTTP. `headers` are sent with each request. */
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long a call may take. Default: 30 s, or 10 s in `opaqueMcp`. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/** Why these options cannot be used; undefined if they can. */
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
