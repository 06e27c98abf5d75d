import type { Residue } from '../../protocol/residue.ts';
import { type RawRows, textsOf } from './connection.ts';
import type { Definitions } from './definitions.ts';
import type { MysqlSettings } from './options.ts';
import type { ControlAccount } from './sessions.ts';
import { quoteText } from './sql.ts';

/** The next AUTO_INCREMENT value of each table. */
export type Positions = ReadonlyMap<string, bigint>;

interface CounterTools {
  readonly control: ControlAccount;
  readonly settings: MysqlSettings;
  readonly definitions: Pick<Definitions, 'relations'>;
}

/** Reads the answer to `Counters.question`. */
export function readPositions(rows: RawRows | undefined): Positions {
  const texts = textsOf(rows ?? []);
  return new Map(texts.map(([name, next]) => [String(name), BigInt(next ?? 1)]));
}

/** AUTO_INCREMENT counters of registered tables. A rollback does not reset them. */
export class Counters {
  readonly #tools: CounterTools;
  readonly #columns: ReadonlyMap<string, string>;

  constructor(tools: CounterTools) {
    this.#tools = tools;
    this.#columns = new Map(
      tools.settings.relations.flatMap(({ name }) => {
        const column = tools.definitions.relations
          .get(name)
          ?.columns.find(({ isAssigned }) => isAssigned);
        return column === undefined ? [] : [[name, column.name] as const];
      }),
    );
  }

  /** The statement that reads the positions of all counters. */
  get question(): string {
    const names = ["''", ...[...this.#columns.keys()].map(quoteText)].join(', ');
    const schema = quoteText(this.#tools.settings.business);
    return `select table_name, auto_increment from information_schema.tables
      where table_schema = ${schema} and table_name in (${names})`;
  }

  async read(): Promise<Positions> {
    if (this.#columns.size === 0) return new Map();
    const [rows] = await this.#tools.control.ask(this.question);
    return readPositions(rows);
  }

  /** The counters that moved since then, whether the candidate or others moved them. */
  compare(before: Positions, now: Positions): readonly Residue[] {
    return [...this.#columns].flatMap(([table, column]) => {
      const [from = 1n, to = 1n] = [before.get(table), now.get(table)];
      if (from === to) return [];
      const position = from === 1n ? null : String(from - 1n);
      return [
        { kind: 'sequence', name: `${table}.${column}`, from: position, to: String(to - 1n) },
      ];
    });
  }
}
