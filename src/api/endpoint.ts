import type { Caller, Scope } from '../access/callers.ts';
import type { Infer, Schema, SchemaDocument } from '../protocol/schema.ts';
import type { EventStream } from '../requests/event-stream.ts';
import type { Requests } from '../requests/requests.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { RefusalStatus } from './problem.ts';

/** What the endpoints need. */
export interface Served {
  readonly runtime: Runtime;
  readonly requests: Requests;
  readonly events: EventStream;
  readonly adapters: readonly string[];
  /** The OpenAPI document. */
  readonly document: SchemaDocument;
}

/** A parameter in the path or the query. */
export interface Parameter {
  readonly about: string;
  readonly schema: Schema<string> | Schema<number>;
}
type Parameters = { readonly [name: string]: Parameter };

/** The input of an endpoint. Everything in it is checked. */
export interface Call<P extends Parameters, Q extends Parameters, B> {
  readonly served: Served;
  readonly caller: Caller;
  /** Whether the token still admits the caller to this endpoint. */
  readonly isAdmitted: () => Promise<boolean>;
  readonly path: { readonly [name in keyof P]: Infer<P[name]['schema']> };
  readonly query: { readonly [name in keyof Q]?: Infer<Q[name]['schema']> };
  readonly body: B;
  /** The raw body, for documents that are checked where they are used. */
  readonly text: string;
  readonly headers: Headers;
  readonly signal: AbortSignal;
}

/** An endpoint's answer, with one of its documented statuses. */
export interface Answer {
  readonly status: number;
  readonly content: unknown;
}

/** The body that an endpoint takes. */
export interface BodyOf<B> {
  readonly schema: Schema<B>;
  readonly about: string;
  /** The endpoint parses the text itself; the schema only describes it. */
  readonly isDocument?: true;
  readonly maxBytes?: number;
}

/**
 * One endpoint: what it takes, what it answers, and what it does. The OpenAPI document is made from
 * it.
 */
export interface ApiEndpoint {
  readonly id: string;
  readonly method: 'GET' | 'POST';
  /** With `{name}` for each parameter. */
  readonly path: string;
  readonly group: string;
  readonly summary: string;
  readonly about?: string;
  /** The token needs one of these scopes; undefined if no token is needed. */
  readonly scopes?: readonly Scope[];
  readonly parameters: Parameters;
  readonly query: Parameters;
  readonly body?: BodyOf<unknown>;
  readonly answers: { readonly [status: number]: { about: string; schema: Schema<unknown> } };
  /** `text/event-stream` for events; JSON otherwise. */
  readonly type?: string;
  /** Refusals besides the ones every endpoint has. */
  readonly refusals: readonly RefusalStatus[];
  run(call: Call<Parameters, Parameters, unknown>): Promise<Answer | Response>;
}

/** Defines an endpoint, and infers the types of its parts. */
export function endpoint<
  B = undefined,
  const P extends Parameters = Record<never, never>,
  const Q extends Parameters = Record<never, never>,
>(
  parts: Omit<ApiEndpoint, 'run' | 'body' | 'parameters' | 'query' | 'refusals'> & {
    readonly parameters?: P;
    readonly query?: Q;
    readonly body?: BodyOf<B>;
    readonly refusals?: readonly RefusalStatus[];
    run(call: Call<P, Q, B>): Promise<Answer | Response>;
  },
): ApiEndpoint {
  const { parameters = {}, query = {}, refusals = [] } = parts;
  return { ...parts, parameters, query, refusals } as unknown as ApiEndpoint;
}

/** An answer with this content. */
export function ok(content: unknown, status = 200): Answer {
  return { status, content };
}
