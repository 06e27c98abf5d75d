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
  /** Seals a frozen copy of the record, which is what the result carries. */
  seal<T>(kind: RecordKind<T>, record: T): Sealed<T>;
  /**
   * Throws `ERR_EM_SEAL_INVALID` or `ERR_EM_KEY_UNKNOWN`; returns the parsed record only when the
   * seal holds.
   */
  open<T>(
    kind: RecordKind<T>,
    text: string,
    seal: { readonly key: string; readonly mac: string },
  ): Sealed<T>;
  /**
   * The same for a sealed record in hand, as ledgers check it before an insert. Text and seal
   * decide what the record is: what this sealer sealed lately comes back as it was sealed,
   * everything else is parsed again.
   */
  check<T>(kind: RecordKind<T>, sealed: Sealed<T>): Sealed<T>;
  /**
   * A keyed digest of a text that is not a record, such as the place of a row in a journal, under the
   * key generation named. Throws `ERR_EM_KEY_UNKNOWN`. Compare it with what is stored in constant
   * time where an attacker can try.
   */
  mac(key: string, domain: string, text: string): Digest;
}
