import type { Residue } from '../../protocol/residue.ts';
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

  async read(): Promise<Positions> {
    if (this.#columns.size === 0) return new Map();
    const names = [...this.#columns.keys()].map(quoteText).join(', ');
    const control = await this.#tools.control.connection();
    const rows = await control.texts(
      `select table_name, auto_increment from information_schema.tables
        where table_schema = ${quoteText(this.#tools.settings.business)} and table_name in (${names})`,
    );
    return new Map(rows.map(([name, next]) => [String(name), BigInt(next ?? 1)]));
  }

  /** The counters that moved since then, whether the candidate or others moved them. */
  async compare(before: Positions): Promise<readonly Residue[]> {
    const now = await this.read();
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
