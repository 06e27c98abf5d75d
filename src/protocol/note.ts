import { EffectMatchError } from '../errors.ts';
import { type RenderOptions, renderValue, showText } from './render-text.ts';
import { closed, copyOnce, list, optional, plain, type Schema, text } from './schema.ts';
import { isObject, type Value } from './value.ts';

/**
 * The unsigned part of a proposal: warnings from the runtime and statements from the agent. It
 * affects no decision.
 */
export interface Note {
  /** What would currently keep an execution from committing. */
  readonly warnings?: readonly string[] | undefined;
  /** Who asks, according to the agent. */
  readonly by?: string | undefined;
  /** Why, according to the agent. */
  readonly reason?: string | undefined;
  /** The action that the license is bound to, as the adapter describes it. */
  readonly action?: Value | undefined;
}

/** Length limits for the agent's texts. */
export const MAX_BY = 256;
export const MAX_REASON = 4000;

const noteSchema: Schema<Note> = closed({
  warnings: optional(list(text(1, 4000), 1, 64)),
  by: optional(text(1, MAX_BY)),
  reason: optional(text(1, MAX_REASON)),
  action: optional(plain),
});

/** Checks the form of a note. Its content stays unverified. */
export function parseNote(input: unknown): Note {
  const found = copyOnce(noteSchema, input, Number.POSITIVE_INFINITY);
  if ('copy' in found) return found.copy;
  const where = ['note', ...found.path].join('.');
  throw new EffectMatchError('ERR_EM_RECORD_INVALID', `proposal at ${where}: ${found.why}`);
}

/** A note with the parts that are present, or undefined if there are none. */
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

const PROGRAM = 'Said by the program that proposed it; the signature does not cover it:';
const NOT_SIGNED = 'Unverified text from the agent; the signature does not cover it:';
const ONLY_ACTION = 'Unverified text from the agent; of it, the license binds only the action:';

/** How many lines of each part are shown, so that no part can push another off the screen. */
const LINES_MAX = { warnings: 10, action: 20, by: 2, reason: 10 } as const;
const LINE_MAX = 400;

/**
 * The note as text, shown after the signed text. Every line of its content begins with a bar, so
 * that none can pass for a line of the approval. Control characters are escaped. Empty if there is
 * nothing to show.
 */
export function renderNote(note: Note = {}, { full = false }: RenderOptions = {}): string {
  const { warnings = [], by, reason, action } = note;
  const cut = (lines: readonly string[], max: number) => (full ? lines : cutLines(lines, max));
  const warned = warnings.map((warning) => `Warning: ${showText(warning)}`);
  const said = [
    ...(action === undefined ? [] : cut(actionLines(action), LINES_MAX.action)),
    ...(by === undefined ? [] : cut(labelled('asked by', by), LINES_MAX.by)),
    ...(reason === undefined ? [] : cut(labelled('reason', reason), LINES_MAX.reason)),
  ];
  return [
    ...barred(PROGRAM, cut(warned, LINES_MAX.warnings)),
    ...barred(action === undefined ? NOT_SIGNED : ONLY_ACTION, said),
  ].join('\n');
}

/** Whether {@link renderNote} leaves anything out unless `full` is set. */
export function isNoteShortened(note: Note | undefined): boolean {
  return renderNote(note) !== renderNote(note, { full: true });
}

function barred(heading: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [heading, ...lines.map((line) => `  | ${line}`)];
}

function cutLines(lines: readonly string[], max: number): readonly string[] {
  const shown = lines.slice(0, max).map(cutLine);
  const left = lines.length - shown.length;
  return left === 0 ? shown : [...shown, `<${left} more lines, not shown>`];
}

/** The label and the first line, with the other lines indented below. */
function labelled(label: string, content: string): readonly string[] {
  const [first = '', ...rest] = content.trimEnd().split('\n');
  return [`${showText(label)}: ${showText(first)}`, ...rest.map((line) => `  ${showText(line)}`)];
}

/** SQL and other text as written, everything else as values. */
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
