import { createHash, type Hash, hash } from 'node:crypto';
import type { RemoteRequest } from '../contract/adapter.ts';
import { EffectMatchError, invariant } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { License } from '../protocol/license.ts';
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
  // Each update is a call into native code, so short pieces are joined.
  let digest: Hash | undefined;
  let text = `${domain}\n`;
  for (const piece of pieces) {
    text += piece;
    if (text.length <= COPY_LIMIT) continue;
    digest ??= createHash('sha256');
    digest.update(text);
    text = '';
  }
  if (digest === undefined) return hash('sha256', text, 'hex') as Digest;
  return digest.update(text).digest('hex') as Digest;
}

/** The digest that other records and licenses use to refer to a record. Checks the record first. */
export function digestRecord<T extends object>(kind: RecordKind<T>, record: T): Digest {
  return kind.digest(record, (pieces) => digestPieces(kind.domain, pieces));
}

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

/** The occurrences of the license with this digest, in order. */
export function occurrencesOf(
  { issuer, nonce, occurrences }: License,
  lineage: Digest,
): readonly [OccurrenceId, ...OccurrenceId[]] {
  const nth = (index: number) => occurrenceId({ issuer, nonce, license: lineage, index });
  return [nth(0), ...Array.from({ length: occurrences - 1 }, (_, index) => nth(index + 1))];
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
