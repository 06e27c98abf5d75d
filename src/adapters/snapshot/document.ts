import { unavailable } from '../../backend/setup.ts';
import { errorsOf } from '../../errors.ts';
import { canonical } from '../../protocol/canon.ts';
import type { Value } from '../../protocol/value.ts';

/** Records nest values in more objects, and canonical texts allow at most 64 levels. */
const MAX_DEPTH = 48;
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** A state, and its canonical text. */
export interface Document {
  readonly text: string;
  readonly state: Value;
}

/**
 * The canonical text of a state. Anything but plain JSON is refused, so that equal texts mean equal
 * states and nothing (a getter, a class, the order of keys) is hidden behind the data.
 */
export function writeDocument(state: unknown): string {
  const text = canonical(state);
  if (text.length > MAX_CHARACTERS)
    throw unusable(`it is longer than ${MAX_CHARACTERS} characters`);
  if (isDeeper(state, MAX_DEPTH)) throw unusable(`it is nested deeper than ${MAX_DEPTH} levels`);
  return text;
}

/**
 * Parses a text; undefined unless it is the canonical text of a state. Even our own stored texts
 * are checked, because JSON.parse in V8 13.6 reads the key "\"" as "\\" if it has seen the latter
 * before.
 */
export function checkText(text: string): Document | undefined {
  try {
    const state: Value = JSON.parse(text);
    const isCanonical = isWritten(state, text) || writeDocument(state) === text;
    return isCanonical ? { text, state } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether the engine's own writer, which is much faster, shows that a text is canonical. It escapes
 * lone surrogates, which have no canonical text.
 */
function isWritten(state: Value, text: string): boolean {
  if (text.length > MAX_CHARACTERS || text.includes('\\ud')) return false;
  return isInOrder(state, MAX_DEPTH) && JSON.stringify(state) === text;
}

/** Whether all keys are in canonical order, and nothing is nested too deep. */
function isInOrder(value: Value, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  let last = '';
  for (const [key, inner] of Object.entries(value)) {
    const isNext = Array.isArray(value) || (key >= last && key !== '__proto__');
    if (!isNext || !isInOrder(inner, levels - 1)) return false;
    last = key;
  }
  return true;
}

/** Parses a stored text. */
export function readDocument(text: string): Document {
  const document = checkText(text);
  if (document !== undefined) return document;
  throw unavailable('the stored state cannot be read back as it was written; restart the process');
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

const unusable = errorsOf('ERR_EM_CANON_UNSUPPORTED', 'the state cannot be kept: ');
