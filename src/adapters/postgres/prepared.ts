import type { WireStatement } from '../../postgres/connection.ts';

/**
 * The trusted functions as they are called on sessions of the execution login, prepared when a
 * session begins: parsing and planning these calls every time costs as much as what they do. Code of the
 * application could remove one and put its own in its place; it cannot prepare one that the server
 * does not mark as its own, and the last check at COMMIT demands that all of these are there.
 */
export const CALLS = {
  effectmatch_open: 'select * from effectmatch.open($1, $2, $3, $4)',
  effectmatch_observe: 'select * from effectmatch.observe($1, $2)',
  effectmatch_promote: 'select effectmatch.promote($1, $2, $3, $4, $5, $6, $7)',
} as const;

/** How many texts a session keeps, and how long they may be: the check at COMMIT lists them all. */
const TEXTS_MAX = 16;
const CHARACTERS_MAX = 4096;

/**
 * The texts of actions that one session has prepared. Agents send the same few texts with other
 * values, and parsing and planning one costs more than running it. The same check as for the calls
 * finds one that code of the application has replaced. Literals are understood under the settings
 * of the moment, so only statements that run in a session as it was reset may be prepared.
 */
export class PreparedTexts {
  readonly #names = new Map<string, string>();
  #configuration: unknown;
  #count = 0;
  /** The session must be given back with nothing prepared but the calls. */
  isSpent = false;

  /**
   * The same statement, under a name: it is prepared the first time. What was prepared under another
   * configuration is not used: the server refuses a statement whose result has other columns now.
   */
  prepare(
    statement: WireStatement & { readonly text: string },
    configuration: unknown,
  ): WireStatement {
    if (configuration !== this.#configuration) {
      this.isSpent ||= this.#names.size > 0;
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

  /** The session has nothing prepared. */
  forget(): void {
    this.#names.clear();
    this.isSpent = false;
  }
}
