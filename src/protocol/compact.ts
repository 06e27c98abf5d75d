import { sortKeys } from './canon.ts';

const { parse, stringify } = JSON;

/** An object whose fields are set after it was made. */
export type OpenObject = { [key: string]: unknown };

const SHAPES_KEPT = 1000;
const shapes = new Map<string, OpenObject>();

/**
 * An object with these keys in canonical order, all of them still 0. An engine reserves room in a
 * new object for fields to come. The copy of a known shape has none, which halves the memory of a
 * million rows.
 */
export function compactObject(keys: readonly string[]): OpenObject {
  const sorted = sortKeys([...keys]);
  const name = stringify(sorted);
  let shape = shapes.get(name);
  if (shape === undefined) {
    shape = parse(`{${sorted.map((key) => `${stringify(key)}:0`).join(',')}}`) as OpenObject;
    if (shapes.size >= SHAPES_KEPT) shapes.clear();
    shapes.set(name, shape);
  }
  return { ...shape };
}
