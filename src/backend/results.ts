import type { ResultRow, StatementResult } from '../contract/adapter.ts';

/** Limits on the rows that are kept for one action. */
const MAX_ROWS = 1000;
const MAX_CHARACTERS = 1_000_000;

/** Collects the rows that the statements of one action return, within limits. */
export class ResultCollector {
  readonly #results: { readonly rows: ResultRow[]; omitted: number }[] = [];
  #returnsRows = false;
  #rows = 0;
  #characters = 0;

  /** Starts the next statement. */
  begin(returnsRows: boolean): void {
    this.#results.push({ rows: [], omitted: 0 });
    this.#returnsRows ||= returnsRows;
  }

  /** Adds a row of the current statement. Does not call `read` once the limits are reached. */
  add(read: () => ResultRow): void {
    const result = this.#results.at(-1);
    if (result === undefined) return;
    const row = this.#isFull ? undefined : read();
    if (row !== undefined) {
      this.#rows += 1;
      this.#characters += JSON.stringify(row).length;
    }
    if (row === undefined || this.#characters > MAX_CHARACTERS) result.omitted += 1;
    else result.rows.push(row);
  }

  /** One entry per statement; undefined if none of them returns rows. */
  get results(): readonly StatementResult[] | undefined {
    return this.#returnsRows ? this.#results : undefined;
  }

  get #isFull(): boolean {
    return this.#rows === MAX_ROWS || this.#characters > MAX_CHARACTERS;
  }
}

/** Formats bytes as PostgreSQL does. */
export function bytesAsText(bytes: Uint8Array): string {
  return `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}
