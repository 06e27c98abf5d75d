import { type StageFailure, stageFailed } from '../../backend/candidate.ts';
import { errorNumber, type MysqlConnection } from './connection.ts';
import { describeFailure, explainError } from './failure.ts';
import type { MysqlSettings } from './options.ts';

interface AdmissionTools {
  readonly session: MysqlConnection;
  readonly settings: MysqlSettings;
  readonly admitted: AdmittedTexts;
}

/**
 * Asks the server to parse the text after EXPLAIN, which accepts only statements that read or write
 * rows. The text must also parse on its own when it is prepared.
 */
export async function refusalOf(
  sql: string,
  which: string,
  { session, settings, admitted }: AdmissionTools,
): Promise<StageFailure | undefined> {
  if (admitted.has(sql)) return undefined;
  const { values } = settings;
  try {
    await session.parse(`explain format=json ${sql}`);
    admitted.add(sql);
    return undefined;
  } catch (error) {
    if (errorNumber(error) !== SYNTAX_ERROR)
      return describeFailure(error, `${which} was not admitted`, values);
    const what = 'is not one SELECT, INSERT, UPDATE, DELETE, REPLACE, WITH or VALUES';
    const why = explainError(error, values);
    return stageFailed('denied', `${which} ${what}, or its syntax is wrong: ${why}`);
  }
}

const SYNTAX_ERROR = 1064;
const MAX_TEXTS = 1000;
const MAX_LENGTH = 10_000;

/**
 * Texts that the server's parser accepted. All sessions parse under the same variables, so the
 * result is the same for each. The cache is cleared when a definition changes or the server
 * restarts.
 */
export class AdmittedTexts {
  readonly #texts = new Set<string>();

  has(sql: string): boolean {
    return this.#texts.has(sql);
  }

  add(sql: string): void {
    if (sql.length > MAX_LENGTH) return;
    if (this.#texts.size >= MAX_TEXTS) this.#texts.clear();
    this.#texts.add(sql);
  }

  clear(): void {
    this.#texts.clear();
  }
}
