import { EffectMatchError } from '../../errors.ts';
import { canonical } from '../../protocol/canon.ts';
import { plain, readOnce } from '../../protocol/schema.ts';
import { encodeData, isObject, readReal, type Value } from '../../protocol/value.ts';
import { stepInto, type Tokens } from './pointer.ts';

/** Records carry values inside further objects, and canonical texts end at 64 levels. */
const MAX_DEPTH = 48;
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** Plain data as its canonical text and as what that says, which no tool ever gets. */
export interface Document {
  readonly text: string;
  readonly state: Value;
}

/**
 * The canonical text of a state. Whatever is not plain JSON is refused, so that two equal texts are
 * two equal states and nothing (a getter, a class, the order of keys) can hide beside the data.
 */
export function writeDocument(state: unknown): string {
  const text = canonical(state);
  if (text.length > MAX_CHARACTERS) throw tooLong();
  demandDepth(state);
  return text;
}

function demandDepth(state: unknown): void {
  if (isDeeper(state, MAX_DEPTH)) throw unusable(`it is nested deeper than ${MAX_DEPTH} levels`);
}

/** The text and a copy of a state that somebody else may still hold. */
export function takeDocument(state: unknown): Document {
  const taken = takePlain(state, MAX_CHARACTERS);
  if (taken === undefined) throw tooLong();
  demandDepth(taken.state);
  return taken;
}

/** More are rare, and one that stands in many places would be copied for each of them. */
const MAX_OBJECTS = 2 ** 20;

/**
 * The same of any plain data, undefined where its text is longer. The quick way never says why it
 * refuses, so the other one is asked then. A small graph can have a long text, and what is read
 * from that is many times larger.
 */
export function takePlain(input: unknown, maxCharacters: number): Document | undefined {
  const read = readOnce(plain, input, MAX_OBJECTS);
  const isRead = 'text' in read;
  const text = isRead ? read.text : canonical(input);
  if (text.length > maxCharacters) return undefined;
  return { text, state: isRead ? read.copy : readDocument(text) };
}

/**
 * Kept from before any tool has run: whatever one does to built-in objects, its copy stays a copy,
 * and it gets no other.
 */
const { keys } = Object;
const { isArray } = Array;
const { parse } = JSON;

/** A copy of the state that nobody else holds. */
export function readDocument(text: string): Value {
  return parse(text) as Value;
}

/**
 * The same, of a state that was read before: in half the time, and with nothing but what is the
 * state's own.
 */
export function copyDocument(state: Value): Value {
  if (typeof state !== 'object' || state === null) return state;
  if (isArray(state)) {
    const list: Value[] = [];
    for (let index = 0; index < state.length; index += 1)
      list[index] = copyDocument(state[index] as Value);
    return list;
  }
  const copy: { [key: string]: Value } = { ...(state as { readonly [key: string]: Value }) };
  const names = keys(copy);
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index] as string;
    const inner = copy[name] as Value;
    if (typeof inner === 'object') copy[name] = copyDocument(inner);
  }
  return copy;
}

/**
 * Of plain data, so that nothing else is met on the way. Makes no lists: a state has as many
 * objects as it has records.
 */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (isArray(value)) {
    for (let index = 0; index < value.length; index += 1)
      if (isDeeper(value[index], levels - 1)) return true;
    return false;
  }
  for (const name in value)
    if (isDeeper(value[name as keyof typeof value], levels - 1)) return true;
  return false;
}

function tooLong(): EffectMatchError {
  return unusable(`it is longer than ${MAX_CHARACTERS} characters`);
}

function unusable(why: string): EffectMatchError {
  return new EffectMatchError('ERR_EM_CANON_UNSUPPORTED', `the state cannot be kept: ${why}`);
}

/**
 * The value with every list that a pattern leads to in one fixed order, so that two orders of the
 * same elements are the same value while every element still counts. Inner lists first: they are
 * part of what outer ones sort by.
 */
export function sortLists(value: Value, unordered: readonly Tokens[]): Value {
  if (unordered.length === 0 || typeof value !== 'object' || value === null) return value;
  if (isObject(value)) {
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([key, inner]) => [key, sortLists(inner, stepInto(unordered, key))]),
    );
  }
  const items = value.map((item, index) => sortLists(item, stepInto(unordered, String(index))));
  if (!unordered.some((pattern) => pattern.length === 0)) return items;
  const texts = items.map((item) => ({ item, text: canonical(item) }));
  return texts
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
    .map(({ item }) => item);
}

/**
 * What a declared field holds that its record does not have. No JSON document contains bytes, so
 * none can forge it.
 */
export const ABSENT: Value = Object.freeze({ $bytes: '' });

export function isAbsent(value: Value): boolean {
  return isObject(value) && value.$bytes === '' && Object.keys(value).length === 1;
}

/**
 * The JSON that a value of a manifest stands for; undefined where JSON has no form for it (bytes,
 * big integers).
 */
export function decodeData(value: Value): Value | undefined {
  try {
    return decode(value);
  } catch {
    return undefined;
  }
}

function decode(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value;
  if (!isObject(value)) return value.map(decode);
  const real = readReal(value);
  if (real !== undefined) return real;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (!key.startsWith('$')) return [key, decode(inner)];
      if (!key.startsWith('$$'))
        throw new EffectMatchError('ERR_EM_MANIFEST_INVALID', 'a tag is not JSON');
      return [key.slice(1), decode(inner)];
    }),
  );
}

export { encodeData };
