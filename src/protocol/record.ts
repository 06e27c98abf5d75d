import { EffectMatchError } from '../errors.ts';
import { canonical, KEPT_AFTER } from './canon.ts';
import {
  accepts,
  type Copied,
  checked,
  copyOnce,
  form,
  type Schema,
  type SchemaRefusal,
  text,
  writePieces,
} from './schema.ts';
import { joinPieces, utf8Length } from './utf8.ts';

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
  /**
   * Like `parse`, for plain data that no other code holds or changes, such as parsed JSON. What is in
   * canonical order is frozen instead of copied.
   */
  adopt(input: unknown): T;
  /** Like `parse`, but also returns the canonical text. */
  read(input: unknown): { readonly record: T; readonly text: string };
  /** Parses canonical text. Refuses text that is not in canonical form. */
  parseText(text: string): T;
  /** The canonical text, checked against the schema and the size limit. */
  text(record: T): string;
  /** The same text in pieces, which takes less memory if it is long. */
  pieces(record: T): Iterable<string>;
  /** What `compute` makes of the pieces. Called once for a record that was parsed here. */
  digest(record: T, compute: (pieces: Iterable<string>) => Digest): Digest;
}

/** Longer texts are not cached with their record, to save memory. They are written again. */
const KEPT_CHARACTERS_MAX = 1 << 25;

/**
 * What is kept of a checked record: the length of its text in bytes, and the text if it is short.
 * It does not refer to the record: the engine's frequent collections keep the values of a WeakMap
 * alive, and would keep the record with them.
 */
interface Kept {
  readonly inOrder: boolean;
  readonly bytes: number;
  readonly text?: string | undefined;
  digest?: Digest;
}

/** A checked record. */
interface Found<T> {
  readonly copy: T;
  readonly kept: Kept;
}

/** Defines a record kind. */
export function defineRecord<T extends object>(
  kind: string,
  version: number,
  maxBytes: number,
  schema: Schema<T>,
): RecordKind<T> {
  // Records that were checked here, with their texts. They are deeply frozen and share nothing with
  // what others hold, so they cannot have changed. A record is therefore checked once, however often
  // it is digested.
  const known = new WeakMap<object, Kept>();
  const keep = ({ copy, kept }: Found<T>): T => {
    known.set(copy, kept);
    return copy;
  };
  const size = { kind, maxBytes };
  const knownOf = (input: unknown): Found<T> | undefined => {
    const kept = typeof input === 'object' && input !== null ? known.get(input) : undefined;
    return kept && { copy: input as T, kept };
  };
  const check = (input: unknown, isOwned: boolean): Found<T> => {
    const found = measured(copyOnce(schema, input, KEPT_AFTER, isOwned), size);
    if ('copy' in found) return found;
    // Building the text reports data that is not plain, and shows how large it is.
    const text = canonical(input);
    demandFits(kind, utf8Length(text), maxBytes);
    return accept(kind, own(parseJson(kind, text)));
  };
  const own = (input: unknown) =>
    measured(copyOnce(schema, input, Number.POSITIVE_INFINITY, true), size);
  const read = (input: unknown): Found<T> => knownOf(input) ?? check(input, false);
  return {
    kind,
    version,
    maxBytes,
    domain: `effectmatch/${kind}/v${version}`,
    schema,
    parse: (input) => knownOf(input)?.copy ?? keep(check(input, false)),
    adopt: (input) => knownOf(input)?.copy ?? keep(check(input, true)),
    read(input) {
      const found = read(input);
      return { record: found.copy, text: textOf(found) };
    },
    parseText(text) {
      demandFits(kind, utf8Length(text), maxBytes);
      const found = own(parseJson(kind, text));
      const isCanonical =
        'copy' in found ? isText(found, text) : canonical(parseJson(kind, text)) === text;
      if (!isCanonical) throw invalid(kind, 'the text is not in canonical form');
      return keep(accept(kind, found));
    },
    text: (record) => textOf(read(record)),
    pieces: (record) => piecesOf(read(record)),
    digest(record, compute) {
      const found = read(record);
      found.kept.digest ??= compute(piecesOf(found));
      return found.kept.digest;
    },
  };
}

/** Adds the text if it is short. Refuses a record with more bytes than its kind may have. */
function measured<T extends object>(
  found: Copied<T> | SchemaRefusal,
  { kind, maxBytes }: { readonly kind: string; readonly maxBytes: number },
): Found<T> | SchemaRefusal {
  if (!('copy' in found)) return found;
  const { copy, inOrder } = found;
  let bytes = 0;
  let kept: string[] | undefined = [];
  for (const piece of writePieces(found)) {
    if (piece === undefined) return { path: [], why: 'is too long' };
    // Measuring also flattens the text, which would otherwise keep every part it was joined from.
    bytes += utf8Length(piece);
    kept?.push(piece);
    if (bytes > KEPT_CHARACTERS_MAX) kept = undefined;
  }
  demandFits(kind, bytes, maxBytes);
  const text = kept?.length === 1 ? kept[0] : kept?.join('');
  return { copy, kept: { inOrder, bytes, text } };
}

/** The pieces were measured before, so none of them is too long. */
function piecesOf<T extends object>({ copy, kept }: Found<T>): Iterable<string> {
  const { text, inOrder } = kept;
  return text === undefined ? (writePieces({ copy, inOrder }) as Iterable<string>) : [text];
}

function textOf<T extends object>(found: Found<T>): string {
  return found.kept.text ?? joinPieces(piecesOf(found), found.kept.bytes);
}

/** Whether a record has this text. */
function isText<T extends object>(found: Found<T>, text: string): boolean {
  let at = 0;
  for (const piece of piecesOf(found)) {
    if (!text.startsWith(piece, at)) return false;
    at += piece.length;
  }
  return at === text.length;
}

function accept<T>(kind: string, found: Found<T> | SchemaRefusal): Found<T> {
  if ('copy' in found) return found;
  const where = found.path.length > 0 ? ` at ${found.path.join('.')}` : '';
  throw invalid(`${kind}${where}`, found.why);
}

function demandFits(kind: string, bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  const what = `${kind}: ${bytes} bytes, at most ${maxBytes}`;
  throw new EffectMatchError('ERR_EM_RECORD_TOO_LARGE', what);
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
