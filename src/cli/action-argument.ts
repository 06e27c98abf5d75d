import { isRounded } from '../protocol/value.ts';
import type { Operation } from '../runtime/operation.ts';
import { parseInput } from '../runtime/propose.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import type { Arguments, Flags } from './arguments.ts';
import { GuidedError, usageError } from './guided-error.ts';
import { readTextFile } from './text-file.ts';

/** How an action is given to the verbs that need one. */
export const ACTION_FLAGS = {
  action: {
    value: 'FILE',
    about: 'the action as JSON: { "sql": …, "values": … } or { "statements": […] }',
  },
  input: { value: 'JSON', about: 'with --operation: its input' },
  operation: { value: 'NAME', about: 'the action of an operation of the configuration' },
  sql: { value: 'TEXT', about: 'the action as one statement' },
  values: { value: 'JSON', about: 'values for its parameters, as a JSON list or object' },
} satisfies Flags;

/**
 * What a command line asks for: an action, or an operation that computes one. What it says is
 * checked where it is used.
 */
export type Asked =
  | { readonly kind: 'action'; readonly action: unknown }
  | { readonly kind: 'operation'; readonly name: string; readonly input: unknown };

const INPUT = `--input '{"invoice": 4711}'`;

/**
 * One statement, a file, or an operation with its input: exactly one of them, with only the flags
 * that belong to it.
 */
export function readAsked(args: Arguments, verb: string): Asked {
  const { sql, action, operation } = {
    sql: args.value('sql'),
    action: args.value('action'),
    operation: args.value('operation'),
  };
  if ([sql, action, operation].filter((way) => way !== undefined).length !== 1) {
    throw usageError(
      'say what to run: one of --sql TEXT, --action FILE and --operation NAME',
      verb,
    );
  }
  if (args.has('values') && sql === undefined) throw usageError('--values belongs to --sql', verb);
  if (args.has('input') && operation === undefined)
    throw usageError('--input belongs to --operation', verb);
  if (operation !== undefined) {
    return {
      kind: 'operation',
      name: operation,
      input: parseJson(args.value('input') ?? 'null', '--input', INPUT),
    };
  }
  if (action !== undefined) {
    const text = readTextFile(action, 'give --action the path of a JSON file');
    const example = 'a file with { "sql": "update …", "values": [] }';
    return { kind: 'action', action: parseJson(text, `the file ${action}`, example) };
  }
  const values = args.value('values');
  return {
    kind: 'action',
    action: { sql, ...(values !== undefined && { values: parseJson(values, '--values') }) },
  };
}

/**
 * The action that is asked for; an operation's is computed from its checked input, as when it was
 * proposed.
 */
export async function actionOf(config: RuntimeConfig, asked: Asked): Promise<unknown> {
  if (asked.kind === 'action') return asked.action;
  const operation = operationNamed(config, asked.name);
  return operation.action(await parseInput(operation, asked.input));
}

/** The operation of the configuration with this name. */
export function operationNamed({ operations = {} }: RuntimeConfig, name: string): Operation {
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (operation !== undefined) return operation;
  const known = Object.keys(operations).join(', ') || 'none';
  const message = `no operation named "${name}" is configured; nothing was done`;
  throw new GuidedError('ERR_EM_NOT_FOUND', message, `the configuration has: ${known}`);
}

function parseJson(text: string, what: string, example = '--values \'["paid", 4711]\''): unknown {
  try {
    return JSON.parse(
      text,
      (_key, value: unknown, { source = '' }: { readonly source?: string } = {}) => {
        if (isRounded(value) || (typeof value === 'number' && !Number.isFinite(value)))
          throw inexact(what, source);
        return value;
      },
    );
  } catch (cause) {
    if (cause instanceof GuidedError) throw cause;
    const words = cause instanceof Error ? cause.message : String(cause);
    const next = `write JSON, for example ${example}; nothing was done`;
    throw new GuidedError('ERR_EM_USAGE', `${what} is not JSON: ${words}`, next, { cause });
  }
}

/** JSON numbers are read as doubles, which skip integers beyond 2^53. */
function inexact(what: string, source: string): GuidedError {
  const shown = source.slice(0, 40);
  const message = `${what} has the number ${shown}, which would be rounded; nothing was done`;
  const next =
    what === '--input'
      ? `write it as text, "${shown}", and have the operation's schema make a BigInt of it`
      : `write { "$real": "${shown}" } for a floating-point number${/^-?\d+$/.test(source) ? `, or { "$int": "${shown}" } for an integer` : ''}`;
  return new GuidedError('ERR_EM_USAGE', message, next);
}

/** The adapter that is meant: the one named, or the only one there is. */
export function chooseAdapterName(
  { adapters }: RuntimeConfig,
  wanted: string | undefined,
  verb: string,
): string {
  const names = Object.keys(adapters);
  if (wanted !== undefined && names.includes(wanted)) return wanted;
  const [only, second] = names;
  if (wanted === undefined && only !== undefined && second === undefined) return only;
  const known = names.join(', ');
  throw usageError(
    wanted === undefined
      ? `name the adapter with --adapter: ${known}`
      : `there is no adapter "${wanted}"; there are ${known}`,
    verb,
  );
}
