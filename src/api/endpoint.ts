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

/** An answer with status 201. */
export class Created {
  readonly content: unknown;

  constructor(content: unknown) {
    this.content = content;
  }
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
  /** What it answers with status 200. */
  readonly answer: Schema<unknown>;
  /** The meaning of status 201, if it may answer with that too. */
  readonly created?: string;
  /** `text/event-stream` for events; JSON otherwise. */
  readonly type?: string;
  /** Refusals besides the ones every endpoint has. */
  readonly refusals: readonly RefusalStatus[];
  /** Returns the content of the answer, {@link Created}, or a whole response. */
  run(call: Call<Parameters, Parameters, unknown>): Promise<unknown>;
}

/** Defines an endpoint, and infers the types of its parts. */
export function endpoint<
  B = undefined,
  const P extends Parameters = Record<never, never>,
  const Q extends Parameters = Record<never, never>,
>(
  parts: Omit<
    ApiEndpoint,
    'method' | 'path' | 'run' | 'body' | 'parameters' | 'query' | 'refusals'
  > & {
    /** The method and the path. */
    readonly route: `${ApiEndpoint['method']} ${string}`;
    readonly parameters?: P;
    readonly query?: Q;
    readonly body?: BodyOf<B>;
    readonly refusals?: readonly RefusalStatus[];
    run(call: Call<P, Q, B>): Promise<unknown>;
  },
): ApiEndpoint {
  const { route, parameters = {}, query = {}, refusals = [], ...rest } = parts;
  const [method, path] = route.split(' ');
  return { ...rest, method, path, parameters, query, refusals } as unknown as ApiEndpoint;
}
