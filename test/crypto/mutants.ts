import assert from 'node:assert/strict';
import { EffectMatchError, type ErrorCode } from '../../src/errors.ts';

export type Path = readonly (string | number)[];
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/**
 * One place in a record: `closed` objects fix their fields, `map` objects their values, `json`
 * content is free.
 */
export interface Place {
  readonly path: Path;
  readonly value: Json;
  readonly zone: 'closed' | 'map' | 'json';
}

/**
 * Where records carry names and values of the application; everything else is fixed by a schema.
 */
const MAPS = [
  /^(manifest|approved)\.effects\.\d+\.(key|before|after)$/,
  /^(manifest|approved)\.(requires\.\d+\.(key|row)|watch\.\d+\.key)$/,
  /^policy\.issuers$/,
  /^policy\.issuers\.[^.]+\.limits\.maxRows$/,
];
const JSON_VALUES = [
  /^(manifest|approved)\.effects\.\d+\.(key|before|after)\.[^.]+\.(is|(oneOf|between)\.\d+)(\.|$)/,
  /^(manifest|approved)\.(requires\.\d+\.(key|row)|watch\.\d+\.key)\./,
  /^(receipt\.|statement\.predicate\.)?(terminal|shadow)\.outcome\.diff\.(extra|missing|altered)\.\d+(\.|$)/,
];

/** Every place of a record, the record itself first. */
export function places(kind: string, value: Json, path: Path = []): readonly Place[] {
  const name = [kind, ...path].join('.');
  const zone = JSON_VALUES.some((pattern) => pattern.test(name))
    ? 'json'
    : MAPS.some((pattern) => pattern.test(name))
      ? 'map'
      : 'closed';
  const inner = isContainer(value)
    ? Object.entries(value).flatMap(([key, item]) =>
        places(kind, item, [...path, Array.isArray(value) ? +key : key]),
      )
    : [];
  return [{ path, value, zone }, ...inner];
}

export function isContainer(
  value: Json,
): value is readonly Json[] | { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null;
}

export function isObject(value: Json): value is { readonly [key: string]: Json } {
  return isContainer(value) && !Array.isArray(value);
}

/**
 * A deep copy in which the value at `path` is what `change` makes of it; undefined removes the
 * field.
 */
export function mutate(
  value: Json,
  path: Path,
  change: (value: Json) => Json | undefined,
): Json | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return change(structuredClone(value) as Json);
  assert.ok(isContainer(value));
  const copy = structuredClone(value) as Record<string | number, Json>;
  const changed = mutate(copy[step] as Json, rest, change);
  if (changed === undefined) delete copy[step];
  else copy[step] = changed;
  return copy as Json;
}

/** An own field of that name, even where an assignment would set the prototype. */
export function withField(value: Json, field: string, content: Json): Json {
  return Object.defineProperty(structuredClone(value) as object, field, {
    value: content,
    enumerable: true,
    configurable: true,
    writable: true,
  }) as Json;
}

/**
 * The call refuses with this code. Not refusing, or throwing anything but our error, fails the
 * test.
 */
export function assertRefuses(code: ErrorCode, call: () => unknown, what: string): void {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    assert.ok(error instanceof EffectMatchError, `${what}: threw ${String(error)}`);
    assert.equal(error.code, code, `${what}: ${error.message}`);
    assert.ok(error.message.length > 10, `${what}: the message says something`);
    return;
  }
  assert.fail(`${what}: was accepted as ${JSON.stringify(result)}`);
}
