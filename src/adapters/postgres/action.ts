import { BIGINT_OR_REAL, joinStatements, readSql, readStatements } from '../../backend/action.ts';
import {
  type Fields,
  readFields,
  refuseAction,
  refuseRounded,
  refuseUnknown,
  refuseValueCount,
} from '../../contract/action-input.ts';
import { quoteQualified, sqlName } from '../../postgres/identifier.ts';
import { encodeBytes, readTag, type Value } from '../../protocol/value.ts';
import type { EntryRoutine } from './entry.ts';
import type { GateCatalog } from './gate/resolve.ts';
import { PROBE_TABLE } from './provision/provision.ts';
import { isSignature, parseRoutine } from './routine-name.ts';
import type { StatementGate } from './statement-gate.ts';

/** A parameter value. The server reads its text as the parameter's type. Lists become arrays. */
export type PostgresValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly PostgresValue[];

/**
 * One statement with its parameters `$1`, `$2`…, or one call of a registered function or procedure.
 */
export type PostgresStatement =
  | { readonly sql: string; readonly values?: readonly PostgresValue[] }
  | { readonly call: string; readonly values?: readonly PostgresValue[] };

/** What an agent may submit: one statement, or several that run in order in one candidate. */
export type PostgresAction =
  | PostgresStatement
  | { readonly statements: readonly PostgresStatement[] }
  /** Several statements without parameters, separated by semicolons. */
  | { readonly script: string };

/** A fully checked copy of an action, ready to bind. */
export interface CheckedPostgresAction {
  readonly statements: readonly BoundStatement[];
}

interface BoundStatement {
  /** One statement for the extended protocol. */
  readonly sql: string;
  readonly values: readonly (string | null)[];
  readonly returnsRows: boolean;
  /** The entry point, if we generated the statement to call it. */
  readonly call?: string;
}

/** What actions are checked against. */
export interface ActionTools {
  readonly gate: StatementGate;
  /** Registered entry points by target. */
  readonly entries: ReadonlyMap<string, EntryRoutine>;
  /** What names mean. Present with the managed boundary. */
  readonly catalog?: GateCatalog | undefined;
}

/** The protocol counts parameters in 16 bits. */
const MAX_PARAMETERS = 65_535;
const MAX_VALUE_CHARACTERS = 64 * 1024 * 1024;
const MAX_NESTED_LISTS = 6;
/** Tags of values that cannot be sent to the server. */
const UNSENDABLE: readonly string[] = ['$text', '$digest', '$omitted'];

/** Checks untrusted input completely and copies it, so that the agent can no longer change it. */
export function parseAction(tools: ActionTools, input: unknown): CheckedPostgresAction {
  const read = (statement: Fields, where: string) => readStatement(tools, statement, where);
  return { statements: readStatements(input, read, (script) => splitScript(tools.gate, script)) };
}

/** The statements of several actions, in order. */
export function joinActions(tools: ActionTools, actions: readonly unknown[]): unknown {
  return joinStatements(actions, (script) => splitScript(tools.gate, script));
}

function splitScript(gate: StatementGate, script: string): readonly string[] {
  const found = gate.split(script);
  if (found.kind === 'refused') throw refuseAction(`script: ${found.why}`);
  return found.statements;
}

function readStatement(tools: ActionTools, statement: Fields, where: string): BoundStatement {
  if (Object.hasOwn(statement, 'call')) return readCall(tools, statement, where);
  refuseUnknown(statement, ['sql', 'values'], where);
  const sql = readSql(statement.sql, where);
  const values = readValues(statement.values, where);
  const finding = tools.gate.check(sql, proceduresOf(tools.entries), tools.catalog);
  if (finding.kind === 'refused') throw refuseAction(`${where}: ${finding.why}`);
  if (finding.parameters !== values.length) {
    throw refuseValueCount(`${where}: the statement`, finding.parameters, values.length);
  }
  return { sql, values, returnsRows: finding.returnsRows };
}

/** The procedures that a CALL may name. */
function proceduresOf(entries: ActionTools['entries']): Pick<ReadonlySet<string>, 'has'> {
  const known = [...entries.values()];
  return {
    has: (target) => known.some((entry) => entry.kind === 'procedure' && sqlName(entry) === target),
  };
}

/**
 * Why an action that was admitted earlier is not admitted under this catalogue; undefined if it is.
 * Skips the statements that we generate: calls of entry points, and the probe.
 */
export function refuseAdmitted(
  { gate, entries, catalog }: ActionTools,
  action: CheckedPostgresAction,
): string | undefined {
  if (catalog === undefined || isProbe(action)) return undefined;
  for (const { sql, call } of action.statements) {
    if (call !== undefined) continue;
    const finding = gate.check(sql, proceduresOf(entries), catalog);
    if (finding.kind === 'refused') return finding.why;
  }
  return undefined;
}

function readCall({ entries }: ActionTools, statement: Fields, where: string): BoundStatement {
  refuseUnknown(statement, ['call', 'values'], where);
  const [entry, ...others] = findEntries(entries, statement.call);
  if (entry === undefined) {
    const known =
      entries.size === 0
        ? 'none is registered'
        : `registered are ${[...entries.keys()].join(', ')}`;
    throw refuseAction(`${where}: call must name a registered entry point; ${known}`);
  }
  const call = entry.target;
  if (others.length > 0) {
    const known = [entry, ...others].map(({ target }) => target).join(', ');
    throw refuseAction(`${where}: several entry points have this name; call one of ${known}`);
  }
  const values = readValues(statement.values, where);
  const inputs = entry.arguments.filter(({ input }) => input).length;
  if (values.length !== inputs) throw refuseValueCount(`${where}: ${call}`, inputs, values.length);
  return { sql: writeCall(entry), values, returnsRows: true, call };
}

/** The registered entry points that a call could mean. */
function findEntries(
  entries: ReadonlyMap<string, EntryRoutine>,
  call: unknown,
): readonly EntryRoutine[] {
  const stated = typeof call === 'string' ? parseRoutine(call) : undefined;
  if (stated === undefined) return [];
  const types = stated.signature;
  return [...entries.values()].filter(
    ({ schema, name, signature }) =>
      schema === stated.schema &&
      name === stated.name &&
      (types === undefined || isSignature(signature, types)),
  );
}

/** Casts each parameter to the type that the entry point declares. */
function writeCall(entry: EntryRoutine): string {
  let parameter = 0;
  const list = entry.arguments.map(({ type, input }) => {
    if (!input) return `null::${type}`;
    parameter += 1;
    return `$${parameter}::${type}`;
  });
  return `${entry.kind === 'procedure' ? 'call' : 'select * from'} ${quoteQualified(entry)}(${list.join(', ')})`;
}

function readValues(values: unknown, where: string): readonly (string | null)[] {
  if (values === undefined) return [];
  if (!Array.isArray(values))
    throw refuseAction(`${where}: values must be a list; PostgreSQL has no named parameters`);
  if (values.length > MAX_PARAMETERS)
    throw refuseAction(`${where}: more than ${MAX_PARAMETERS} values`);
  return Array.from(values, (value: unknown, index) =>
    readValue(value, `${where}, value ${index + 1}`, 0),
  );
}

function readValue(value: unknown, where: string, depth: number): string | null {
  switch (typeof value) {
    case 'boolean':
    case 'bigint':
      return String(value);
    case 'number':
      if (Number.isNaN(value))
        throw refuseAction(
          `${where}: NaN is mostly a mistake; where it is meant, pass the text 'NaN'`,
        );
      refuseRounded(value, where, BIGINT_OR_REAL);
      return Object.is(value, -0) ? '-0' : String(value);
    case 'string':
      if (value.includes('\0'))
        throw refuseAction(`${where}: PostgreSQL cannot store a NUL character in text`);
      if (!value.isWellFormed())
        throw refuseAction(`${where}: the text has a lone surrogate, which would be replaced`);
      if (value.length > MAX_VALUE_CHARACTERS) throw refuseAction(`${where}: the text is too long`);
      return value;
    default:
      return value === null ? null : readObjectValue(value, where, depth);
  }
}

/**
 * A list, bytes, or a tagged value that JSON has no form for: `$int`, `$dec`, `$real`, `$bytes`.
 */
function readObjectValue(value: unknown, where: string, depth: number): string {
  if (Array.isArray(value)) {
    if (depth >= MAX_NESTED_LISTS)
      throw refuseAction(`${where}: an array has at most ${MAX_NESTED_LISTS} dimensions`);
    const items = Array.from(value, (item: unknown) => {
      const text = readValue(item, where, depth + 1);
      if (text === null || Array.isArray(item)) return text ?? 'NULL';
      return `"${text.replace(/["\\]/g, '\\$&')}"`;
    });
    return `{${items.join(',')}}`;
  }
  if (value instanceof Uint8Array && !(value.buffer instanceof SharedArrayBuffer)) {
    if (value.byteLength > MAX_VALUE_CHARACTERS) throw refuseAction(`${where}: too many bytes`);
    return `\\x${readTag(encodeBytes(value))?.text ?? ''}`;
  }
  const tagged = typeof value === 'object' ? readTag(readFields(value, where) as Value) : undefined;
  if (tagged === undefined || UNSENDABLE.includes(tagged.tag)) {
    throw refuseAction(
      `${where}: a value is null, a boolean, a number, a bigint, a text, a Uint8Array or a list; JSON is text`,
    );
  }
  return tagged.tag === '$bytes' ? `\\x${tagged.text}` : tagged.text;
}

/**
 * The action as plain data. Equal statements and values give equal data, however they were written.
 */
export function describeAction(action: CheckedPostgresAction): Value {
  return {
    statements: action.statements.map(({ sql, values, call }) =>
      call === undefined ? { sql, values } : { call, values },
    ),
  };
}

const probes = new WeakSet<CheckedPostgresAction>();

/**
 * The admission probe's action. It writes to a table in schema effectmatch, which actions from
 * {@link parseAction} may not name.
 */
export function probeAction(token: string): CheckedPostgresAction {
  const sql = `insert into ${quoteQualified(PROBE_TABLE)} (token) values ($1)`;
  const action = { statements: [{ sql, values: [token], returnsRows: false }] };
  probes.add(action);
  return action;
}

export function isProbe(action: CheckedPostgresAction): boolean {
  return probes.has(action);
}
