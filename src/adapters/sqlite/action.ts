import type { SQLInputValue } from 'node:sqlite';
import {
  BIGINT_OR_REAL,
  readBoundBytes,
  readBoundText,
  readSql,
  readStatements,
  refuseBound,
} from '../../backend/action.ts';
import {
  type Fields,
  readFields,
  refuseAction,
  refuseRounded,
  refuseUnknown,
  refuseValueCount,
} from '../../contract/action-input.ts';
import { encodeBytes, encodeInteger, readTag, type Value } from '../../protocol/value.ts';
import { MAX_VALUE_BYTES } from '../../sqlite/connection.ts';
import { PROBE_TABLE } from './control.ts';
import { splitScript, TOKEN } from './script.ts';
import { bindNumber, bindValue, encodeReal, isInt64 } from './value.ts';

/** A value that can be bound to a parameter. Integers are bound as INTEGER, booleans as 0 and 1. */
export type SqliteValue = null | boolean | number | bigint | string | Uint8Array;

/** One statement with its parameters, by position or by name. */
export interface SqliteStatement {
  readonly sql: string;
  readonly values?: readonly SqliteValue[] | { readonly [name: string]: SqliteValue };
}

/** What an agent may submit: one statement, or several that run in order in one candidate. */
export type SqliteAction =
  | SqliteStatement
  | { readonly statements: readonly SqliteStatement[] }
  /** The text of several statements without parameters, separated by semicolons. */
  | { readonly script: string };

/** A fully checked copy of an action, ready to bind. */
export interface CheckedSqliteAction {
  readonly statements: readonly BoundStatement[];
}

export interface BoundStatement {
  readonly sql: string;
  readonly positional: readonly SQLInputValue[];
  readonly named: Readonly<Record<string, SQLInputValue>>;
}

const MAX_PARAMETERS = 32_766;

/** Checks untrusted input and copies it, so that the agent cannot change it afterwards. */
export function parseAction(input: unknown): CheckedSqliteAction {
  return { statements: readStatements(input, parseStatement, splitScript) };
}

function parseStatement(statement: Fields, where: string): BoundStatement {
  refuseUnknown(statement, ['sql', 'values'], where);
  const { values } = statement;
  const sql = readSql(statement.sql, where);
  const parameters = parametersOf(sql, where);
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
      if (!isInt64(value)) throw refuseAction(`${where}: the integer does not fit in 64 bits`);
      return value;
    case 'string':
      return readBoundText(value, where, MAX_VALUE_BYTES);
    default:
      return parseObjectValue(value, where);
  }
}

/** Reads bytes, or a tagged value that plain JSON cannot express: `$int`, `$real`, `$bytes`. */
function parseObjectValue(value: unknown, where: string): SQLInputValue {
  if (value === null) return null;
  const bytes = readBoundBytes(value, where, MAX_VALUE_BYTES);
  if (bytes !== undefined) return bytes;
  const tag = typeof value === 'object' ? readTag(value as Value) : undefined;
  const bound =
    tag === undefined || tag.tag === '$text' ? undefined : bindValue({ [tag.tag]: tag.text });
  if (bound === undefined) throw refuseBound(where);
  return bound.parameter;
}

/** Describes the action as plain data. The same statements and values always give the same data. */
export function describeAction(action: CheckedSqliteAction): Value {
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

const probes = new WeakSet<CheckedSqliteAction>();

/**
 * The action of the admission probe. It writes to a control table. The fence allows this only for
 * objects created here, and {@link parseAction} never returns one of them.
 */
export function probeAction(token: string): CheckedSqliteAction {
  const sql = `insert into ${PROBE_TABLE} (token) values (?)`;
  const action = { statements: [{ sql, positional: [token], named: {} }] };
  probes.add(action);
  return action;
}

export function isProbe(action: CheckedSqliteAction): boolean {
  return probes.has(action);
}

/** SQLite's name for each parameter of a statement, by number; null for a plain `?`. */
type Parameters = readonly (string | null)[];

/** SQLite's limit for the number after a `?`. */
const MAX_NUMBER = 32_766;
const KNOWN_MAX = 100;
const KNOWN_CHARACTERS_MAX = 10_000;
const known = new Map<string, Parameters>();

/** The parameters of a statement. They are cached, because statements recur. */
function parametersOf(sql: string, where: string): Parameters {
  const found = known.get(sql);
  if (found !== undefined) return found;
  const parameters = readParameters(sql, where);
  if (sql.length > KNOWN_CHARACTERS_MAX) return parameters;
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(sql, parameters);
  return parameters;
}

/** Returns the parameters of a statement, numbered as SQLite numbers them. */
function readParameters(sql: string, where: string): Parameters {
  const parameters: (string | null)[] = [];
  const known = new Set<string>();
  for (const { groups } of sql.matchAll(TOKEN)) {
    const { numbered, named } = groups ?? {};
    if (numbered === '?') parameters.push(null);
    else if (numbered !== undefined) reach(parameters, numbered, where);
    else if (named !== undefined && !known.has(named)) parameters.push(named);
    if (named !== undefined) known.add(named);
    if (parameters.length > MAX_NUMBER)
      throw refuseAction(`${where}: there are more than ${MAX_NUMBER} parameters`);
  }
  return parameters;
}

function reach(parameters: (string | null)[], name: string, where: string): void {
  const number = Number(name.slice(1));
  if (number < 1 || number > MAX_NUMBER)
    throw refuseAction(`${where}: parameters are numbered from ?1 to ?${MAX_NUMBER}`);
  while (parameters.length < number) parameters.push(null);
  parameters[number - 1] ??= name;
}

/**
 * Requires one value for each parameter. SQLite would silently use NULL for a missing value, and an
 * extra value would fail only after the license is spent.
 */
function checkCount(parameters: Parameters, count: number, where: string): void {
  const named = parameters.find((name) => name !== null && !name.startsWith('?'));
  if (named !== undefined) {
    throw refuseAction(
      `${where}: the parameter ${named} has a name; give values as an object with the names`,
    );
  }
  if (parameters.length === count) return;
  throw refuseValueCount(`${where}: the statement`, parameters.length, count);
}

/** The same check for named values. A name may be given with or without its first character. */
function checkNames(parameters: Parameters, names: readonly string[], where: string): void {
  const unnamed = parameters.find((name) => name === null || name.startsWith('?'));
  if (unnamed !== undefined) {
    throw refuseAction(
      `${where}: the parameter ${unnamed ?? '?'} has no name; give values as a list`,
    );
  }
  const known = new Map<string, string>();
  for (const name of parameters as readonly string[]) {
    const other = known.get(name.slice(1));
    if (other !== undefined)
      throw refuseAction(`${where}: ${other} and ${name} must have different names`);
    known.set(name.slice(1), name);
  }
  const given = new Set<string>();
  for (const name of names) {
    const bare = known.get(name.slice(1)) === name ? name.slice(1) : name;
    if (!known.has(bare)) throw refuseAction(`${where}: the statement has no parameter "${name}"`);
    if (given.has(bare)) throw refuseAction(`${where}: the parameter "${name}" has two values`);
    given.add(bare);
  }
  const missing = [...known].find(([name]) => !given.has(name));
  if (missing !== undefined)
    throw refuseAction(`${where}: there is no value for the parameter ${missing[1]}`);
}
