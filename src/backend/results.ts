import type { ResultRow, StatementResult } from '../contract/adapter.ts';

/** What is kept of the rows that one action returns. */
const MAX_ROWS = 1000;
const MAX_CHARACTERS = 1_000_000;

/** Collects what the statements of one action return, within bounds. */
export class ResultCollector {
  readonly #results: { readonly rows: ResultRow[]; omitted: number }[] = [];
  #returnsRows = false;
  #rows = 0;
  #characters = 0;

  /** Begins the next statement. */
  begin(returnsRows: boolean): void {
    this.#results.push({ rows: [], omitted: 0 });
    this.#returnsRows ||= returnsRows;
  }

  /** Adds a row of the statement that began last; `read` is not called for one that is left out. */
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

  /** One entry for each statement; undefined if none of them returns rows. */
  get results(): readonly StatementResult[] | undefined {
    return this.#returnsRows ? this.#results : undefined;
  }

  get #isFull(): boolean {
    return this.#rows === MAX_ROWS || this.#characters > MAX_CHARACTERS;
  }
}

/** Bytes as PostgreSQL writes them. */
export function bytesAsText(bytes: Uint8Array): string {
  return `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}
