import { z } from 'zod';
import { EffectMatchError } from '../errors.ts';
import { canonical } from './canon.ts';
import { compileReader, type Read } from './one-pass.ts';

/** Lower-case hex SHA-256 over a domain label and canonical text. */
export type Digest = string & { readonly __digest: never };
/** The one-use right that a license buys, named by a digest of the license: every store finds the same name. */
export type OccurrenceId = string & { readonly __occurrence: never };
/** One attempt at an occurrence. */
export type ExecutionId = string & { readonly __execution: never };

export const digestSchema = z.string().regex(/^[0-9a-f]{64}$/) as unknown as z.ZodType<Digest>;
export const occurrenceSchema = z.string().regex(/^occ_[0-9a-f]{40}$/) as unknown as z.ZodType<OccurrenceId>;
export const executionSchema = z.string().regex(/^exe_[0-9a-f]{32}$/) as unknown as z.ZodType<ExecutionId>;
/** Names that people choose: issuers, adapters, continuations. */
export const nameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$/);
/** Free text that people choose, such as a task id; no control characters. */
export const labelSchema = z
  .string()
  .min(1)
  .max(256)
  .regex(/^\P{Cc}+$/u);
/** Chosen by an approver, once per license. */
export const nonceSchema = z.string().regex(/^[A-Za-z0-9_-]{16,64}$/);
/** ISO 8601 in UTC with milliseconds, the only form records carry; compares as text in order of time. */
export const instantSchema = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/);

/** A record kind: closed schema, version, size limit, and the domain label of its digests and seals. */
export interface RecordKind<T> {
  readonly kind: string;
  readonly version: number;
  readonly maxBytes: number;
  readonly domain: string;
  /** For records that carry one of this kind inside. Text and size are then checked with the outer record. */
  readonly schema: z.ZodType<T>;
  /**
   * Checks unknown input completely; unknown fields, wrong types and oversize are refused. What it returns is a copy
   * of its own, frozen where it is not exceptionally large.
   */
  parse(input: unknown): T;
  /** Parses canonical text; text that is not its own canonical form is refused. */
  parseText(text: string): T;
  /** The canonical text, checked against the schema and the size limit. */
  text(record: T): string;
}

/** Longer texts are not kept beside their record: writing them again is cheaper than holding two of everything. */
const KEPT_CHARACTERS_MAX = 1 << 20;

export function defineRecord<S extends z.ZodType>(
  kind: string,
  version: number,
  maxBytes: number,
  schema: S,
): RecordKind<z.infer<S>> {
  type T = z.infer<S>;
  const read = compileReader(schema);
  /** A record and its text, where one pass over the input finds nothing to refuse; else the steps below say what it is. */
  const readOnce = (input: unknown): Read | undefined => {
    const found = read?.(input);
    return found !== undefined && fits(found.text, maxBytes) ? found : undefined;
  };
  const checked = (input: unknown, text: string): T => {
    if (!fits(text, maxBytes)) {
      const bytes = Buffer.byteLength(text);
      throw new EffectMatchError('ERR_EM_RECORD_TOO_LARGE', `${kind}: ${bytes} bytes, at most ${maxBytes}`);
    }
    const result = schema.safeParse(input);
    if (!result.success) throw invalid(kind, result.error);
    return result.data;
  };
  // Records that were checked here and cannot have changed since, with their texts: each is frozen through and through
  // and shares nothing with what it was made from. So a record is checked once, however often it is digested.
  const known = new WeakMap<object, string | undefined>();
  const keep = (own: T, text: string): T => {
    if (typeof own === 'object' && own !== null) known.set(own, text.length > KEPT_CHARACTERS_MAX ? undefined : text);
    return own;
  };
  const isKnown = (input: unknown): input is T & object =>
    typeof input === 'object' && input !== null && known.has(input);
  return {
    kind,
    version,
    maxBytes,
    domain: `effectmatch/${kind}/v${version}`,
    schema: schema as unknown as z.ZodType<T>,
    parse(input) {
      if (isKnown(input)) return input;
      const found = readOnce(input);
      if (found !== undefined) return keep(found.copy as T, found.text);
      const text = canonical(input);
      return keep(freezeDeep(checked(JSON.parse(text), text)), text);
    },
    parseText(text) {
      if (!fits(text, maxBytes)) {
        throw new EffectMatchError('ERR_EM_RECORD_TOO_LARGE', `${kind}: more than ${maxBytes} bytes`);
      }
      const input = parseJson(kind, text);
      const found = readOnce(input);
      if (found !== undefined && found.text === text) return keep(found.copy as T, text);
      if (canonical(input) !== text) {
        throw new EffectMatchError('ERR_EM_RECORD_INVALID', `${kind}: the text is not in canonical form`);
      }
      return keep(freezeDeep(checked(input, text)), text);
    },
    text(record) {
      if (isKnown(record)) return known.get(record) ?? canonical(record);
      const found = readOnce(record);
      if (found !== undefined) return found.text;
      const text = canonical(record);
      checked(record, text);
      return text;
    },
  };
}

/** No character takes more than three bytes for each of its UTF-16 units, so that short texts need not be measured. */
function fits(text: string, maxBytes: number): boolean {
  return Buffer.byteLength(text) <= maxBytes;
}

function freezeDeep<V>(value: V): V {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) freezeDeep(inner);
  return Object.freeze(value);
}

function parseJson(kind: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new EffectMatchError('ERR_EM_RECORD_INVALID', `${kind}: not JSON`, { cause });
  }
}

function invalid(kind: string, error: z.ZodError): EffectMatchError {
  const issue = error.issues[0];
  const where = issue && issue.path.length > 0 ? ` at ${issue.path.join('.')}` : '';
  return new EffectMatchError('ERR_EM_RECORD_INVALID', `${kind}${where}: ${issue?.message ?? 'invalid'}`, {
    cause: error,
  });
}
