import type { WireStatement } from '../../postgres/connection.ts';

/**
 * Calls of the trusted functions on sessions of the execution login. They are prepared when a
 * session is opened, because parsing and planning them every time costs as much as running them.
 * Application code could replace one, but the server marks statements that SQL prepared, and the
 * last check at COMMIT requires that all of these exist and that none has that mark.
 */
export const CALLS = {
  effectmatch_open: 'select * from effectmatch.open($1, $2, $3, $4)',
  effectmatch_observe: 'select * from effectmatch.observe($1, $2)',
  effectmatch_promote: 'select effectmatch.promote($1, $2, $3, $4, $5, $6, $7)',
} as const;

/** How many texts a session keeps, and how long they may be. The check at COMMIT lists them all. */
const TEXTS_MAX = 16;
const CHARACTERS_MAX = 4096;

/**
 * The texts of actions that one session has prepared. Agents send the same few texts with different
 * values, and parsing and planning a text costs more than running it. The check at COMMIT also
 * detects a text that application code replaced. The current settings decide how literals are read,
 * so only statements that run right after a reset may be prepared.
 */
export class PreparedTexts {
  readonly #names = new Map<string, string>();
  #configuration: unknown;
  #count = 0;
  /** Whether the session must drop all prepared texts when it is given back. */
  isSpent = false;

  /**
   * Returns the statement under a name, and prepares it the first time. Texts that were prepared
   * under another configuration are not used: the server refuses a statement whose result columns
   * changed.
   */
  prepare(
    statement: WireStatement & { readonly text: string },
    configuration: unknown,
  ): WireStatement {
    if (configuration !== this.#configuration) {
      if (this.#names.size > 0) this.isSpent = true;
      this.#names.clear();
      this.#configuration = configuration;
    }
    const { text, ...rest } = statement;
    const known = this.#names.get(text);
    if (known !== undefined) return { ...rest, prepared: known };
    if (text.length > CHARACTERS_MAX) return statement;
    if (this.#names.size >= TEXTS_MAX) this.isSpent = true;
    if (this.isSpent) return statement;
    const prepared = `action_${this.#count}`;
    this.#count += 1;
    this.#names.set(text, prepared);
    return { ...statement, prepared };
  }

  /** Notes that the session has no prepared texts. */
  forget(): void {
    this.#names.clear();
    this.isSpent = false;
  }
}
