import { copyAction, readItems } from '../../backend/action.ts';
import { refuseAction, refuseUnknown } from '../../contract/action-input.ts';
import { suggest } from '../../protocol/nearest.ts';
import { encodeData, isObject, type Value } from '../../protocol/value.ts';

/** One call of a registered tool. */
export interface SnapshotCall {
  readonly tool: string;
  /** Any JSON. Default: an empty object. */
  readonly args?: unknown;
  /** Whether the action continues if this call fails. A failed call's changes are always undone. */
  readonly mayFail?: boolean;
}

/** What an agent may submit: calls that run in order on one candidate. */
export interface SnapshotAction {
  readonly calls: readonly SnapshotCall[];
}

/** A fully checked copy of an action. */
export interface CheckedSnapshotAction {
  readonly calls: readonly CheckedCall[];
  /** A token that the admission probe writes next to the state. An agent cannot set it. */
  readonly token?: string;
}

/** One checked call. */
export interface CheckedCall {
  readonly tool: string;
  readonly args: Value;
  readonly mayFail: boolean;
}

const MAX_CALLS = 1000;
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** Checks untrusted input and copies it. */
export function parseAction(input: unknown, tools: readonly string[]): CheckedSnapshotAction {
  const action = copyAction(input, MAX_CHARACTERS);
  if (!isObject(action)) throw refuseAction('the action must be an object with calls');
  refuseUnknown(action, ['calls'], 'the action');
  const limit = { name: 'call', max: MAX_CALLS };
  const calls = readItems(action.calls, limit, (call, where) =>
    parseCall(call as Value, where, tools),
  );
  return { calls };
}

function parseCall(call: Value, where: string, tools: readonly string[]): CheckedCall {
  if (!isObject(call)) throw refuseAction(`${where} must be an object with a tool`);
  refuseUnknown(call, ['tool', 'args', 'mayFail'], where);
  const { tool, args = {}, mayFail = false } = call;
  if (typeof tool !== 'string') throw refuseAction(`${where}: tool must be the name of a tool`);
  if (!tools.includes(tool)) {
    const known = `${suggest(tool, tools)}; there are ${tools.join(', ')}`;
    throw refuseAction(`${where}: unknown tool "${tool}"${known}`);
  }
  if (typeof mayFail !== 'boolean') throw refuseAction(`${where}: mayFail must be true or false`);
  return { tool, args, mayFail };
}

/** Describes the action as plain data. The same calls always give the same data. */
export function describeAction({ calls }: CheckedSnapshotAction): Value {
  return { calls: calls.map((call) => ({ ...call, args: encodeData(call.args) })) };
}

/** Shorter identifiers occur in longer texts by accident. */
const MIN_QUOTED = 4;

/**
 * Tells whether an agent wrote an identifier in its calls: exactly, in another case or Unicode
 * form, or inside a longer text.
 */
export function chosenBy(calls: readonly CheckedCall[]): (text: string) => boolean {
  const texts: string[] = [];
  const collect = (value: Value): void => {
    if (typeof value !== 'object' || value === null) texts.push(String(value));
    else if (!isObject(value)) value.forEach(collect);
    else {
      for (const [key, inner] of Object.entries(value)) {
        texts.push(key);
        collect(inner);
      }
    }
  };
  for (const { args } of calls) collect(args);
  const joined = texts.join('\n');
  const all = fold(joined);
  // An accent or letter that follows a part changes how the part is folded, so also search the
  // unfolded text.
  const letters = joined.toUpperCase();
  return (text) => {
    const folded = fold(text);
    if (folded.length < MIN_QUOTED) return texts.some((one) => fold(one) === folded);
    return all.includes(folded) || letters.includes(text.trim().toUpperCase());
  };
}

function fold(text: string): string {
  return text.normalize('NFKC').toUpperCase().toLowerCase().trim();
}
