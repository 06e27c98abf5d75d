import { EffectMatchError } from '../errors.ts';
import { type RenderOptions, renderValue, showText } from './render-text.ts';
import { closed, list, optional, plain, readOnce, type Schema, text } from './schema.ts';
import { isObject, type Value } from './value.ts';

/**
 * What comes with a proposal and is not signed: warnings of the runtime, and what the agent says.
 * None of it decides anything.
 */
export interface Note {
  /** What would keep an execution from committing as things are now. */
  readonly warnings?: readonly string[] | undefined;
  /** Who asks, as the agent states it. */
  readonly by?: string | undefined;
  /** Why, as the agent states it. */
  readonly reason?: string | undefined;
  /** The action that the license is bound to, as the adapter describes it. */
  readonly action?: Value | undefined;
}

/** How long the texts of an agent may be. */
export const MAX_BY = 256;
export const MAX_REASON = 4000;

const noteSchema: Schema<Note> = closed({
  warnings: optional(list(text(1, 4000), 1, 64)),
  by: optional(text(1, MAX_BY)),
  reason: optional(text(1, MAX_REASON)),
  action: optional(plain),
});

/** Checks a note; what it says stays unverified. */
export function parseNote(input: unknown): Note {
  const found = readOnce(noteSchema, input, Number.POSITIVE_INFINITY);
  if ('copy' in found) return found.copy;
  const where = ['note', ...found.path].join('.');
  throw new EffectMatchError('ERR_EM_RECORD_INVALID', `proposal at ${where}: ${found.why}`);
}

/** A note with the parts that there are; undefined if there is none. */
export function noteOf(parts: Note): Note | undefined {
  const { warnings = [], by, reason, action } = parts;
  const note = {
    ...(warnings.length > 0 && { warnings }),
    ...(by !== undefined && { by }),
    ...(reason !== undefined && { reason }),
    ...(action !== undefined && { action }),
  };
  return Object.keys(note).length === 0 ? undefined : note;
}

const NOT_SIGNED = 'Unverified text from the agent; the signature does not cover it:';
const ONLY_ACTION = 'Unverified text from the agent; of it, the license binds only the action:';

const LINES_MAX = 20;
const LINE_MAX = 400;

/**
 * The note as text, to be shown after what is signed. Every line of the agent begins with a bar, so
 * that none can pass for a line of the approval, and control characters are spelt out. Empty if
 * there is nothing to show.
 */
export function renderNote(note: Note = {}, { full = false }: RenderOptions = {}): string {
  const { warnings = [], by, reason, action } = note;
  const said = [
    ...(by === undefined ? [] : labelled('asked by', by)),
    ...(reason === undefined ? [] : labelled('reason', reason)),
    ...(action === undefined ? [] : actionLines(action)),
  ].map((line) => (full ? line : cutLine(line)));
  const shown = full ? said : said.slice(0, LINES_MAX);
  const left = said.length - shown.length;
  if (left > 0) shown.push(`<${left} more lines, not shown>`);
  return [
    ...warnings.map((warning) => `Warning: ${showText(warning)}`),
    ...(shown.length === 0 ? [] : [action === undefined ? NOT_SIGNED : ONLY_ACTION]),
    ...shown.map((line) => `  | ${line}`),
  ].join('\n');
}

/** One line, and the other lines of the text indented below it. */
function labelled(label: string, content: string): readonly string[] {
  const [first = '', ...rest] = content.trimEnd().split('\n');
  return [`${showText(label)}: ${showText(first)}`, ...rest.map((line) => `  ${showText(line)}`)];
}

/** SQL as it is written, everything else as values. */
function actionLines(action: Value): readonly string[] {
  if (!isObject(action)) return labelled('action', valueLine(action));
  return Object.entries(action).flatMap(([name, value]) => {
    if (Array.isArray(value) && value.some(isObject)) return value.flatMap(actionLines);
    if (typeof value === 'string') return labelled(name, value);
    const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
    return isEmpty ? [] : labelled(name, valueLine(value));
  });
}

function valueLine(value: Value): string {
  return renderValue(value, { full: true, cut: false });
}

function cutLine(line: string): string {
  const characters = Array.from(line);
  if (characters.length <= LINE_MAX) return line;
  const left = characters.length - LINE_MAX;
  return `${characters.slice(0, LINE_MAX).join('')} <${left} more characters>`;
}
