import { type Fields, readFields, refuseAction, refuseUnknown } from '../contract/action-input.ts';
import { EffectMatchError } from '../errors.ts';

const MAX_STATEMENTS = 1000;
const MAX_SQL_CHARACTERS = 1024 * 1024;

/** Reads an untrusted action. A proxy may throw anything, so every other error is a refusal too. */
export function readUntrusted<Action>(read: () => Action): Action {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof EffectMatchError) throw cause;
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
}

/** A list of 1 to `max` items, each read with its place in words, such as "call 2". */
export function readItems<Item>(
  items: unknown,
  limit: { readonly name: string; readonly max: number },
  read: (item: unknown, where: string) => Item,
): readonly Item[] {
  const { name, max } = limit;
  if (!Array.isArray(items) || items.length === 0 || items.length > max)
    throw refuseAction(`${name}s must be a list of 1 to ${max} ${name}s`);
  return Array.from(items, (item: unknown, index) => read(item, `${name} ${index + 1}`));
}

/** One statement, or `{ statements }` with several that run in order in one candidate. */
export function readStatements<Statement>(
  input: unknown,
  read: (fields: Fields, where: string) => Statement,
): readonly Statement[] {
  return readUntrusted(() => {
    const action = readFields(input, 'the action');
    if (!Object.hasOwn(action, 'statements')) return [read(action, 'the action')];
    refuseUnknown(action, ['statements'], 'the action');
    const limit = { name: 'statement', max: MAX_STATEMENTS };
    return readItems(action.statements, limit, (item, where) =>
      read(readFields(item, where), where),
    );
  });
}

/** The text of one SQL statement. */
export function readSql(sql: unknown, where: string): string {
  if (typeof sql !== 'string' || sql.trim() === '')
    throw refuseAction(`${where}: sql must be a text with one statement`);
  if (sql.length > MAX_SQL_CHARACTERS)
    throw refuseAction(`${where}: sql is longer than ${MAX_SQL_CHARACTERS} characters`);
  if (sql.includes('\0') || !sql.isWellFormed())
    throw refuseAction(`${where}: sql has a NUL character or a lone surrogate`);
  return sql;
}
