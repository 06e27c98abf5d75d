import { hasCode } from '../errors.ts';
import type { Gateways } from '../mcp/gateway.ts';
import type { AgentServers } from '../mcp/server.ts';
import type { Requests } from '../requests/requests.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { chooseName, loadConfig } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { type Output, printableLine } from './output.ts';
import { catchInterrupt } from './progress.ts';
import { openConfigured } from './requests.ts';
import { endWhenStalled } from './stall.ts';
import { packageVersion } from './version.ts';

const AGENT_EXAMPLE = `requests: {
  store: 'effectmatch.requests.db',
  link: 'http://127.0.0.1:8080/requests/{id}', // the console
},
agents: {
  'billing-agent': {
    operations: ['pay-invoice'], // tools; each call waits for an approval
    sql: ['books'],              // guarded SQL: sql_books
    read: ['books'],             // read_books
  },
},`;
/** Serves agents over MCP. */
export const verb: Verb = {
  summary: 'serve operations, guarded SQL and queries to agents over MCP',
  about: `Serves one agent over stdin and stdout, or with --http every agent that has a token. A
tool that would change something answers "approval-required" until a person has approved the exact
outcome; this server then executes it. An agent cannot approve, and sees only its own requests. It
ends when the client closes stdin, or on Ctrl-C. It needs the package @modelcontextprotocol/server.`,
  flags: {
    agent: {
      value: 'NAME',
      about: 'stdio: which configured agent this is (default: the only one)',
      excludes: ['http'],
    },
    http: { value: 'PORT', about: 'serve Streamable HTTP on 127.0.0.1 and this port' },
    run: {
      value: 'TEXT',
      about: 'repeated calls within one run count as one request (default: mcp)',
    },
    classify: {
      value: 'NAME',
      about: 'list the tools of a configured upstream server, with their digests',
      excludes: ['agent', 'http', 'run'],
    },
    ...CONFIG_FLAG,
  },
  examples: ['--agent billing-agent', '--http 8765', '--classify docs'],
  blocks: [
    { title: 'Agents, in the configuration:', text: AGENT_EXAMPLE },
    {
      title: 'Most clients (mcp.json); docs/mcp.md has others:',
      text: `{ "mcpServers": { "effectmatch": {
    "command": "/srv/books/node_modules/.bin/effectmatch",
    "args": ["mcp", "--agent", "billing-agent",
             "--config", "/srv/books/effectmatch.config.ts"] } } }`,
    },
    {
      title: 'Over HTTP:',
      text: `{ "mcpServers": { "effectmatch": { "type": "http",
    "url": "http://127.0.0.1:8765/mcp",
    "headers": { "Authorization": "Bearer emt_…" } } } }`,
    },
  ],
  async run(args, output) {
    const classified = args.value('classify');
    if (classified !== undefined) return await listTools(args, classified, output);
    const port = args.count('http', 0);
    if (port !== undefined && port > 65_535)
      throw args.wrong(`--http takes a port up to 65535, not ${port}`);
    // stdout is reserved for the protocol. Redirect whatever a configuration file prints.
    if (port === undefined) console.log = console.error;
    const served = await importServer();
    await using opened = await openConfigured(args);
    await using gateways = await openGateways(opened.config);
    for (const warning of gateways?.warnings() ?? []) report(warning);
    const servers = served.openAgentServers({
      ...opened,
      gateways,
      run: args.value('run') ?? 'mcp',
      version: packageVersion(),
      log: report,
      onFault: (agent, error) => reportFault(`${agent}: no answer`, error),
    });
    using _stall = endWhenStalled();
    using interrupt = catchInterrupt(['SIGINT', 'SIGTERM', 'SIGHUP']);
    const onError = (error: Error) => reportFault('a message was not served', error);
    opened.requests.start();
    if (port === undefined) {
      const agent = chooseAgent(args, servers);
      report(`serving ${agent} on stdio`);
      await served.serveAgentOnStdio(servers, agent, { signal: interrupt.signal, onError });
      return;
    }
    await demandToken(servers, opened.requests);
    const listening = await served.listenHttp(servers, { port, onError });
    output.document({ url: listening.url });
    output.line(`listening on ${listening.url}`);
    await interrupt.interrupted;
    await listening.close();
  },
};

/** The SDK is an optional peer dependency, and so is its client, which only upstream servers need. */
const importServer = () => import('../mcp/index.ts').catch(explainMissing('server'));
const importGateway = () => import('../mcp/gateway.ts').catch(explainMissing('client'));

function explainMissing(part: string) {
  return (cause: unknown): never => {
    if (!hasCode(cause, 'ERR_MODULE_NOT_FOUND')) throw cause;
    const name = `@modelcontextprotocol/${part}`;
    const message = `the package ${name} is not installed; nothing was done`;
    throw new GuidedError('ERR_EM_CONFIG_INVALID', message, `run \`npm install ${name}\``, cause);
  };
}

async function openGateways(config: RuntimeConfig): Promise<Gateways | undefined> {
  if (Object.keys(config.upstreams ?? {}).length === 0) return undefined;
  return await (await importGateway()).Gateways.open(config);
}

/** Lists the tools that a person has to classify, in the form that the configuration uses. */
async function listTools(args: Arguments, name: string, output: Output): Promise<void> {
  const { upstreams = {} } = await loadConfig(args);
  const upstream = upstreams[name];
  if (upstream === undefined) {
    const known = Object.keys(upstreams).join(', ') || 'none';
    throw args.wrong(`unknown upstream "${name}"; there are ${known}`);
  }
  const tools = await (await importGateway()).describeTools(name, upstream);
  output.document({ tools });
  for (const { tool, digest, hint } of tools)
    output.line(`${JSON.stringify(tool)}: { read: '${digest}' }, // it says: ${hint}`);
  output.line(
    'Classify each one yourself: read, write or refused. What a server says about itself proves nothing.',
  );
}

/** Prints a line for the operator. Escapes control characters in text from agents and drivers. */
function report(line: string): void {
  process.stderr.write(`effectmatch: ${printableLine(line)}\n`);
}

/** Error messages may quote the input, so only the codes are logged. */
function reportFault(what: string, error: unknown): void {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unexpected';
  report(`${what}: ${code}`);
  if ((process.env.EFFECTMATCH_DEBUG ?? '') !== '') console.error(error);
}

function chooseAgent(args: Arguments, { agents }: AgentServers): string {
  if (agents.size === 0) throw withoutAgents('the configuration has no `agents`');
  return chooseName(args, 'agent', [...agents.keys()]);
}

async function demandToken({ agents }: AgentServers, { tokens }: Requests): Promise<void> {
  if ([...agents.values()].some(({ digests }) => digests.length > 0)) return;
  if ((await tokens.tokens()).some(({ kind, holder }) => kind === 'agent' && agents.has(holder)))
    return;
  throw withoutAgents('no agent in the configuration has a token');
}

function withoutAgents(what: string): GuidedError<'ERR_EM_CONFIG_INVALID'> {
  const next = 'add one; `effectmatch mcp --help` shows how';
  return new GuidedError('ERR_EM_CONFIG_INVALID', `${what}; nothing was done`, next);
}
