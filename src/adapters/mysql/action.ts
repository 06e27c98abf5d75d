import mysql from 'mysql2/promise';
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
  refuseAction,
  refuseRounded,
  refuseUnknown,
} from '../../contract/action-input.ts';
import {
  encodeBytes,
  encodeInteger,
  encodeReal,
  readTag,
  type Value,
} from '../../protocol/value.ts';
import { quoteName } from './sql.ts';

/** A value that can be bound to a parameter. Integers are bound as BIGINT, booleans as 0 and 1. */
export type MysqlValue = null | boolean | number | bigint | string | Uint8Array;

/** One statement with values for its `?` parameters. */
export interface MysqlStatement {
  readonly sql: string;
  readonly values?: readonly MysqlValue[];
}

/** What an agent may submit: one statement, a list of statements run in order, or a script. */
export type MysqlAction =
  | MysqlStatement
  | { readonly statements: readonly MysqlStatement[] }
  | { readonly script: string };

/** An action that was checked and copied, so that its values can be bound. */
export interface CheckedMysqlAction {
  readonly statements: readonly BoundStatement[];
}

interface BoundStatement {
  readonly sql: string;
  /** Integers are bigints, floating-point values are numbers, and decimals keep their tag. */
  readonly values: readonly BoundValue[];
}

type BoundValue = null | number | bigint | string | Buffer | { readonly $dec: string };

/** The protocol counts parameters in 16 bits. */
const MAX_PARAMETERS = 65_535;
const MAX_VALUE_BYTES = 64 * 1024 * 1024;

/** Checks untrusted input and copies it. The server decides which statements may run. */
export function parseAction(input: unknown): CheckedMysqlAction {
  return { statements: readStatements(input, readStatement, splitScript) };
}

/** Tokens that may contain a semicolon. `open` matches a quote or comment that is never closed. */
const PART =
  /'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*"|`[^`]*`|--[\s][^\n]*|#[^\n]*|\/\*[\s\S]*?\*\/|(?<open>['"`]|\/\*)|(?<end>;)|[\s\S]/g;

/** Splits a script into statements. The server checks each one, so a wrong split admits nothing. */
export function splitScript(script: string): readonly string[] {
  const statements = [''];
  for (const { 0: part, groups } of script.matchAll(PART)) {
    if (groups?.open !== undefined)
      throw refuseAction(`the script has ${part} that is not closed; close it`);
    if (groups?.end === undefined) statements[statements.length - 1] += part;
    else statements.push('');
  }
  return statements.map((statement) => statement.trim()).filter(hasCode);
}

function hasCode(statement: string): boolean {
  return statement.replace(/--\s[^\n]*|#[^\n]*|\/\*(?!M?!)[\s\S]*?\*\//g, '').trim() !== '';
}

function readStatement(statement: Fields, where: string): BoundStatement {
  refuseUnknown(statement, ['sql', 'values'], where);
  const { values = [] } = statement;
  const sql = readSql(statement.sql, where);
  if (!Array.isArray(values) || values.length > MAX_PARAMETERS)
    throw refuseAction(`${where}: values must be a list of at most ${MAX_PARAMETERS} values`);
  const bound = Array.from(values, (value: unknown, index) =>
    readValue(value, `${where}, value ${index + 1}`),
  );
  return { sql, values: bound };
}

function readValue(value: unknown, where: string): BoundValue {
  switch (typeof value) {
    case 'boolean':
      return value ? 1n : 0n;
    case 'number':
      if (!Number.isFinite(value)) throw refuseAction(`${where}: the number is not finite`);
      refuseRounded(value, where, BIGINT_OR_REAL);
      return Number.isInteger(value) && !Object.is(value, -0) ? BigInt(value) : value;
    case 'bigint':
      if (value < -(2n ** 63n) || value >= 2n ** 64n)
        throw refuseAction(`${where}: the integer does not fit into 64 bits`);
      return value;
    case 'string':
      return readBoundText(value, where, MAX_VALUE_BYTES);
    default:
      return value === null ? null : readObjectValue(value, where);
  }
}

function readObjectValue(value: unknown, where: string): BoundValue {
  const bytes = readBoundBytes(value, where, MAX_VALUE_BYTES);
  if (bytes !== undefined) return Buffer.from(bytes.buffer);
  const tagged = readTag(value as Value);
  switch (tagged?.tag) {
    case '$int':
      return readValue(BigInt(tagged.text), where);
    case '$real':
      if (!Number.isFinite(Number(tagged.text)))
        throw refuseAction(`${where}: the number is not finite`);
      return Number(tagged.text);
    case '$dec':
      return { $dec: tagged.text };
    case '$bytes':
      return Buffer.from(tagged.text, 'hex');
    default:
      throw refuseBound(where);
  }
}

/** Converts the values to what the driver sends, each with its type. */
export function bindValues(values: readonly BoundValue[]): readonly unknown[] {
  return values.map((value) => {
    if (typeof value === 'bigint')
      return value < 2n ** 63n
        ? mysql.TypedParameter.LONGLONG(value)
        : mysql.TypedParameter.LONGLONG.unsigned(value);
    if (typeof value === 'object' && value !== null && '$dec' in value)
      return mysql.TypedParameter.NEWDECIMAL(value.$dec);
    return value;
  });
}

/** Describes the action as plain data. The same statements and values always give the same data. */
export function describeAction({ statements }: CheckedMysqlAction): Value {
  return {
    statements: statements.map(({ sql, values }) => ({ sql, values: values.map(describeValue) })),
  };
}

function describeValue(value: BoundValue): Value {
  if (typeof value === 'bigint') return encodeInteger(value);
  if (typeof value === 'number') return encodeReal(value);
  return Buffer.isBuffer(value) ? encodeBytes(value) : value;
}

const probes = new WeakSet<CheckedMysqlAction>();

/** The action of the admission probe: it writes to a control table. */
export function probeAction(controlDatabase: string, token: string): CheckedMysqlAction {
  const sql = `insert into ${quoteName(controlDatabase)}.probe (token) values (?)`;
  const action = { statements: [{ sql, values: [token] }] };
  probes.add(action);
  return action;
}

export function isProbe(action: CheckedMysqlAction): boolean {
  return probes.has(action);
}
