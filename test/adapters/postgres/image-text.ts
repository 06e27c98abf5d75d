import type { Image } from '../../../src/adapters/postgres/image.ts';

/** The text that reads back as these columns: what the output function would have written. */
export function formatImage(image: Image): string {
  return `(${image.map(formatField).join(',')})`;
}

function formatField(field: string | null): string {
  if (field === null) return '';
  if (field !== '' && !/[\t-\r "\\(),]/.test(field)) return field;
  return `"${field.replaceAll('\\', '\\\\').replaceAll('"', '""')}"`;
}
