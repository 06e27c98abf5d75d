import type { Digest, RecordKind } from '../protocol/record.ts';

/** A record with the runtime's HMAC over its domain label and canonical text. */
export interface Sealed<T> {
  readonly record: T;
  readonly text: string;
  readonly seal: { readonly key: string; readonly mac: string };
}

/**
 * Seals records and checks seals, with a separate key per record kind. Ledgers check after every
 * select.
 */
export interface Sealer {
  /** Seals a frozen copy of the record. The result carries that copy. */
  seal<T>(kind: RecordKind<T>, record: T): Sealed<T>;
  /**
   * Returns the parsed record only if the seal is valid. Otherwise throws `ERR_EM_SEAL_INVALID` or
   * `ERR_EM_KEY_UNKNOWN`.
   */
  open<T>(
    kind: RecordKind<T>,
    text: string,
    seal: { readonly key: string; readonly mac: string },
  ): Sealed<T>;
  /**
   * Like `open`, for a sealed record in memory, as ledgers check it before an insert. Only text and
   * seal count: a record that this sealer sealed recently comes back as it was sealed, and any
   * other is parsed again.
   */
  check<T>(kind: RecordKind<T>, sealed: Sealed<T>): Sealed<T>;
  /**
   * A keyed digest of a text that is not a record, such as the place of a row in a journal, under
   * the named key generation. Throws `ERR_EM_KEY_UNKNOWN`. Compare it in constant time if an
   * attacker can try values. Several texts count as one.
   */
  mac(key: string, domain: string, ...texts: readonly string[]): Digest;
}
