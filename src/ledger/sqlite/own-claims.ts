import type { Sealed } from '../../contract/seal.ts';
import type { ClaimRecord } from '../../protocol/binding.ts';
import type { Digest } from '../../protocol/record.ts';
import type { JournalRow, OpenedRow } from '../journal.ts';

/** What falls out, such as the claim of an attempt that never ended, is opened like any other row. */
const MOST = 256;

/**
 * The claims of this process whose attempts are under way. Opening a stored row means seal, schema and digest; a row that is byte for
 * byte the one written here, at the same position, has passed all of that when it was made, and nothing of it can have
 * changed since: the record is frozen. Whether the row was ever committed is the store's to say, not this memory's.
 */
export class OwnClaims {
  readonly #claims = new Map<string, { readonly row: JournalRow; readonly opened: OpenedRow }>();

  remember(row: JournalRow, sealed: Sealed<ClaimRecord>): void {
    if (!Object.isFrozen(sealed) || !Object.isFrozen(sealed.record)) return;
    const { seq, slot } = row;
    const opened = Object.freeze({ seq, slot, digest: row.digest as Digest, kind: 'claim' as const, sealed });
    this.#claims.delete(row.occurrence);
    this.#claims.set(row.occurrence, { row, opened });
    if (this.#claims.size <= MOST) return;
    for (const oldest of this.#claims.keys()) {
      this.#claims.delete(oldest);
      return;
    }
  }

  /** How many attempts are under way, as far as is known here. */
  get size(): number {
    return this.#claims.size;
  }

  /** The attempt has ended. */
  forget(occurrence: string): void {
    this.#claims.delete(occurrence);
  }

  recall(row: JournalRow): OpenedRow | undefined {
    const known = this.#claims.get(row.occurrence);
    return known !== undefined && isSame(known.row, row) ? known.opened : undefined;
  }
}

function isSame(one: JournalRow, other: JournalRow): boolean {
  return (
    one.seq === other.seq &&
    one.kind === other.kind &&
    one.occurrence === other.occurrence &&
    one.slot === other.slot &&
    one.text === other.text &&
    one.sealKey === other.sealKey &&
    one.sealMac === other.sealMac &&
    one.digest === other.digest
  );
}
