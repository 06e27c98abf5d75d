import { EffectMatchError } from '../errors.ts';
import { canonical, MAX_DEPTH } from '../protocol/canon.ts';
import { scanJson } from '../protocol/json-text.ts';
import { type Approved, approvedRecord } from '../protocol/manifest.ts';
import { utf8Length } from '../protocol/utf8.ts';

/** A document is an outcome with a few small fields; only the outcome can be large. */
const MAX_BYTES = approvedRecord.maxBytes;

/**
 * Reads the named fields of a document from another person or machine, given as a plain object or
 * as JSON text. It must have exactly these fields, and may have `optional`. Checks that they are
 * own data fields, but not their values.
 */
export function readFields<F extends string>(
  what: string,
  input: unknown,
  fields: readonly F[],
  optional?: F,
): { readonly [field in F]: unknown } {
  const value = typeof input === 'string' ? parseJson(what, input) : input;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(what, 'neither an object nor the JSON text of one');
  }
  const hasOptional = optional !== undefined && Object.hasOwn(value, optional);
  const expected = hasOptional ? [...fields, optional] : fields;
  const count = Reflect.ownKeys(value).length;
  const found = {} as { [field in F]: unknown };
  for (const field of expected) {
    const property = Object.getOwnPropertyDescriptor(value, field);
    if (property === undefined || count !== expected.length) {
      throw invalid(what, `expected exactly the fields ${fields.join(', ')}`);
    }
    if (property.get !== undefined || property.set !== undefined)
      throw invalid(what, `${field} is not a data field`);
    found[field] = property.value;
  }
  return found;
}

/** Checks the outcome in a document. What we parsed from text is ours, so it needs no copy. */
export function readOutcome(document: unknown, outcome: unknown): Approved {
  return typeof document === 'string'
    ? approvedRecord.adopt(outcome)
    : approvedRecord.parse(outcome);
}

/**
 * Rejects JSON with a repeated key: two readers could take different values from it, and a person
 * was shown only one.
 */
function parseJson(what: string, text: string): unknown {
  if (utf8Length(text) > MAX_BYTES) {
    throw new EffectMatchError('ERR_EM_RECORD_TOO_LARGE', `${what}: more than ${MAX_BYTES} bytes`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid(what, 'not JSON', cause);
  }
  const members = countKeys(value, 0);
  if (Number.isNaN(members)) canonical(value);
  if (scanJson(text).members !== members) throw invalid(what, 'a key occurs twice in one object');
  return value;
}

/**
 * Counts the members of all objects in parsed JSON. Returns NaN if `canonical` would refuse any of
 * it.
 */
function countKeys(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.isWellFormed() ? 0 : Number.NaN;
  if (typeof value === 'number')
    return Number.isFinite(value) && !Object.is(value, -0) ? 0 : Number.NaN;
  if (typeof value !== 'object' || value === null) return 0;
  if (depth >= MAX_DEPTH) return Number.NaN;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += countKeys(item, depth + 1);
    return members;
  }
  for (const key of Object.keys(value)) {
    if (key === '__proto__' || !key.isWellFormed()) return Number.NaN;
    members += 1 + countKeys((value as Record<string, unknown>)[key], depth + 1);
  }
  return members;
}

function invalid(
  what: string,
  why: string,
  cause?: unknown,
): EffectMatchError<'ERR_EM_RECORD_INVALID'> {
  return new EffectMatchError('ERR_EM_RECORD_INVALID', `${what}: ${why}`, { cause });
}
