import type { SQLInputValue } from 'node:sqlite';
import {
  readFields,
  refuseAction,
  refuseRounded,
  refuseUnknown,
} from '../../contract/action-input.ts';
import { EffectMatchError } from '../../errors.ts';
import { encodeBytes, encodeInteger, readTag, type Value } from '../../protocol/value.ts';
import { MAX_VALUE_BYTES } from '../../sqlite/connection.ts';
import { PROBE_TABLE } from './control.ts';
import { checkCount, checkNames, readParameters } from './parameters.ts';
import { bindNumber, bindValue, encodeReal, isInt64 } from './value.ts';

/** What may be bound to a parameter. Whole numbers are bound as INTEGER, booleans as 0 and 1. */
export type SqliteValue = null | boolean | number | bigint | string | Uint8Array;

/** One statement with its parameters, by position or by name. */
export interface SqliteStatement {
  readonly sql: string;
  readonly values?: readonly SqliteValue[] | { readonly [name: string]: SqliteValue };
}

/** What an agent may submit: one statement, or several that run in order in one candidate. */
export type SqliteAction = SqliteStatement | { readonly statements: readonly SqliteStatement[] };

/** An action that was checked completely: its own copy, ready to bind. */
export interface CheckedAction {
  readonly statements: readonly CheckedStatement[];
}

export interface CheckedStatement {
  readonly sql: string;
  readonly positional: readonly SQLInputValue[];
  readonly named: Readonly<Record<string, SQLInputValue>>;
}

const BIGINT_OR_REAL =
  'write a BigInt, such as 9007199254740993n, or { $real: "1e+20" } for a floating-point number';
const MAX_SQL_CHARACTERS = 1024 * 1024;
const MAX_STATEMENTS = 1000;
const MAX_PARAMETERS = 32_766;

/**
 * Checks untrusted input completely and copies it, so that nothing the agent still holds can change
 * it.
 */
export function parseAction(input: unknown): CheckedAction {
  try {
    return readAction(input);
  } catch (cause) {
    if (cause instanceof EffectMatchError) throw cause;
    // A proxy may throw anything it likes.
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
}

function readAction(input: unknown): CheckedAction {
  const action = readFields(input, 'the action');
  if (!Object.hasOwn(action, 'statements'))
    return { statements: [parseStatement(action, 'the action')] };
  refuseUnknown(action, ['statements'], 'the action');
  const { statements } = action;
  if (!Array.isArray(statements) || statements.length === 0 || statements.length > MAX_STATEMENTS) {
    throw refuseAction(`statements must be a list of 1 to ${MAX_STATEMENTS} statements`);
  }
  return {
    statements: Array.from(statements, (statement: unknown, index) => {
      const where = `statement ${index + 1}`;
      return parseStatement(readFields(statement, where), where);
    }),
  };
}

function parseStatement(
  statement: { readonly [name: string]: unknown },
  where: string,
): CheckedStatement {
  refuseUnknown(statement, ['sql', 'values'], where);
  const { sql, values } = statement;
  if (typeof sql !== 'string' || sql.trim() === '')
    throw refuseAction(`${where}: sql must be a text with one statement`);
  if (sql.length > MAX_SQL_CHARACTERS)
    throw refuseAction(`${where}: sql is longer than ${MAX_SQL_CHARACTERS} characters`);
  if (sql.includes('\0'))
    throw refuseAction(
      `${where}: sql contains a NUL character, after which SQLite would stop reading`,
    );
  if (!sql.isWellFormed()) throw refuseAction(`${where}: sql is not well-formed Unicode`);
  const parameters = readParameters(sql, where);
  if (values === undefined || Array.isArray(values)) {
    const list = parseList(values ?? [], where);
    checkCount(parameters, list.length, where);
    return { sql, positional: list, named: {} };
  }
  if (typeof values !== 'object' || values === null)
    throw refuseAction(
      `${where}: values must be a list, or an object with the names of parameters`,
    );
  const entries = Object.entries(readFields(values, `${where}: values`));
  if (entries.length > MAX_PARAMETERS)
    throw refuseAction(`${where}: more than ${MAX_PARAMETERS} values`);
  const named = entries.map(([name, value]) => {
    if (!/^[:@$]?[\p{L}_][\p{L}\p{N}_]*$/u.test(name) || name === '__proto__')
      throw refuseAction(`${where}: "${name}" is not the name of a parameter`);
    return [name, parseValue(value, `${where}, value "${name}"`)] as const;
  });
  checkNames(
    parameters,
    named.map(([name]) => name),
    where,
  );
  return { sql, positional: [], named: Object.fromEntries(named) };
}

function parseList(values: readonly unknown[], where: string): readonly SQLInputValue[] {
  if (values.length > MAX_PARAMETERS)
    throw refuseAction(`${where}: more than ${MAX_PARAMETERS} values`);
  return Array.from(values, (value, index) => parseValue(value, `${where}, value ${index + 1}`));
}

function parseValue(value: unknown, where: string): SQLInputValue {
  switch (typeof value) {
    case 'boolean':
      return value ? 1n : 0n;
    case 'number':
      if (Number.isNaN(value)) throw refuseAction(`${where}: NaN would silently become NULL`);
      refuseRounded(value, where, BIGINT_OR_REAL);
      return bindNumber(value);
    case 'bigint':
      if (!isInt64(value)) throw refuseAction(`${where}: the integer does not fit into 64 bits`);
      return value;
    case 'string':
      if (!value.isWellFormed())
        throw refuseAction(`${where}: the text has a lone surrogate, which SQLite would replace`);
      if (value.length > MAX_VALUE_BYTES) throw refuseAction(`${where}: the text is too long`);
      return value;
    default:
      return parseObjectValue(value, where);
  }
}

/**
 * Bytes, or one of the tags by which JSON carries what it has no form for: `$int`, `$real`,
 * `$bytes`.
 */
function parseObjectValue(value: unknown, where: string): SQLInputValue {
  if (value === null) return null;
  if (value instanceof Uint8Array && !(value.buffer instanceof SharedArrayBuffer)) {
    if (value.byteLength > MAX_VALUE_BYTES) throw refuseAction(`${where}: too many bytes`);
    return Uint8Array.from(value);
  }
  const tag = typeof value === 'object' ? readTag(value as Value) : undefined;
  const bound =
    tag === undefined || tag.tag === '$text' ? undefined : bindValue({ [tag.tag]: tag.text });
  if (bound === undefined) {
    throw refuseAction(
      `${where}: a value is null, a boolean, a number, a bigint, a text or a Uint8Array`,
    );
  }
  return bound.parameter;
}

/** The action as plain data, the same for every way of writing the same statements and values. */
export function describeAction(action: CheckedAction): Value {
  return {
    statements: action.statements.map(({ sql, positional, named }) => ({
      sql,
      values:
        Object.keys(named).length > 0
          ? Object.fromEntries(
              Object.entries(named).map(([name, value]) => [name, describeValue(value)]),
            )
          : positional.map(describeValue),
    })),
  };
}

function describeValue(value: SQLInputValue): Value {
  if (typeof value === 'bigint') return encodeInteger(value);
  if (typeof value === 'number') return encodeReal(value);
  if (value instanceof Uint8Array) return encodeBytes(value);
  return typeof value === 'string' ? value : null;
}

const probes = new WeakSet<CheckedAction>();

/**
 * The action of the admission probe. It writes to a control table, which the fence lets through for
 * these very objects only: nothing that {@link parseAction} returns is among them.
 */
export function probeAction(token: string): CheckedAction {
  const sql = `insert into ${PROBE_TABLE} (token) values (?)`;
  const action = { statements: [{ sql, positional: [token], named: {} }] };
  probes.add(action);
  return action;
}

export function isProbe(action: CheckedAction): boolean {
  return probes.has(action);
}
