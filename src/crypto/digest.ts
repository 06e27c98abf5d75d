import { createHash, hash } from 'node:crypto';
import type { RemoteRequest } from '../contract/adapter.ts';
import { EffectMatchError, invariant } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Digest, OccurrenceId, RecordKind } from '../protocol/record.ts';
import type { Value } from '../protocol/value.ts';

/** Above this length the text is hashed in place of being copied behind its domain label first. */
const COPY_LIMIT = 1 << 20;

/**
 * SHA-256 over `domain + "\n" + text`, lower-case hex. The label keeps digests of different kinds
 * of text apart: no text of one kind has the digest of a text of another kind. Text that UTF-8
 * cannot carry (a lone surrogate) is refused, because the encoder would replace it and two
 * different texts would share a digest.
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

/** The same digest for a text that is handed over in pieces, each of them well-formed. */
export function digestPieces(domain: string, pieces: Iterable<string>): Digest {
  const digest = createHash('sha256').update(`${domain}\n`);
  for (const piece of pieces) digest.update(piece);
  return digest.digest('hex') as Digest;
}

/**
 * The content address of a record: what other records and licenses name it by. The record is
 * checked first.
 */
export function digestRecord<T extends object>(kind: RecordKind<T>, record: T): Digest {
  const text = kind.text(record);
  if (text.length < COPY_LIMIT) return digestText(kind.domain, text);
  const known = digested.get(record);
  if (known?.kind === kind && known.text === text) return known.digest;
  const digest = digestText(kind.domain, text);
  digested.set(record, { kind, text, digest });
  return digest;
}

/** Digests of long records. The text is compared, because a record need not be frozen. */
const digested = new WeakMap<
  object,
  { readonly kind: unknown; readonly text: string; readonly digest: Digest }
>();

/**
 * The digest of any plain value under a label of the caller's, for what is bound by digest but is
 * no record.
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
  /** Which of the occurrences that the license buys, from 0. */
  readonly index: number;
}

/**
 * The id of one occurrence. It is derived and never drawn, so two machines with separate stores, or
 * a restored store, arrive at the same marker key and the same idempotency key.
 */
export function occurrenceId({ issuer, nonce, license, index }: OccurrenceSource): OccurrenceId {
  const digest = digestValueOf('effectmatch/occurrence/v1', { issuer, nonce, license, index });
  return `occ_${digest.slice(0, 40)}` as OccurrenceId;
}

/**
 * Digest of the text that an approver reads. Salted with A's salt, so that it does not betray the
 * values shown.
 */
export function renderingDigest(salt: string, rendering: string): Digest {
  return digestText('effectmatch/rendering/v1', `${salt}\n${rendering}`);
}

/**
 * What a license binds of an action, by the adapter's description of it. Salted with A's salt, so
 * that it does not betray the values in the action.
 */
export function actionDigest(described: Value, salt: string): Digest {
  return digestValueOf('effectmatch/action/v1', { action: described, salt });
}

/**
 * What a permit binds of a request. Salted with A's salt, so that a stored permit does not betray
 * the values sent.
 */
export function requestDigest({ content, salt = '' }: RemoteRequest): Digest {
  return digestValueOf('effectmatch/request/v2', { content, salt });
}
