import { suggest } from '../../protocol/nearest.ts';
import { GuidedError } from '../fault.ts';

/** The schema of a database. Names are spelled as the adapter spells them. */
export interface DatabaseSchema {
  readonly kind: 'sqlite' | 'postgres' | 'mysql';
  /** A name for the adapter, based on the file or database. */
  readonly suggestedName: string;
  readonly tables: readonly TableSchema[];
  /** The application's functions that agents could be allowed to call. */
  readonly functions: readonly string[];
  /** Views that agents could be allowed to write through. */
  readonly views: readonly string[];
  /** Servers: the suffix of role names; empty if the usual names are free. */
  readonly roleSuffix: string;
  /** PostgreSQL: whether the login is a superuser, and the server's major version. */
  readonly server?: { readonly isSuperuser: boolean; readonly major: string };
}

export interface TableSchema {
  readonly name: string;
  readonly key: readonly string[];
  /** The columns that a manifest can name, with the TypeScript type of their values. */
  readonly columns: readonly {
    readonly name: string;
    readonly type: string;
    readonly nullable: boolean;
  }[];
  /** Why the table cannot be registered, and what would help; absent if it can. */
  readonly unusable?: string;
  /** Columns that a trigger sets to the current time: their value cannot be approved in advance. */
  readonly volatile: readonly { readonly column: string; readonly by: string }[];
  readonly triggers: readonly TriggerSchema[];
  /** Tables whose deletes or key changes reach this one through a foreign key. */
  readonly cascadesFrom: readonly string[];
}

/** A trigger and the tables that it seems to write. This is only a guess: the boundary decides. */
interface TriggerSchema {
  readonly name: string;
  readonly writes: readonly string[];
}

/** The tables that can be registered. */
export function usableTables({ tables }: DatabaseSchema): readonly TableSchema[] {
  return tables.filter(({ unusable }) => unusable === undefined);
}

/** Parses a choice of tables: `all`, or usable names separated by commas. */
export function chooseRelations(answer: string, schema: DatabaseSchema): readonly string[] {
  const usable = usableTables(schema).map(({ name }) => name);
  if (answer === 'all') return usable;
  const chosen = answer.split(',').map((text) => {
    const name = text.trim();
    const unquoted = name.replace(/^"(.*)"$/, '$1');
    return usable.includes(name) || !usable.includes(unquoted) ? name : unquoted;
  });
  const wrong = chosen.find((name) => !usable.includes(name));
  if (wrong === undefined) return chosen;
  const why = schema.tables.find(({ name }) => name === wrong)?.unusable;
  if (why !== undefined) {
    const message = `table "${wrong}" cannot be registered: ${why}; nothing was written`;
    throw new GuidedError('ERR_EM_USAGE', message, 'change the table as it says, or leave it out');
  }
  const message = `unknown table "${wrong}"${suggest(wrong, usable)}; nothing was written`;
  throw new GuidedError('ERR_EM_USAGE', message, `the tables are ${usable.join(', ')}`);
}

/** A trigger on a registered table that writes to an unregistered one. */
interface StrayTrigger {
  readonly trigger: string;
  readonly on: string;
  readonly writes: string;
}

/** The triggers that would cause operations to be refused. */
export function strayTriggers(
  { tables }: DatabaseSchema,
  chosen: readonly string[],
): readonly StrayTrigger[] {
  const has = (names: readonly string[], name: string) =>
    names.some((candidate) => candidate.toLowerCase() === name.toLowerCase());
  const known = tables.map(({ name }) => name);
  return tables
    .filter(({ name }) => has(chosen, name))
    .flatMap(({ name, triggers }) => triggers.map((trigger) => ({ ...trigger, on: name })))
    .flatMap(({ name: trigger, on, writes }) =>
      writes
        .filter((name) => has(known, name) && !has(chosen, name))
        .map((name) => ({ trigger, on, writes: name })),
    );
}

/** The given columns that a trigger sets to the current time. */
export function columnsSetToNow<T extends { readonly name: string }>(
  columns: readonly string[],
  triggers: readonly T[],
  setsToNow: (trigger: T, column: string) => boolean,
): TableSchema['volatile'] {
  return columns.flatMap((column) => {
    const by = triggers.find((trigger) => setsToNow(trigger, column));
    return by === undefined ? [] : [{ column, by: by.name }];
  });
}

const WRITE =
  /\b(?:insert\s+(?:or\s+\w+\s+)?into|replace\s+into|update(?:\s+or\s+\w+)?|delete\s+from)\s+/gi;
const NAME =
  /^(?:only\s+)?((?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)(?:\.(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*))?)/iu;

/** The names that SQL text seems to write to, as spelled there. This is only a guess. */
export function namesWritten(sql: string): readonly string[] {
  const code = sql.replace(/--.*$/gm, ' ').replace(/\/\*[\s\S]*?\*\//g, ' ');
  const names = [...code.matchAll(WRITE)].flatMap((match) => {
    const [, name] = NAME.exec(code.slice(match.index + match[0].length)) ?? [];
    return name === undefined || /^(?:of|on|set)$/i.test(name) ? [] : [name];
  });
  return [...new Set(names)];
}
