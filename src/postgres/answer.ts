/** A row as the text that the server sent. Nothing is converted, so nothing is lost. */
export type TextRow = readonly (string | null)[];

export interface Reply {
  /** Command tag without its count: `COMMIT`, `ROLLBACK`, `SELECT`…; `SUSPENDED` at `maxRows`. */
  readonly command: string;
  readonly rows: readonly TextRow[];
  /** Present if the statement was described and returns rows. */
  readonly columns?: readonly ResultColumn[];
}

/** A column of returned rows. */
export interface ResultColumn {
  readonly name: string;
  /** Object id of its type. */
  readonly type: number;
}

/**
 * The replies up to the first error, and the error if there was one. Statements after it did not
 * run.
 */
export interface MessageAnswer {
  readonly replies: readonly Reply[];
  readonly failure?: { readonly error: unknown };
}
