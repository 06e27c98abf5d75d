import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Value } from '../protocol/value.ts';
import { digitsOf } from './number.ts';

/** A request without its credential and without its idempotency key: what a permit binds. */
export interface Content {
  readonly operation: string;
  readonly method: string;
  /** Path and query under the service's URL. */
  readonly path: string;
  /** Lower-case names, sorted. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Value;
  /** The header that will carry the occurrence; null where the service takes none. */
  readonly idempotency: string | null;
}

/** What varies in a request; method and path template do not. */
export interface RequestParts {
  /** Fills `{name}` in the path; every value is escaped. */
  readonly parameters?: Readonly<Record<string, Value>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Value;
}

/** Headers that belong to the connection or to the gateway; no operation sets them. */
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
 * Puts a request together from fixed and varying parts. Throws `ERR_EM_MANIFEST_INVALID` with what
 * is missing.
 */
export function buildContent(
  operation: string,
  fixed: { readonly method: string; readonly path: string; readonly idempotency: string | null },
  parts: RequestParts,
  reserved: readonly string[],
): Content {
  const owned = [...RESERVED, ...reserved];
  if (fixed.idempotency !== null && owned.includes(fixed.idempotency)) {
    throw invalid(
      `the idempotency key of operation "${operation}" cannot be sent as "${fixed.idempotency}"`,
    );
  }
  const headers = Object.entries(parts.headers ?? {}).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  for (const [name, value] of headers) {
    const taken = owned.includes(name) || name === fixed.idempotency;
    if (
      taken ||
      !/^[a-z0-9-]+$/.test(name) ||
      typeof value !== 'string' ||
      !/^[\x20-\x7e]*$/.test(value)
    ) {
      throw invalid(`operation "${operation}" may not set the header "${name}" to that`);
    }
  }
  const content = {
    operation,
    method: fixed.method,
    path: fillPath(fixed.path, parts.parameters ?? {}, parts.query),
    headers: Object.fromEntries(headers.toSorted(([a], [b]) => (a < b ? -1 : 1))),
    body: parts.body ?? null,
    idempotency: fixed.idempotency,
  };
  try {
    return JSON.parse(canonical(content)) as Content;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : '';
    throw new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      `operation "${operation}" cannot be requested from what is approved exactly: ${why}`,
      { cause },
    );
  }
}

/**
 * Fills `{name}`. A value can never become more than one segment, so it cannot lead anywhere else.
 */
export function fillPath(
  template: string,
  parameters: Readonly<Record<string, Value>>,
  query: Readonly<Record<string, string | number>> = {},
): string {
  const path = template.replace(/\{([A-Za-z0-9_]+)\}/g, (_, name: string) => {
    const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    const scalar = value === undefined ? undefined : (digitsOf(value) ?? value);
    if (typeof scalar !== 'string' && typeof scalar !== 'number')
      throw invalid(`"${name}" in ${template} has no value`);
    const text = String(scalar);
    if (text === '' || text === '.' || text === '..' || !text.isWellFormed()) {
      throw invalid(`"${name}" in ${template} cannot be ${JSON.stringify(text)}`);
    }
    return encodeURIComponent(text);
  });
  const asked = Object.entries(query).map(([name, value]): [string, string] => {
    if (typeof value !== 'string' && typeof value !== 'number')
      throw invalid(`"${name}" in the query has no value`);
    return [name, String(value)];
  });
  const search = new URLSearchParams(asked).toString();
  return search === '' ? path : `${path}?${search}`;
}

/** The body as it is sent; the same value is always the same bytes. */
export function bodyText(content: Content): string | undefined {
  return content.body === null ? undefined : canonical(content.body);
}

function invalid(what: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', what);
}
