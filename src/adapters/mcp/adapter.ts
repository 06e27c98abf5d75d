import { hash, randomBytes } from 'node:crypto';
import { refusalsOf, unavailable } from '../../backend/setup.ts';
import type { AdapterContext, AdapterFactory, RemoteAdapter } from '../../contract/adapter.ts';
import { isOver } from '../../contract/clock.ts';
import { misnamedOption } from '../../contract/options.ts';
import type { RequestPermit } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import { constrainedActions, type OpaqueAction } from '../../http/constrained.ts';
import { decodeData } from '../../http/content.ts';
import { invalid } from '../../http/errors.ts';
import { CHANNELS, checkDeclared } from '../../http/findings.ts';
import { identifyOptions, registerTargets } from '../../http/registered.ts';
import { readEntries, remoteAdapter, type ServiceAccess } from '../../http/remote.ts';
import { canonical } from '../../protocol/canon.ts';
import type { Target } from '../../protocol/registration.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';
import { serverRefusal, type UpstreamServer } from '../../upstream/server.ts';
import { type CalledOnce, Upstream } from '../../upstream/upstream.ts';
import {
  type ClassifiedTool,
  type McpOperation,
  OPTIONS,
  type OpaqueMcpOptions,
} from './options.ts';
import { callReading, readBack } from './read-back.ts';

/** Creates the error for unusable options. */
const refused = refusalsOf('mcp');

/** A call in the form that a permit binds. */
type CallContent = {
  readonly operation: string;
  readonly tool: string;
  readonly definition: string;
  readonly arguments: Row;
  /** The argument for the occurrence; null if the tool has none. */
  readonly keyArgument: string | null;
};

/** A call must return or time out before its lease can run out. */
const TIMEOUT_MS = 10_000;

const DENIED = {
  'other tools of the server': 'only registered tools are called, as they were classified',
  'other servers': 'one registered program or address; no redirect is followed',
};

/**
 * An MCP server with data that others may also write. A tool is called once for a license, within
 * what `input` accepts, and judged by what read-only tools report afterwards. Nothing is held and
 * nothing can be rolled back.
 */
export function opaqueMcp(options: OpaqueMcpOptions): AdapterFactory<OpaqueAction> {
  return { open: async (context) => openAdapter(options, context) };
}

function openAdapter(
  options: OpaqueMcpOptions,
  context: AdapterContext,
): RemoteAdapter<OpaqueAction> {
  checkOptions(options, context);
  const { server, backend, targets, operations, profile = 'row-event', values = 'plain' } = options;
  const terms = { profile, values, capability: 'OPAQUE' as const };
  const registered = registerTargets(terms, targets, refused);
  for (const [name, operation] of Object.entries(operations))
    checkOperation(name, operation, registered.registration.targets);
  const limited = { timeoutMs: TIMEOUT_MS, ...server };
  // The server's own messages could quote values.
  const upstream = new Upstream(backend, limited, { quotes: values === 'plain' });
  const { find, nameOf, ...actions } = constrainedActions(operations, refused);
  return remoteAdapter<OpaqueAction, CallContent>({
    kind: 'mcp',
    capability: 'OPAQUE',
    backend,
    context,
    denied: DENIED,
    ...registered,
    ...actions,
    gateway: accessTo(server),
    module: import.meta.url,
    folders: ['../../upstream/'],
    operations: calledTools(operations),
    configuration: identifyOptions({ url: server.url, targets, operations }),
    channels: CHANNELS,
    read: (reads) =>
      readEntries(reads, targets, async (how, { target, key }) => {
        const reading = await callReading(upstream, how.tool, how.arguments(key));
        if (reading.kind === 'read') return how.row(reading.value);
        throw unavailable(`"${target}" could not be read: ${reading.why}`);
      }),
    request: (_approved, { operation, input }) => contentOf(operation, find(operation), input),
    send: (content, permit) => callTool(upstream, content, permit, context),
    async lookUp(occurrence, requested, approved) {
      const name = requested ?? nameOf();
      if (name === undefined) return 'which tool was called is no longer known';
      return await readBack(upstream, occurrence, find(name), approved);
    },
    close: () => upstream.close(),
  });
}

function checkOptions(options: OpaqueMcpOptions, { leaseMs }: AdapterContext): void {
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
  const { server, backend, operations } = options;
  if (typeof backend !== 'string' || backend === '')
    throw refused('`backend` must say which account or data this is');
  const unusable = serverRefusal(server ?? {});
  if (unusable !== undefined) throw refused(`server: ${unusable}`);
  if (Object.keys(operations ?? {}).length === 0) throw refused('register at least one operation');
  const { timeoutMs = TIMEOUT_MS } = server;
  if (leaseMs === undefined || timeoutMs < leaseMs) return;
  throw new EffectMatchError(
    'ERR_EM_CONFIG_INVALID',
    `mcp: timeoutMs (${timeoutMs}) must be below leaseMs (${leaseMs}): a call must have ended ` +
      'before the lease of its attempt can run out',
  );
}

function checkOperation(name: string, operation: McpOperation, targets: readonly Target[]): void {
  const { tool, readBack: back, assigns = [] } = operation;
  if (typeof back?.found !== 'function' || Object.keys(back.reads ?? {}).length === 0)
    throw refused(`operation "${name}" does not say how to read back`);
  const reading = Object.values(back.reads).map((read) => read.tool);
  for (const named of [tool, ...reading]) checkTool(name, named);
  if (reading.some((read) => read.name === tool.name))
    throw refused(`operation "${name}" would read back with the tool that writes`);
  checkDeclared(name, { covers: back.covers, assigns }, targets, refused);
}

function checkTool(operation: string, tool: ClassifiedTool): void {
  if (typeof tool?.name !== 'string' || !/^sha256:[0-9a-f]{64}$/.test(tool.definition))
    throw refused(`operation "${operation}" needs the name and definition of each of its tools`);
}

function calledTools(operations: OpaqueMcpOptions['operations']) {
  const described = Object.entries(operations).map(([name, { tool }]) => {
    return [name, { method: 'call', path: `, tool ${tool.name}` }] as const;
  });
  return Object.fromEntries(described);
}

/** Salts the fingerprint of secrets, so that it cannot be used to test guesses. */
const SALT = randomBytes(32).toString('hex');

function accessTo({ command, env, url, headers }: UpstreamServer): ServiceAccess {
  const secret = canonical({
    command: command ?? null,
    env: env ?? null,
    url: url ?? null,
    headers: headers ?? null,
  });
  const fingerprint = hash('sha256', `${SALT}${secret}`, 'hex').slice(0, 32);
  return {
    host: url === undefined ? 'an MCP server' : new URL(url).origin,
    fingerprint: () => fingerprint,
    keyedFingerprint: (digest) => `mcp ${digest(secret)}`,
  };
}

function contentOf(name: string, operation: McpOperation, input: Value): CallContent {
  const { tool, keyArgument = null, arguments: argumentsOf } = operation;
  const given = argumentsOf === undefined ? input : argumentsOf(input);
  const plain = decodeData(given);
  if (!isObject(plain)) throw invalid(`the arguments of "${tool.name}" must be an object`);
  if (keyArgument !== null && Object.hasOwn(plain, keyArgument))
    throw invalid(`"${keyArgument}" of "${tool.name}" carries the occurrence; leave it out`);
  const { name: called, definition } = tool;
  return { operation: name, tool: called, definition, arguments: plain, keyArgument };
}

/** The last check runs after the tool was listed and before the call is written. */
async function callTool(
  upstream: Upstream,
  content: CallContent,
  permit: RequestPermit,
  { clock, reached }: AdapterContext,
): Promise<CalledOnce> {
  const { tool, definition, keyArgument } = content;
  const key = keyArgument === null ? {} : { [keyArgument]: permit.record.occurrence };
  const input = { ...content.arguments, ...key };
  const called = await upstream.callOnce({ tool, definition, input }, () => {
    reached('adapter:connected');
    const isLate = isOver(clock, permit.deadline);
    return isLate ? 'the lease of the attempt had run out before anything was sent' : undefined;
  });
  if (called.kind !== 'not-sent') reached('adapter:response-read');
  return called;
}
