import { createHash, hash } from 'node:crypto';
import type { RemoteRequest } from '../contract/adapter.ts';
import { EffectMatchError, invariant } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Digest, OccurrenceId, RecordKind } from '../protocol/record.ts';
import type { Value } from '../protocol/value.ts';

/** Text longer than this is hashed separately from its domain label, to avoid a copy. */
const COPY_LIMIT = 1 << 20;

/**
 * SHA-256 over `domain + "\n" + text`, lower-case hex. The label separates kinds of text: texts of
 * different kinds never share a digest. Text with a lone surrogate is refused: the UTF-8 encoder
 * would replace the surrogate, and two different texts would share a digest.
 */
export function digestText(domain: string, text: string): Digest {
  invariant(!domain.includes('\n'), 'a domain label is one line');
  if (!text.isWellFormed()) {
    throw new EffectMatchError(
      'ERR_EM_CANON_UNSUPPORTED',
      `${domain}: the text contains a lone surrogate`,
    );
  }
  if (text.length <= COPY_LIMIT) return hash('sha256', `${domain}\n${text}`, 'hex') as Digest;
  return createHash('sha256').update(`${domain}\n`).update(text).digest('hex') as Digest;
}

/** The same digest for a text given in pieces, each of them well-formed. */
export function digestPieces(domain: string, pieces: Iterable<string>): Digest {
  const digest = createHash('sha256');
  // Each update is a call into native code, so short pieces are joined.
  let text = `${domain}\n`;
  for (const piece of pieces) {
    text += piece;
    if (text.length <= COPY_LIMIT) continue;
    digest.update(text);
    text = '';
  }
  return digest.update(text).digest('hex') as Digest;
}

/** The digest that other records and licenses use to refer to a record. Checks the record first. */
export function digestRecord<T extends object>(kind: RecordKind<T>, record: T): Digest {
  const text = kind.text(record);
  if (text.length < COPY_LIMIT) return digestText(kind.domain, text);
  const known = digested.get(record);
  if (known?.kind === kind && known.text === text) return known.digest;
  const digest = digestText(kind.domain, text);
  digested.set(record, { kind, text, digest });
  return digest;
}

/**
 * Cached digests of long records. The text is compared too, because a record need not be frozen.
 */
const digested = new WeakMap<
  object,
  { readonly kind: unknown; readonly text: string; readonly digest: Digest }
>();

/**
 * The digest of any plain value under the caller's label, for values that are bound by digest but
 * are not records.
 */
export function digestValueOf(domain: string, value: unknown): Digest {
  return digestText(domain, canonical(value));
}

/** What an occurrence id is derived from. */
interface OccurrenceSource {
  readonly issuer: string;
  readonly nonce: string;
  /** Digest of the license. */
  readonly license: Digest;
  /** Index of the occurrence within the license, from 0. */
  readonly index: number;
}

/**
 * The id of one occurrence. The id is derived, not random, so separate stores and a restored store
 * compute the same marker key and the same idempotency key.
 */
export function occurrenceId({ issuer, nonce, license, index }: OccurrenceSource): OccurrenceId {
  const digest = digestValueOf('effectmatch/occurrence/v1', { issuer, nonce, license, index });
  return `occ_${digest.slice(0, 40)}` as OccurrenceId;
}

/** Digest of the text that an approver reads. A's salt keeps it from revealing the values shown. */
export function renderingDigest(salt: string, rendering: string): Digest {
  return digestText('effectmatch/rendering/v1', `${salt}\n${rendering}`);
}

/**
 * The digest of an action that a license binds, from the adapter's description. A's salt keeps it
 * from revealing the values in the action.
 */
export function actionDigest(described: Value, salt: string): Digest {
  return digestValueOf('effectmatch/action/v1', { action: described, salt });
}

/**
 * The digest of a request that a permit binds. A's salt keeps a stored permit from revealing the
 * values sent.
 */
export function requestDigest({ content, salt = '' }: RemoteRequest): Digest {
  return digestValueOf('effectmatch/request/v2', { content, salt });
}
