import { EffectMatchError } from '../errors.ts';
import { canonical, KEPT_AFTER } from './canon.ts';
import {
  accepts,
  checked,
  form,
  type Read,
  readOnce,
  type Schema,
  type SchemaRefusal,
  text,
} from './schema.ts';
import { utf8Length } from './utf8.ts';

/** SHA-256 over a domain label and canonical text, in lower-case hex. */
export type Digest = string & { readonly __digest: never };
/**
 * The right to one execution, which a license grants. The id is derived from the license, so every
 * store computes the same one.
 */
export type OccurrenceId = string & { readonly __occurrence: never };
/** One attempt at an occurrence. */
export type ExecutionId = string & { readonly __execution: never };

export const digestSchema: Schema<Digest> = form(
  /^[0-9a-f]{64}$/,
  'a SHA-256 digest in lower-case hex',
);
export const occurrenceSchema: Schema<OccurrenceId> = form(
  /^occ_[0-9a-f]{40}$/,
  'an occurrence id: occ_ and 40 hex digits',
);
export const executionSchema: Schema<ExecutionId> = form(
  /^exe_[0-9a-f]{32}$/,
  'an execution id: exe_ and 32 hex digits',
);
/** Names that people choose: issuers, adapters, continuations. */
export const nameSchema = form(
  /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$/,
  'a name of at most 128 letters, digits and . _ : / @ -, which begins with a letter or digit',
);
export function isName(value: unknown): boolean {
  return accepts(nameSchema, value);
}
/** Free text that people choose, such as a task id. */
export const labelSchema = checked(
  text(1, 256),
  (label) => /^\P{Cc}+$/u.test(label),
  'must not have control characters',
);
/** Chosen by an approver, once per license. */
export const nonceSchema = form(
  /^[A-Za-z0-9_-]{16,64}$/,
  'a nonce of 16 to 64 letters, digits, - and _',
);
/** A person's signature, in either form. It does not say who signed. */
export const signatureSchema = form(
  /^(?:[A-Za-z0-9_-]{86}|passkey(?:\.[A-Za-z0-9_-]{1,4096}){3})$/,
  'a signature of 86 base64url characters, or the assertion of a passkey',
);
/** ISO 8601 in UTC with milliseconds, the only form in records. Texts sort in order of time. */
export const instantSchema = form(
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/,
  'a time in UTC such as 2026-01-31T10:00:00.000Z',
);

/**
 * A record kind: closed schema, version, size limit, and the domain label of its digests and seals.
 */
export interface RecordKind<T> {
  readonly kind: string;
  readonly version: number;
  readonly maxBytes: number;
  readonly domain: string;
  /**
   * For records that contain a record of this kind. Text and size are then checked with the outer
   * record.
   */
  readonly schema: Schema<T>;
  /**
   * Checks unknown input completely and refuses unknown fields, wrong types and oversize. Returns a
   * frozen copy.
   */
  parse(input: unknown): T;
  /** Like `parse`, but also returns the canonical text. */
  read(input: unknown): { readonly record: T; readonly text: string };
  /** Parses canonical text. Refuses text that is not in canonical form. */
  parseText(text: string): T;
  /** The canonical text, checked against the schema and the size limit. */
  text(record: T): string;
}

/** Longer texts are not cached with their record, to save memory. They are written again. */
const KEPT_CHARACTERS_MAX = 1 << 25;

/** Defines a record kind. */
export function defineRecord<T extends object>(
  kind: string,
  version: number,
  maxBytes: number,
  schema: Schema<T>,
): RecordKind<T> {
  // Records that were checked here, with their texts. They are deeply frozen and share nothing with
  // their input, so they cannot have changed. A record is therefore checked once, however often it
  // is digested.
  const known = new WeakMap<object, string | undefined>();
  const keep = ({ copy, text }: Read<T>): T => {
    known.set(copy, text.length > KEPT_CHARACTERS_MAX ? undefined : text);
    return copy;
  };
  const isKnown = (input: unknown): input is T =>
    typeof input === 'object' && input !== null && known.has(input);
  const read = (input: unknown): Read<T> => {
    if (isKnown(input)) return { copy: input, text: known.get(input) ?? canonical(input) };
    const found = readOnce(schema, input, KEPT_AFTER);
    if ('text' in found && fits(found.text, maxBytes)) return found;
    // Building the text reports data that is not plain, and shows how large it is.
    const text = canonical(input);
    demandFits(kind, text, maxBytes);
    return accept(kind, readOnce(schema, JSON.parse(text), Number.POSITIVE_INFINITY));
  };
  return {
    kind,
    version,
    maxBytes,
    domain: `effectmatch/${kind}/v${version}`,
    schema,
    parse: (input) => (isKnown(input) ? input : keep(read(input))),
    read(input) {
      const { copy, text } = read(input);
      return { record: copy, text };
    },
    parseText(text) {
      demandFits(kind, text, maxBytes);
      const input = parseJson(kind, text);
      const found = readOnce(schema, input, Number.POSITIVE_INFINITY);
      const isCanonical = 'text' in found ? found.text === text : canonical(input) === text;
      if (!isCanonical) throw invalid(kind, 'the text is not in canonical form');
      return keep(accept(kind, found));
    },
    text: (record) => read(record).text,
  };
}

function accept<T>(kind: string, found: Read<T> | SchemaRefusal): Read<T> {
  if ('text' in found) return found;
  const where = found.path.length > 0 ? ` at ${found.path.join('.')}` : '';
  throw invalid(`${kind}${where}`, found.why);
}

function demandFits(kind: string, text: string, maxBytes: number): void {
  if (fits(text, maxBytes)) return;
  throw new EffectMatchError(
    'ERR_EM_RECORD_TOO_LARGE',
    `${kind}: ${utf8Length(text)} bytes, at most ${maxBytes}`,
  );
}

/**
 * Measuring also flattens the text. A cached text would otherwise keep every part it was joined
 * from.
 */
function fits(text: string, maxBytes: number): boolean {
  return utf8Length(text) <= maxBytes;
}

/** Freezes plain data deeply, in place. */
export function freezeDeep<V>(value: V): V {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) freezeDeep(inner);
  return Object.freeze(value);
}

function parseJson(kind: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(kind, 'not JSON', { cause });
  }
}

function invalid(what: string, why: string, options?: ErrorOptions): EffectMatchError {
  return new EffectMatchError('ERR_EM_RECORD_INVALID', `${what}: ${why}`, options);
}
