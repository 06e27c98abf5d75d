import type { ColumnType } from './relation.ts';

const LITERAL = "(?:B?'(?:[^']|'')*'|[-+]?\\d+(?:\\.\\d+)?|true|false|ARRAY\\[\\])";
/** A type as the catalogue prints it: names or key words, modifiers, brackets. */
const TYPE =
  '(?:::(?:"(?:[^"]|"")+"|[a-z_][\\w$]*(?![\\w$])|\\.| |\\(\\d+(?:,-?\\d+)?\\)|\\[\\])+)';
const PLAIN = new RegExp(`^(?:${LITERAL}${TYPE}*|\\(${LITERAL}${TYPE}*\\)${TYPE}*)$`);

const TIMES = /^(?:date|time|timetz|timestamp|timestamptz)$/;

/**
 * Whether a DEFAULT means the same for every row: a literal, with casts or without. Old ways of
 * writing the current time, such as `('now'::text)::date`, look like one and are none.
 */
export function isLiteral(text: string, type: ColumnType): boolean {
  if (!PLAIN.test(text)) return false;
  return !(TIMES.test(type.base) && /now|today|tomorrow|yesterday/i.test(text));
}

const EMPTY = new RegExp(`^\\(?NULL${TYPE}*\\)?${TYPE}*$`, 'i');

/** Whether a DEFAULT is NULL, with casts or without. */
export function isNull(text: string): boolean {
  return EMPTY.test(text);
}
