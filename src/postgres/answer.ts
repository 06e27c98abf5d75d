/** Rows as text: nothing is converted on the way, so nothing is lost on the way. */
export type TextRow = readonly (string | null)[];

export interface Reply {
  /** Command tag without its count: `COMMIT`, `ROLLBACK`, `SELECT`… */
  readonly command: string;
  readonly rows: readonly TextRow[];
  /** Of a statement that was described and returns rows. */
  readonly columns?: readonly ResultColumn[];
}

/** A column of returned rows. */
export interface ResultColumn {
  readonly name: string;
  /** Object id of its type. */
  readonly type: number;
}

/** What came back before the first error, if there was one. Statements after it were not run. */
export interface MessageAnswer {
  readonly replies: readonly Reply[];
  readonly failure?: { readonly error: unknown };
}
