import type { RuntimeConfig } from '../runtime/runtime.ts';
import type { Arguments, Flags } from './arguments.ts';
import { GuidedError, usageError } from './guided-error.ts';
import { readTextFile } from './text-file.ts';

/** How an action is given to the verbs that need one. */
export const ACTION_FLAGS = {
  action: { value: 'FILE', about: 'the action as JSON: { "sql": …, "values": … } or { "statements": […] }' },
  sql: { value: 'TEXT', about: 'the action as one statement' },
  values: { value: 'JSON', about: 'values for its parameters, as a JSON list or object' },
} satisfies Flags;

/** The action of a command line: one statement, or a file. What it says is checked by the adapter. */
export function readAction(args: Arguments, verb: string): unknown {
  const [sql, values, file] = [args.value('sql'), args.value('values'), args.value('action')];
  if ((sql === undefined) === (file === undefined)) {
    throw usageError('say what to run: either --sql TEXT or --action FILE', verb);
  }
  if (file !== undefined) {
    if (values !== undefined) throw usageError('--values belongs to --sql; a file has its own values', verb);
    return parseJson(readTextFile(file, `give --action the path of a JSON file`), `the file ${file}`);
  }
  return { sql, ...(values !== undefined && { values: parseJson(values, '--values') }) };
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const next = 'write JSON, for example --values \'["paid", 4711]\'; nothing was done';
    throw new GuidedError('ERR_EM_USAGE', `${what} is not JSON: ${String(cause)}`, next, { cause });
  }
}

/** The adapter that is meant: the one named, or the only one there is. */
export function chooseAdapterName({ adapters }: RuntimeConfig, wanted: string | undefined, verb: string): string {
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
