import { canonicalBytes } from './canon-size.ts';
import { renderColumn, renderValue } from './render-text.ts';
import { dictionary, integer, optional, plain, text } from './schema.ts';
import type { Value } from './value.ts';

/** The values that the backend assigned to `generated` cells, by label. */
export type GeneratedValues = ReadonlyMap<string, Value>;

/** The record fields that hold generated values. */
export const generatedFields = {
  generated: optional(dictionary(text(1, 128), plain)),
  /** How many values did not fit. */
  generatedOmitted: optional(integer(1)),
};

/** Generated values as records store them. */
export interface StoredGenerated {
  readonly generated?: { readonly [label: string]: Value };
  readonly generatedOmitted?: number;
}

/** How much of a record generated values may take up. */
const MAX_LABELS = 1000;
const MAX_BYTES = 32 * 1024;

/** Keeps as many values as fit, or none if the deployment does not store values. */
export function storableGenerated(
  values: GeneratedValues | undefined,
  stored: 'plain' | 'digest',
): StoredGenerated {
  if (values === undefined || stored === 'digest') return {};
  const kept: [string, Value][] = [];
  let bytes = 0;
  for (const [label, value] of values) {
    // Records refuse this key.
    if (label === '__proto__') continue;
    bytes += canonicalBytes([label, value]);
    if (kept.length === MAX_LABELS || bytes > MAX_BYTES) break;
    kept.push([label, value]);
  }
  const omitted = values.size - kept.length;
  return {
    ...(kept.length > 0 && { generated: Object.fromEntries(kept) }),
    ...(omitted > 0 && { generatedOmitted: omitted }),
  };
}

const MAX_SHOWN = 20;

/** One line per value, sorted by label, and how many are left out. */
export function renderGenerated(stored: StoredGenerated, full = false): string[] {
  const { generated = {}, generatedOmitted = 0 } = stored;
  const entries = Object.entries(generated).sort(([a], [b]) => compareLabels(a, b));
  const shown = full ? entries : entries.slice(0, MAX_SHOWN);
  const rendering = { full, cut: false };
  const lines = shown.map(
    ([label, value]) => `Generated: ${renderColumn(label)} = ${renderValue(value, rendering)}`,
  );
  const more = entries.length - shown.length;
  if (more > 0) lines.push(`Generated: ${more} more, not shown here`);
  if (generatedOmitted > 0) lines.push(`Generated: ${generatedOmitted} more, not recorded`);
  return lines;
}

/** Compares the text before the final number, then the number: 2 comes before 10. */
function compareLabels(a: string, b: string): number {
  const [textA, numberA] = splitLabel(a);
  const [textB, numberB] = splitLabel(b);
  if (textA !== textB) return textA < textB ? -1 : 1;
  return numberA - numberB;
}

function splitLabel(label: string): readonly [string, number] {
  const number = /\d*$/.exec(label)?.[0] ?? '';
  return [label.slice(0, label.length - number.length), Number(number)];
}
