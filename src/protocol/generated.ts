import { canonicalBytes } from './canon-size.ts';
import { renderColumn, renderValue } from './render-text.ts';
import { dictionary, integer, optional, plain, text } from './schema.ts';
import type { Value } from './value.ts';

/** What the backend assigned where the approval says `generated`, by label. */
export type GeneratedValues = ReadonlyMap<string, Value>;

/** The fields in which records keep them. */
export const generatedFields = {
  generated: optional(dictionary(text(1, 128), plain)),
  /** How many did not fit. */
  generatedOmitted: optional(integer(1)),
};

/** Generated values in the form in which records keep them. */
export interface StoredGenerated {
  readonly generated?: { readonly [label: string]: Value };
  readonly generatedOmitted?: number;
}

/** What they may take of a record. */
const MAX_LABELS = 1000;
const MAX_BYTES = 32 * 1024;

/** As many as fit; none where the deployment does not store values. */
export function storableGenerated(
  values: GeneratedValues | undefined,
  stored: 'plain' | 'digest',
): StoredGenerated {
  if (values === undefined || stored === 'digest') return {};
  const kept: [string, Value][] = [];
  let bytes = 0;
  for (const [label, value] of values) {
    // Records have no such key.
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

/** One line for each value, and one for those that are not shown. */
export function renderGenerated(stored: StoredGenerated): string[] {
  const { generated = {}, generatedOmitted = 0 } = stored;
  const entries = Object.entries(generated);
  const shown = entries.slice(0, MAX_SHOWN);
  const rendering = { full: false, cut: false };
  const lines = shown.map(
    ([label, value]) => `Generated: ${renderColumn(label)} = ${renderValue(value, rendering)}`,
  );
  const more = entries.length - shown.length + generatedOmitted;
  if (more > 0) lines.push(`Generated: ${more} more values`);
  return lines;
}
