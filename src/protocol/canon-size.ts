import { writeText } from './canon.ts';
import { utf8Length } from './utf8.ts';
import type { Value } from './value.ts';

/** Texts up to this length are written out and measured, which is faster than a loop. */
const WRITTEN_MAX = 1024;

/**
 * The size of a value's canonical text in bytes, without building that text: an agent chooses the
 * values it writes, and a control character takes six bytes.
 */
export function canonicalBytes(value: Value): number {
  if (typeof value === 'string') return textBytes(value);
  if (typeof value !== 'object' || value === null) return String(value).length;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const item of value) bytes += canonicalBytes(item) + 1;
    return value.length === 0 ? bytes : bytes - 1;
  }
  const fields = Object.entries(value);
  for (const [key, inner] of fields) bytes += textBytes(key) + 1 + canonicalBytes(inner) + 1;
  return fields.length === 0 ? bytes : bytes - 1;
}

function textBytes(text: string): number {
  const written = text.length <= WRITTEN_MAX ? writeText(text) : undefined;
  if (written !== undefined) return utf8Length(written);
  let bytes = 2;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) bytes += asciiBytes(unit);
    else if (unit < 0x800) bytes += 2;
    else if (isPair(text, at)) {
      bytes += 4;
      at += 1;
    } else bytes += unit >= 0xd800 && unit <= 0xdfff ? 6 : 3;
  }
  return bytes;
}

/** `\b \t \n \f \r`, the quote and the backslash have short escapes. */
function asciiBytes(unit: number): number {
  if (unit >= 0x20) return unit === 0x22 || unit === 0x5c ? 2 : 1;
  return (unit >= 0x08 && unit <= 0x0a) || unit === 0x0c || unit === 0x0d ? 2 : 6;
}

function isPair(text: string, at: number): boolean {
  const [high, low] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
  return high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff;
}
