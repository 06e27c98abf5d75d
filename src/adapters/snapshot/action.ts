import { refuseRounded } from '../../contract/action-input.ts';
import { EffectMatchError } from '../../errors.ts';
import { canonical } from '../../protocol/canon.ts';
import { encodeData, isObject, type Value } from '../../protocol/value.ts';
import { listKnown } from './declared.ts';

/** One call of a registered tool. */
export interface SnapshotCall {
  readonly tool: string;
  /** Any JSON; an empty object unless told. */
  readonly args?: unknown;
  /** Whether the action goes on when this call fails; what it had changed is undone either way. */
  readonly mayFail?: boolean;
}

/** What an agent may submit: calls that run in order on one candidate. */
export interface SnapshotAction {
  readonly calls: readonly SnapshotCall[];
}

/** An action that was checked completely: its own copy. */
export interface CheckedAction {
  readonly calls: readonly CheckedCall[];
}

export interface CheckedCall {
  readonly tool: string;
  readonly args: Value;
  readonly mayFail: boolean;
}

const MAX_CALLS = 1000;
const MAX_CHARACTERS = 16 * 1024 * 1024;

/**
 * Checks untrusted input completely and copies it, so that nothing the agent still holds can change
 * it.
 */
export function parseAction(input: unknown, tools: readonly string[]): CheckedAction {
  const action = copyPlain(input);
  if (!isObject(action)) throw refuse('the action must be an object with calls');
  refuseUnknown(action, ['calls'], 'the action');
  const { calls } = action;
  if (!Array.isArray(calls) || calls.length === 0 || calls.length > MAX_CALLS) {
    throw refuse(`calls must be a list of 1 to ${MAX_CALLS} calls`);
  }
  return { calls: calls.map((call: Value, index) => parseCall(call, `call ${index + 1}`, tools)) };
}

function copyPlain(input: unknown): Value {
  let text: string;
  try {
    text = canonical(input);
  } catch (cause) {
    // A proxy may throw anything it likes.
    const why = cause instanceof EffectMatchError ? `: ${cause.message}` : '';
    throw refuse(`the action is not plain JSON${why}`, cause);
  }
  if (text.length > MAX_CHARACTERS)
    throw refuse(`the action is longer than ${MAX_CHARACTERS} characters`);
  const copy: Value = JSON.parse(text);
  refuseRounded(copy, 'the action', 'write it as text, since JSON has no BigInt');
  return copy;
}

function parseCall(call: Value, where: string, tools: readonly string[]): CheckedCall {
  if (!isObject(call)) throw refuse(`${where} must be an object with a tool`);
  refuseUnknown(call, ['tool', 'args', 'mayFail'], where);
  const { tool, args = {}, mayFail = false } = call;
  if (typeof tool !== 'string') throw refuse(`${where}: tool must be the name of a tool`);
  if (!tools.includes(tool))
    throw refuse(`${where}: there is no tool "${tool}"${listKnown(tools)}`);
  if (typeof mayFail !== 'boolean') throw refuse(`${where}: mayFail must be true or false`);
  return { tool, args, mayFail };
}

function refuseUnknown(object: object, known: readonly string[], where: string): void {
  const unknown = Object.keys(object).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw refuse(`${where} has an unknown field "${unknown}"; it may have ${known.join(', ')}`);
}

function refuse(what: string, cause?: unknown): EffectMatchError<'ERR_EM_ACTION_INVALID'> {
  return new EffectMatchError('ERR_EM_ACTION_INVALID', what, { cause });
}

/** The action as plain data, the same for every way of writing the same calls. */
export function describeAction(action: CheckedAction): Value {
  return {
    calls: action.calls.map(({ tool, args, mayFail }) => ({
      tool,
      args: encodeData(args),
      mayFail,
    })),
  };
}

/** Shorter identifiers occur in longer texts by accident. */
const MIN_QUOTED = 4;

/**
 * Whether the agent wrote this text into its calls: an identifier among them was chosen, not
 * generated. It counts in any case and Unicode form, and inside a longer text, since a tool may
 * take it out of there.
 */
export function chosenBy(action: CheckedAction): (text: string) => boolean {
  const texts: string[] = [];
  const collect = (value: Value): void => {
    if (typeof value !== 'object' || value === null) texts.push(String(value));
    else if (!isObject(value)) value.forEach(collect);
    else
      for (const key of Object.keys(value)) {
        texts.push(key);
        collect(value[key] as Value);
      }
  };
  for (const { args } of action.calls) collect(args);
  const joined = texts.join('\n');
  const all = fold(joined);
  // An accent or a letter behind a part changes how the part is folded; letter by letter it is
  // still there.
  const letters = joined.toUpperCase();
  return (text) => {
    const folded = fold(text);
    if (folded.length < MIN_QUOTED) return texts.some((one) => fold(one) === folded);
    return all.includes(folded) || letters.includes(text.trim().toUpperCase());
  };
}

/** Most texts are ASCII, whose only other form is the case. */
const ASCII = /^[\n\x20-\x7e]*$/;

function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase().trim();
  return text.normalize('NFKC').toUpperCase().toLowerCase().trim();
}

const probes = new WeakMap<CheckedAction, string>();

/** The action of the admission probe: it leaves the state alone and writes its token beside it. */
export function probeAction(token: string): CheckedAction {
  const action = { calls: [] };
  probes.set(action, token);
  return action;
}

/** The token that a probe writes; undefined for everything that {@link parseAction} returns. */
export function probeToken(action: CheckedAction): string | undefined {
  return probes.get(action);
}
