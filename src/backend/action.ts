import {
  type Fields,
  readFields,
  refuseAction,
  refuseRounded,
  refuseUnknown,
} from '../contract/action-input.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Value } from '../protocol/value.ts';

/** What to write instead of a number that was rounded. */
export const BIGINT_OR_REAL =
  'write a BigInt, such as 9007199254740993n, or { $real: "1e+20" } for a floating-point number';

const MAX_STATEMENTS = 1000;
const MAX_SQL_CHARACTERS = 1024 * 1024;

/** Reads an untrusted action. Any error becomes a refusal, because a proxy may throw anything. */
export function readUntrusted<Action>(read: () => Action): Action {
  try {
    return read();
  } catch (cause) {
    if (isRefusal(cause)) throw cause;
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof EffectMatchError && error.code === 'ERR_EM_ACTION_INVALID';
}

/** Copies untrusted input as plain data, so that the caller cannot change it later. */
export function copyAction(input: unknown, maxCharacters = Number.POSITIVE_INFINITY): Value {
  const copy = copyPlain(input, maxCharacters);
  refuseRounded(copy, 'the action', 'write it as text, since JSON has no BigInt');
  return copy;
}

/**
 * Runs an application's check and copies the value that it returns. If the check throws, the action
 * is refused; `refusal` is the start of that message.
 */
export function copyChecked(refusal: string, check: () => Value): Value {
  try {
    return copyPlain(check());
  } catch (cause) {
    if (isRefusal(cause)) throw cause;
    const why = cause instanceof Error ? cause.message : 'it was refused';
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', `${refusal}: ${why}`, { cause });
  }
}

function copyPlain(input: unknown, maxCharacters = Number.POSITIVE_INFINITY): Value {
  return readUntrusted(() => {
    const { length } = canonical(input);
    if (length > maxCharacters)
      throw refuseAction(`the action is longer than ${maxCharacters} characters`);
    // Not parsed from that text: JSON.parse of V8 13.6 reads the key "\"" as "\\" if it has met
    // that one before. Cloning rejects a proxy, which could answer differently this time.
    return structuredClone(input) as Value;
  });
}

/**
 * Reads a list of 1 to `max` items. Each item is read with its position in words, such as "call 2".
 */
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

/**
 * Reads one statement, `{ statements }` with several that run in order in one candidate, or `{
 * script }` with the text of several. `split` throws an error of {@link refuseAction} if it cannot
 * divide the text.
 */
export function readStatements<Statement>(
  input: unknown,
  read: (fields: Fields, where: string) => Statement,
  split: (script: string) => readonly string[],
): readonly Statement[] {
  return readUntrusted(() => {
    const action = readFields(input, 'the action');
    const limit = { name: 'statement', max: MAX_STATEMENTS };
    const readOne = (item: unknown, where: string) => read(readFields(item, where), where);
    if (Object.hasOwn(action, 'script')) {
      refuseUnknown(action, ['script'], 'the action');
      const statements = split(readSql(action.script, 'script', 'statements'));
      if (statements.length === 0) throw refuseAction('the script has no statement');
      return readItems(
        statements.map((sql) => ({ sql })),
        limit,
        readOne,
      );
    }
    if (!Object.hasOwn(action, 'statements')) return [read(action, 'the action')];
    refuseUnknown(action, ['statements'], 'the action');
    return readItems(action.statements, limit, readOne);
  });
}

/** Joins accepted actions, each with its items under this name, into one action. */
export function joinItems(name: string, actions: readonly unknown[]): unknown {
  return { [name]: actions.flatMap((action) => (action as Record<string, unknown[]>)[name] ?? []) };
}

/** The same for actions of statements, in any form that {@link readStatements} accepts. */
export function joinStatements(
  actions: readonly unknown[],
  split: (script: string) => readonly string[],
): unknown {
  const lists = actions.map((action) => {
    const { script, statements } = action as { script?: string; statements?: unknown[] };
    if (script !== undefined) return { statements: split(script).map((sql) => ({ sql })) };
    return statements === undefined ? { statements: [action] } : action;
  });
  return joinItems('statements', lists);
}

/** Checks the text of one SQL statement, or of a script. */
export function readSql(sql: unknown, where: string, what = 'one statement'): string {
  if (typeof sql !== 'string' || sql.trim() === '')
    throw refuseAction(`${where}: sql must be a string with ${what}`);
  if (sql.length > MAX_SQL_CHARACTERS)
    throw refuseAction(`${where}: sql is longer than ${MAX_SQL_CHARACTERS} characters`);
  if (sql.includes('\0') || !sql.isWellFormed())
    throw refuseAction(`${where}: sql has a NUL character or a lone surrogate`);
  return sql;
}

/** Checks a text that is bound to a parameter. */
export function readBoundText(value: string, where: string, maxLength: number): string {
  if (!value.isWellFormed()) throw refuseAction(`${where}: the text has a lone surrogate`);
  if (value.length > maxLength) throw refuseAction(`${where}: the text is too long`);
  return value;
}

/** Copies bytes that are bound to a parameter; undefined if the value is not bytes. */
export function readBoundBytes(
  value: unknown,
  where: string,
  maxLength: number,
): Uint8Array<ArrayBuffer> | undefined {
  if (!(value instanceof Uint8Array) || value.buffer instanceof SharedArrayBuffer) return undefined;
  if (value.byteLength > maxLength) throw refuseAction(`${where}: too many bytes`);
  return Uint8Array.from(value);
}

/** The refusal of a value that cannot be bound to a parameter. */
export function refuseBound(where: string): EffectMatchError {
  const forms = 'null, a boolean, a number, a bigint, a string or a Uint8Array';
  return refuseAction(`${where}: a value is ${forms}`);
}
