import { messageOf } from '../errors.ts';
import { isRounded } from '../protocol/value.ts';
import type { Operation } from '../runtime/operation.ts';
import { parseInput } from '../runtime/propose.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import type { Arguments, Flags } from './command.ts';
import { GuidedError } from './fault.ts';
import { readTextFile } from './files.ts';

/** The flags that pass an action to a verb. */
export const ACTION_FLAGS = {
  action: {
    value: 'FILE',
    about: 'the action as JSON: an object with "sql" and "values", or with "statements"',
  },
  file: {
    value: 'FILE',
    about: 'the action as SQL: one or several statements without parameters',
  },
  input: { value: 'JSON', about: 'with --operation: its input', needs: 'operation' },
  operation: { value: 'NAME', about: 'the action of a configured operation' },
  sql: {
    value: 'TEXT',
    about: 'the action as one statement; repeat it for several, which run in the given order',
    repeats: true,
  },
  values: {
    value: 'JSON',
    about: 'values for its parameters, as a JSON list or object; with several --sql one for each',
    needs: 'sql',
    repeats: true,
  },
} satisfies Flags;

/** What to run: an action, or an operation that computes one. The runtime validates it later. */
export type ActionArgument =
  | { readonly kind: 'action'; readonly action: unknown }
  | { readonly kind: 'operation'; readonly name: string; readonly input: unknown };

/** Reads what to run. Exactly one of the flags must be given. */
export function readActionArgument(args: Arguments): ActionArgument {
  const given = ['sql', 'file', 'action', 'operation'].filter((flag) => args.has(flag));
  if (given.length !== 1)
    throw args.wrong(
      'say what to run: one of --sql TEXT, --file FILE, --action FILE and --operation NAME',
    );
  const [script, file, name] = [args.value('file'), args.value('action'), args.value('operation')];
  if (name !== undefined) {
    const text = args.value('input') ?? 'null';
    const input = parseJson(text, '--input', `--input '{"invoice": 4711}'`);
    return { kind: 'operation', name, input };
  }
  if (file !== undefined) {
    const text = readTextFile(file, 'give --action the path of a JSON file');
    const example = 'a file with { "sql": "update …", "values": [] }';
    return { kind: 'action', action: parseJson(text, `the file ${file}`, example) };
  }
  return { kind: 'action', action: script === undefined ? readSql(args) : readScript(script) };
}

function readScript(file: string) {
  const text = readTextFile(file, 'give --file the path of a file with SQL statements');
  const byteOrderMark = /^\uFEFF/;
  return { script: text.replace(byteOrderMark, '') };
}

/**
 * One statement, or several with their values in the same order. A trailing semicolon is dropped,
 * as in a file.
 */
function readSql(args: Arguments) {
  const [texts, values] = [args.values('sql'), args.values('values')];
  if (values.length > 0 && values.length !== texts.length)
    throw args.wrong(
      `--sql is given ${texts.length} times and --values ${values.length} times; give --values once for each --sql, '[]' for none`,
    );
  const example = `--values '["paid", 4711]'`;
  const statements = texts.map((text, index) => {
    const sql = text.replace(/;\s*$/, '');
    const json = values[index];
    return json === undefined ? { sql } : { sql, values: parseJson(json, '--values', example) };
  });
  const [only, second] = statements;
  return second === undefined ? only : { statements };
}

/** The action to run. An operation computes it from its validated input, as for the proposal. */
export async function actionOf(config: RuntimeConfig, argument: ActionArgument): Promise<unknown> {
  if (argument.kind === 'action') return argument.action;
  const operation = operationNamed(config, argument.name);
  return operation.action(await parseInput(operation, argument.input));
}

/** The configured operation with this name. */
export function operationNamed({ operations = {} }: RuntimeConfig, name: string): Operation {
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (operation !== undefined) return operation;
  const known = Object.keys(operations).join(', ') || 'none';
  const message = `no operation named "${name}" is configured; nothing was done`;
  throw new GuidedError('ERR_EM_NOT_FOUND', message, `the configuration has: ${known}`);
}

/** Parses JSON exactly: rejects numbers that a double cannot represent. */
function parseJson(text: string, what: string, example: string): unknown {
  const check = (_key: string, value: unknown, context?: { readonly source?: string }) => {
    const isInfinite = typeof value === 'number' && !Number.isFinite(value);
    if (isInfinite || isRounded(value)) throw inexact(what, context?.source ?? '');
    return value;
  };
  try {
    return JSON.parse(text, check);
  } catch (cause) {
    if (cause instanceof GuidedError) throw cause;
    const message = `${what} is not JSON: ${messageOf(cause)}`;
    const next = `write JSON, for example ${example}; nothing was done`;
    throw new GuidedError('ERR_EM_USAGE', message, next, cause);
  }
}

/** JSON numbers are parsed as doubles, which skip integers beyond 2^53. */
function inexact(what: string, source: string): GuidedError {
  const shown = source.slice(0, 40);
  const integer = /^-?\d+$/.test(source) ? `, or { "$int": "${shown}" } for an integer` : '';
  const message = `${what} has the number ${shown}, which would be rounded; nothing was done`;
  const next =
    what === '--input'
      ? `write it as text, "${shown}", and have the operation's schema make a BigInt of it`
      : `write { "$real": "${shown}" } for a floating-point number${integer}`;
  return new GuidedError('ERR_EM_USAGE', message, next);
}
