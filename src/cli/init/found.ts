/** What `init` learned about one table. Names are as the adapter writes them. */
export interface FoundTable {
  readonly name: string;
  readonly key: readonly string[];
  /** Columns that can be stated, with the TypeScript type of what the adapter takes for them. */
  readonly columns: readonly {
    readonly name: string;
    readonly type: string;
    readonly nullable: boolean;
  }[];
  /** Why it cannot be registered, with what would help; absent where it can. */
  readonly unusable?: string;
  /**
   * Columns that a trigger sets to the current time: proposed as volatile, because nobody can
   * approve their value.
   */
  readonly volatile: readonly { readonly column: string; readonly by: string }[];
  readonly triggers: readonly FoundTrigger[];
  /** Tables whose deletion or change of key reaches this one through a foreign key. */
  readonly cascadesFrom: readonly string[];
}

/**
 * A trigger, with the tables that its text writes. The text only suggests; the boundary decides at
 * run time.
 */
export interface FoundTrigger {
  readonly name: string;
  readonly writes: readonly string[];
}

/** What `init` learned about a database, and how a configuration reaches it. */
export interface FoundDatabase {
  readonly kind: 'sqlite' | 'postgres';
  /** A name for the adapter, from the file or the database. */
  readonly suggestedName: string;
  readonly tables: readonly FoundTable[];
  /** Functions of the application that agents could be allowed to call. */
  readonly functions: readonly string[];
  /** Views that agents could be allowed to write through. */
  readonly views: readonly string[];
}

/** The tables that can be registered. */
export function usableTables({ tables }: FoundDatabase): readonly FoundTable[] {
  return tables.filter(({ unusable }) => unusable === undefined);
}

/**
 * Triggers on chosen tables that write tables which are not: operations that fire them would be
 * refused.
 */
export function strayTriggers(
  { tables }: FoundDatabase,
  chosen: readonly string[],
): readonly { readonly trigger: string; readonly on: string; readonly writes: string }[] {
  const isChosen = (name: string) =>
    chosen.some((candidate) => candidate.toLowerCase() === name.toLowerCase());
  return tables
    .filter(({ name }) => isChosen(name))
    .flatMap(({ name: on, triggers }) =>
      triggers.flatMap(({ name: trigger, writes }) =>
        writes
          .filter(
            (name) =>
              !isChosen(name) &&
              tables.some((table) => table.name.toLowerCase() === name.toLowerCase()),
          )
          .map((name) => ({ trigger, on, writes: name })),
      ),
    );
}

const WRITE =
  /\b(?:insert\s+(?:or\s+\w+\s+)?into|replace\s+into|update(?:\s+or\s+\w+)?|delete\s+from)\s+/gi;
const NAME =
  /^(?:only\s+)?((?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)(?:\.(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*))?)/iu;

/**
 * The names that a piece of SQL seems to write to, as it spells them. A suggestion from text, not a
 * finding.
 */
export function namesWritten(sql: string): readonly string[] {
  const code = sql.replace(/--.*$/gm, ' ').replace(/\/\*[\s\S]*?\*\//g, ' ');
  const names = [...code.matchAll(WRITE)].flatMap((match) => {
    const [, name] = NAME.exec(code.slice(match.index + match[0].length)) ?? [];
    return name === undefined || /^(?:of|on|set)$/i.test(name) ? [] : [name];
  });
  return [...new Set(names)];
}
