import { z } from 'zod';
import { EffectMatchError } from '../errors.ts';
import { canonical, KEPT_AFTER } from './canon.ts';
import { compileReader, type Read } from './compile-reader.ts';
import { DIGEST, EXECUTION, INSTANT, NAME, NONCE, OCCURRENCE } from './patterns.ts';

/** Lower-case hex SHA-256 over a domain label and canonical text. */
export type Digest = string & { readonly __digest: never };
/**
 * The one-use right that a license buys, named by a digest of the license: every store finds the
 * same name.
 */
export type OccurrenceId = string & { readonly __occurrence: never };
/** One attempt at an occurrence. */
export type ExecutionId = string & { readonly __execution: never };

export const digestSchema = z.string().regex(DIGEST) as unknown as z.ZodType<Digest>;
export const occurrenceSchema = z.string().regex(OCCURRENCE) as unknown as z.ZodType<OccurrenceId>;
export const executionSchema = z.string().regex(EXECUTION) as unknown as z.ZodType<ExecutionId>;
/** Names that people choose: issuers, adapters, continuations. */
export const nameSchema = z.string().regex(NAME);
/** Free text that people choose, such as a task id; no control characters. */
export const labelSchema = z
  .string()
  .min(1)
  .max(256)
  .regex(/^\P{Cc}+$/u);
/** Chosen by an approver, once per license. */
export const nonceSchema = z.string().regex(NONCE);
/**
 * ISO 8601 in UTC with milliseconds, the only form records carry; compares as text in order of
 * time.
 */
export const instantSchema = z.string().regex(INSTANT);

/**
 * A record kind: closed schema, version, size limit, and the domain label of its digests and seals.
 */
export interface RecordKind<T> {
  readonly kind: string;
  readonly version: number;
  readonly maxBytes: number;
  readonly domain: string;
  /**
   * For records that carry one of this kind inside. Text and size are then checked with the outer
   * record.
   */
  readonly schema: z.ZodType<T>;
  /**
   * Checks unknown input completely; unknown fields, wrong types and oversize are refused. What it
   * returns is a frozen copy of its own.
   */
  parse(input: unknown): T;
  /** The same, with the canonical text for whoever keeps both together. */
  read(input: unknown): { readonly record: T; readonly text: string };
  /** Parses canonical text; text that is not its own canonical form is refused. */
  parseText(text: string): T;
  /** The canonical text, checked against the schema and the size limit. */
  text(record: T): string;
}

/**
 * Longer texts are not kept beside their record: writing them again is cheaper than holding two of
 * everything.
 */
const KEPT_CHARACTERS_MAX = 1 << 20;

export function defineRecord<S extends z.ZodType>(
  kind: string,
  version: number,
  maxBytes: number,
  schema: S,
): RecordKind<z.infer<S>> {
  type T = z.infer<S>;
  const compiled = compileReader(schema);
  /**
   * A record and its text, where one pass over the input finds nothing to refuse; else the steps
   * below say what it is.
   */
  const readOnce = (input: unknown, maxObjects: number): Read | undefined => {
    const found = compiled?.(input, maxObjects);
    return found !== undefined && fits(found.text, maxBytes) ? found : undefined;
  };
  const demandFits = (text: string): void => {
    if (fits(text, maxBytes)) return;
    const bytes = Buffer.byteLength(text);
    throw new EffectMatchError(
      'ERR_EM_RECORD_TOO_LARGE',
      `${kind}: ${bytes} bytes, at most ${maxBytes}`,
    );
  };
  const checked = (input: unknown, text: string): T => {
    demandFits(text);
    const result = schema.safeParse(input);
    if (!result.success) throw invalid(kind, result.error);
    return result.data;
  };
  // Records that were checked here and cannot have changed since, with their texts: each is frozen
  // through and through and shares nothing with what it was made from. So a record is checked once,
  // however often it is digested.
  const known = new WeakMap<object, string | undefined>();
  const keep = (own: T, text: string): T => {
    if (typeof own === 'object' && own !== null)
      known.set(own, text.length > KEPT_CHARACTERS_MAX ? undefined : text);
    return own;
  };
  const isKnown = (input: unknown): input is T & object =>
    typeof input === 'object' && input !== null && known.has(input);
  /**
   * For data that was just read from its canonical text, so that nobody else holds it and no object
   * stands in it twice.
   */
  const parseOwn = (input: unknown, text: string): T => {
    const found = readOnce(input, Number.POSITIVE_INFINITY);
    return keep(found === undefined ? freezeDeep(checked(input, text)) : (found.copy as T), text);
  };
  const read = (input: unknown): { readonly record: T; readonly text: string } => {
    if (isKnown(input)) return { record: input, text: known.get(input) ?? canonical(input) };
    const found = readOnce(input, KEPT_AFTER);
    if (found !== undefined) return { record: found.copy as T, text: found.text };
    const text = canonical(input);
    // Before it is read: the text of a small graph can be long, and what is read from it is many
    // times larger.
    demandFits(text);
    return { record: parseOwn(JSON.parse(text), text), text };
  };
  return {
    kind,
    version,
    maxBytes,
    domain: `effectmatch/${kind}/v${version}`,
    schema: schema as unknown as z.ZodType<T>,
    parse(input) {
      if (isKnown(input)) return input;
      const { record, text } = read(input);
      return keep(record, text);
    },
    read,
    parseText(text) {
      if (!fits(text, maxBytes)) {
        throw new EffectMatchError(
          'ERR_EM_RECORD_TOO_LARGE',
          `${kind}: more than ${maxBytes} bytes`,
        );
      }
      const input = parseJson(kind, text);
      const found = readOnce(input, Number.POSITIVE_INFINITY);
      if (found?.text === text) return keep(found.copy as T, text);
      if (canonical(input) !== text) {
        throw new EffectMatchError(
          'ERR_EM_RECORD_INVALID',
          `${kind}: the text is not in canonical form`,
        );
      }
      return parseOwn(input, text);
    },
    text: (record) => read(record).text,
  };
}

/**
 * Measuring also makes the text one piece. One that is kept would else keep every part that it was
 * joined from.
 */
function fits(text: string, maxBytes: number): boolean {
  return Buffer.byteLength(text) <= maxBytes;
}

/** Freezes plain data through and through, in place. */
export function freezeDeep<V>(value: V): V {
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
  return new EffectMatchError(
    'ERR_EM_RECORD_INVALID',
    `${kind}${where}: ${issue?.message ?? 'invalid'}`,
    {
      cause: error,
    },
  );
}
