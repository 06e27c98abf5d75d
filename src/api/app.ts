import { randomUUID } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { readAgents } from '../access/agents.ts';
import { type Caller, Callers } from '../access/callers.ts';
import { type Clock, instant, systemClock } from '../contract/clock.ts';
import { given } from '../contract/options.ts';
import { EffectMatchError } from '../errors.ts';
import { copyOnce, type Schema, type SchemaDocument } from '../protocol/schema.ts';
import { EventStream } from '../requests/event-stream.ts';
import type { Requests } from '../requests/requests.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import { quietly, type Telemetry, type Trace } from '../runtime/telemetry.ts';
import { readJson, readText } from './body.ts';
import { type ApiEndpoint, type Call, Created, type Served } from './endpoint.ts';
import { openApiOf } from './openapi.ts';
import { ApiRefusal, problemOf } from './problem.ts';
import { RECORD_ENDPOINTS } from './record-endpoints.ts';
import { REQUEST_ENDPOINTS } from './request-endpoints.ts';
import { SERVER_ENDPOINTS } from './server-endpoints.ts';

/** What {@link createApi} needs. */
export interface ApiOptions {
  readonly runtime: Runtime;
  readonly requests: Requests;
  /** Agents, operations, adapters and telemetry, as the runtime was given them. */
  readonly config: Pick<RuntimeConfig, 'agents' | 'operations' | 'adapters' | 'telemetry'>;
  /**
   * Where clients reach the API, for example `https://approvals.example`. Other host names are
   * refused.
   */
  readonly origin: string;
  /** The version in the OpenAPI document. */
  readonly version?: string;
  /** Gets an entry for every call. An entry never holds a value, a token or a data id. */
  readonly log?: ((entry: CallLog) => void) | undefined;
  readonly clock?: Clock;
  /** How long a body may take to arrive; 30 seconds by default. */
  readonly receiveMs?: number;
  /** The stream of changes, if it is shared with the console; a new one by default. */
  readonly events?: EventStream;
}

/** One entry of the call log. */
export interface CallLog {
  readonly at: string;
  /** The call's id, which the response carries as `x-request-id`. */
  readonly call: string;
  readonly method: string;
  /** The pattern of the path; empty if there is no such endpoint. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** Whose token it was, for example `agent billing-agent`. */
  readonly caller?: string;
  readonly code?: string;
}

/** The API as a request handler. */
export interface ApiApp extends AsyncDisposable {
  fetch(request: Request): Response | Promise<Response>;
  /** The OpenAPI document, as `GET /openapi.json` serves it. */
  readonly document: SchemaDocument;
}

/** Every endpoint. The OpenAPI document and the routes are both made from this list. */
export const ENDPOINTS: readonly ApiEndpoint[] = [
  ...REQUEST_ENDPOINTS,
  ...RECORD_ENDPOINTS,
  ...SERVER_ENDPOINTS,
];

interface Env {
  Variables: {
    call: string;
    startedMs: number;
    route: string;
    caller?: Caller;
    code?: string;
    trace?: Trace | undefined;
  };
}

const RECEIVE_MS = 30_000;
const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

/** Whether a call is for the API rather than the console next to it. */
export function isApiPath({ url }: Request): boolean {
  const path = new URL(url).pathname;
  return path.startsWith('/v1/') || ['/openapi.json', '/health', '/ready'].includes(path);
}

/** Creates the API. The requests must be open; dispose of the API before them. */
export function createApi(options: ApiOptions): ApiApp {
  const { runtime, requests, config, clock = systemClock, version = '0' } = options;
  const { receiveMs = RECEIVE_MS } = options;
  const { events = new EventStream(requests) } = options;
  const callers = new Callers(readAgents(config), requests.tokens, clock);
  const document = openApiOf(ENDPOINTS, version);
  const adapters = Object.keys(config.adapters);
  const served = { runtime, requests, events, adapters, document };
  const app = new Hono<Env>();
  guard(app, options, clock);
  for (const endpoint of ENDPOINTS) {
    const path = endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1');
    app.on(endpoint.method, path, (c) => {
      beginTrace(c, endpoint, config.telemetry);
      checkSource(c.req.raw, options.origin);
      return serve(c, endpoint, { ...served, receiveMs }, callers);
    });
  }
  return {
    document,
    fetch: (request) => app.fetch(request),
    [Symbol.asyncDispose]: async () => {
      if (options.events === undefined) await events.close();
    },
  };
}

/** Wraps every call: sets its id and the response headers, reports errors, and writes the log. */
function guard(app: Hono<Env>, options: ApiOptions, clock: Clock): void {
  app.onError((error, c) => {
    const problem = problemOf(error, c.get('call'));
    c.set('code', problem.code);
    return new Response(JSON.stringify(problem), {
      status: problem.status,
      headers: {
        'content-type': 'application/problem+json',
        ...(problem.status === 401 && { 'www-authenticate': 'Bearer' }),
        ...(problem.retry === true && { 'retry-after': '5' }),
      },
    });
  });
  app.notFound(() => {
    throw new EffectMatchError('ERR_EM_NOT_FOUND', 'there is no such endpoint; see /openapi.json');
  });
  app.use(async (c, next) => {
    const given = c.req.header('x-request-id') ?? '';
    c.set('call', /^[\w.-]{1,64}$/.test(given) ? given : randomUUID());
    c.set('startedMs', performance.now());
    c.set('route', '');
    await next();
    for (const [name, value] of Object.entries(HEADERS)) c.res.headers.set(name, value);
    c.res.headers.set('x-request-id', c.get('call'));
    report(c, options, clock);
  });
}

/** Refuses pages from other origins, and host names other than the configured one. */
function checkSource({ headers }: Request, origin: string): void {
  const { host } = new URL(origin);
  if (headers.get('host') !== host)
    throw new ApiRefusal(
      421,
      'ERR_EM_ACCESS_REFUSED',
      `call it as ${host}, or set \`console.origin\` in the configuration to the address you use`,
    );
  const from = headers.get('origin');
  if (from !== null && from !== origin)
    throw new ApiRefusal(
      403,
      'ERR_EM_ACCESS_REFUSED',
      'requests from pages of other origins are refused',
    );
}

function report(c: Context<Env>, { log }: ApiOptions, clock: Clock): void {
  const { status } = c.res;
  const { method } = c.req;
  const [route, caller, code] = [c.get('route'), c.get('caller'), c.get('code')];
  const durationMs = Math.round((performance.now() - c.get('startedMs')) * 1000) / 1000;
  quietly(() =>
    log?.({
      at: instant(clock.now()),
      call: c.get('call'),
      method,
      route,
      status,
      durationMs,
      ...given({ code, caller: caller && `${caller.kind} ${caller.name}` }),
    }),
  );
  quietly(() => c.get('trace')?.end({ kind: 'answered', status }));
}

/**
 * Starts the span of a call, labelled with the pattern of the path, since a path may hold an id.
 */
function beginTrace(c: Context<Env>, { method, path }: ApiEndpoint, telemetry?: Telemetry): void {
  c.set('route', path);
  const activity = { kind: 'http', route: `${method} ${path}` } as const;
  c.set(
    'trace',
    quietly(() => telemetry?.begin(activity)),
  );
}

async function serve(
  c: Context<Env>,
  endpoint: ApiEndpoint,
  served: Served & { readonly receiveMs: number },
  callers: Callers,
): Promise<Response> {
  const request = c.req.raw;
  const caller = await admit(c, endpoint, callers);
  const path = readPath(endpoint, c.req.param() as Record<string, string>);
  const query = readQuery(endpoint, new URL(request.url).searchParams);
  // A HEAD response has no body, so nothing would end a stream.
  if (request.method === 'HEAD') return c.body(null, 204);
  const { body } = endpoint;
  const text = body === undefined ? '' : await readText(request, body, served.receiveMs);
  const isParsed = body !== undefined && body.isDocument !== true;
  const call = {
    served,
    caller,
    path,
    query,
    text,
    headers: request.headers,
    signal: request.signal,
    isAdmitted: async () => mayCall(await callers.find(c.req.header('authorization')), endpoint),
    body: isParsed ? readJson(body.schema, text) : undefined,
  };
  const answer = await endpoint.run(call as unknown as Parameters<ApiEndpoint['run']>[0]);
  if (answer instanceof Response) return answer;
  const isNew = answer instanceof Created;
  return Response.json(isNew ? answer.content : answer, { status: isNew ? 201 : 200 });
}

/** Identifies the caller before anything else in the call is read. */
async function admit(
  c: Context<Env>,
  endpoint: ApiEndpoint,
  callers: Callers,
): Promise<Caller | undefined> {
  const { scopes } = endpoint;
  if (scopes === undefined) return undefined;
  const caller = await callers.find(c.req.header('authorization'));
  if (caller === undefined) {
    const message = 'the bearer token is missing, unknown or has expired';
    throw new ApiRefusal(401, 'ERR_EM_ACCESS_REFUSED', message);
  }
  c.set('caller', caller);
  if (!caller.pace.take())
    throw new ApiRefusal(429, 'ERR_EM_RATE_LIMITED', 'too many calls in a minute; call later');
  if (mayCall(caller, endpoint)) return caller;
  const message = `the token lacks the scope ${scopes.join(' or ')}; issue one that has it`;
  throw new ApiRefusal(403, 'ERR_EM_ACCESS_REFUSED', message);
}

function mayCall(caller: Caller | undefined, { scopes = [] }: ApiEndpoint): boolean {
  return scopes.some((scope) => caller?.scopes.has(scope) === true);
}

/** Reads the path's parameters. A malformed name cannot exist, so it is not found. */
function readPath({ parameters }: ApiEndpoint, given: Record<string, string>) {
  const read = Object.entries(parameters).map(([name, { schema }]) => {
    const value = readParameter(schema as Schema<unknown>, given[name] ?? '');
    if (value === undefined)
      throw new EffectMatchError('ERR_EM_NOT_FOUND', `there is no ${name} with this name`);
    return [name, value];
  });
  return Object.fromEntries(read) as Call<ApiEndpoint['parameters'], never, never>['path'];
}

function readQuery({ query }: ApiEndpoint, given: URLSearchParams) {
  const read: Record<string, unknown> = {};
  for (const [name, text] of given) {
    const known = Object.hasOwn(query, name) && !Object.hasOwn(read, name);
    const value = known ? readParameter(query[name]?.schema as Schema<unknown>, text) : undefined;
    if (value === undefined) {
      const message = `the parameter "${name.slice(0, 40)}" is unknown, repeated or not valid`;
      throw new EffectMatchError('ERR_EM_INPUT_INVALID', message);
    }
    read[name] = value;
  }
  return read;
}

/** Reads a parameter as text, or as a number if the schema wants one. */
function readParameter(schema: Schema<unknown>, text: string): unknown {
  for (const value of [text, ...(/^\d{1,16}$/.test(text) ? [Number(text)] : [])]) {
    const found = copyOnce(schema, value, 1);
    if ('copy' in found) return found.copy;
  }
  return undefined;
}
