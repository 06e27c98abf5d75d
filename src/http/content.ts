import { canonical } from '../protocol/canon.ts';
import { isObject, readTag, type Value } from '../protocol/value.ts';
import { invalid } from './errors.ts';
import { digitsOf } from './number.ts';

/** A request without its credential and idempotency key. A permit is bound to it. */
export type Content = FixedParts & {
  /** Lower-case names, sorted. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Value;
};

/** The parts that all requests of an operation have in common. */
export type FixedParts = {
  readonly operation: string;
  readonly method: string;
  /** Path and query under the service's URL; a template until it is filled. */
  readonly path: string;
  /** The header for the occurrence; null if the service does not accept one. */
  readonly idempotency: string | null;
};

/** The parts that vary between requests. Method and path template do not. */
export interface RequestParts {
  /** Values for `{name}` in the path. Every value is escaped. */
  readonly parameters?: Readonly<Record<string, Value>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Value;
}

/** Headers that belong to the connection or the gateway. Operations cannot set them. */
const RESERVED = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'expect',
  'upgrade',
  'te',
  'trailer',
];

/**
 * Builds a request from its fixed and varying parts. Throws `ERR_EM_MANIFEST_INVALID` if a part is
 * missing or not allowed.
 */
export function buildContent(
  fixed: FixedParts,
  parts: RequestParts,
  credentialHeader: string,
): Content {
  const { operation, idempotency } = fixed;
  const reserved = [...RESERVED, credentialHeader];
  if (idempotency !== null && reserved.includes(idempotency)) {
    throw invalid(`the idempotency key of operation "${operation}" cannot be "${idempotency}"`);
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(parts.headers ?? {})) {
    const lower = name.toLowerCase();
    const taken = reserved.includes(lower) || lower === idempotency;
    if (taken || !isHeaderName(lower) || !isHeaderValue(value)) {
      throw invalid(`operation "${operation}" may not set the header "${lower}" to that`);
    }
    headers[lower] = value;
  }
  const path = fillPath(fixed.path, parts.parameters, parts.query);
  try {
    return JSON.parse(
      canonical({
        ...fixed,
        path,
        headers,
        body: parts.body ?? null,
      }),
    ) as Content;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : '';
    throw invalid(`operation "${operation}" cannot be requested as approved: ${why}`, cause);
  }
}

/** Whether this is a valid header name. */
export function isHeaderName(name: unknown): name is string {
  return typeof name === 'string' && /^[A-Za-z0-9-]+$/.test(name);
}

function isHeaderValue(value: unknown): boolean {
  return typeof value === 'string' && /^[\x20-\x7e]*$/.test(value);
}

/**
 * Fills `{name}` in a path. A value is always a single segment, so it cannot lead to another path.
 */
export function fillPath(
  template: string,
  parameters: Readonly<Record<string, Value>> = {},
  query: Readonly<Record<string, string | number>> = {},
): string {
  const path = template.replace(/\{([A-Za-z0-9_]+)\}/g, (_, name: string) => {
    const value = (Object.hasOwn(parameters, name) ? parameters[name] : undefined) ?? null;
    const scalar = digitsOf(value) ?? value;
    if (!isTextOrNumber(scalar)) throw invalid(`"${name}" in ${template} has no value`);
    const text = String(scalar);
    if (text === '' || text === '.' || text === '..' || !text.isWellFormed()) {
      throw invalid(`"${name}" in ${template} cannot be ${JSON.stringify(text)}`);
    }
    return encodeURIComponent(text);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (!isTextOrNumber(value)) throw invalid(`"${name}" in the query has no value`);
    search.append(name, String(value));
  }
  return search.size === 0 ? path : `${path}?${search}`;
}

function isTextOrNumber(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

/**
 * Converts approved values to the JSON for a service. Keys that start with `$$` lose one `$`, which
 * only approvals have. Tagged scalars are refused, because any JSON form would be a guess. An
 * operation that needs such a number must write it itself, for example as text.
 */
export function decodeData(value: Value): Value {
  if (Array.isArray(value)) return (value as readonly Value[]).map(decodeData);
  if (!isObject(value)) return value;
  const tagged = readTag(value);
  if (tagged !== undefined)
    throw inexact(`a body cannot carry ${tagged.tag} ${tagged.text.slice(0, 40)}`);
  const decoded = new Map<string, Value>();
  for (const [key, inner] of Object.entries(value)) {
    const name = key.startsWith('$$') ? key.slice(1) : key;
    if (decoded.has(name)) throw inexact('a body has two keys that are sent as one');
    decoded.set(name, decodeData(inner));
  }
  return Object.fromEntries(decoded);
}

function inexact(why: string): Error {
  return invalid(`what is approved cannot be requested exactly: ${why}`);
}
