import { invalid } from '../../backend/manifest-schema.ts';
import { encodeData, isObject, type Value } from '../../protocol/value.ts';
import { OTHER_FIELDS } from './declared.ts';
import { type Collection, type Layout, ORDER_SUFFIX } from './layout.ts';
import { isBeneath, parsePointer, stepInto, type Tokens } from './pointer.ts';
import type { ReferenceList } from './references.ts';
import { decodeData, isAbsent, sortLists } from './values.ts';

/**
 * A list that is declared as references, with the collection it is in and what has no order inside
 * its elements.
 */
export interface FoundList {
  readonly list: ReferenceList;
  readonly collection: Collection | undefined;
  readonly unordered: readonly Tokens[];
}

/** The list whose elements are this target. */
export function findList(layout: Layout, target: string): FoundList | undefined {
  for (const place of [undefined, ...layout.collections]) {
    const { lists, unordered } = place ?? layout;
    const list = lists.find(({ name }) => name === target);
    if (list === undefined) continue;
    // The place of an element in its list has no meaning, so only patterns for all places apply.
    const inside = stepInto(list.tokens.reduce<readonly Tokens[]>(stepInto, unordered), '');
    return { list, collection: place, unordered: inside };
  }
  return undefined;
}

/** A value of one column of an element as the observer would report it. */
export function normaliseElementField(
  list: ReferenceList,
  column: string,
  value: Value,
  { where, unordered }: { readonly where: string; readonly unordered: readonly Tokens[] },
): Value {
  if (list.fields?.includes(column) === true && isAbsent(value)) return value;
  const isWhole = list.fields === null || column === OTHER_FIELDS;
  const normal = normaliseData(value, isWhole ? unordered : stepInto(unordered, column), where);
  if (column === OTHER_FIELDS && !isObject(normal))
    throw invalid(where, 'it stands for an object of further fields');
  return normal;
}

/** A value of one column of a collection as the observer would report it. */
export function normaliseField(
  collection: Collection,
  column: string,
  value: Value,
  where: string,
): Value {
  const isKey = collection.key.includes(column);
  if (!isKey && column !== OTHER_FIELDS && isAbsent(value)) return value;
  const patterns =
    column === OTHER_FIELDS ? collection.unordered : stepInto(collection.unordered, column);
  const normal = normaliseData(value, patterns, where);
  if (column === OTHER_FIELDS && !isObject(normal))
    throw invalid(where, 'it stands for an object of further fields');
  if (!isKey) return normal;
  if (collection.isMap && typeof normal !== 'string')
    throw invalid(where, 'keys of an object are text');
  if (normal === null || typeof normal === 'object')
    throw invalid(where, 'a key is text, a number, true or false');
  return normal;
}

/** The value at a path outside the collections, as the observer would report it. */
export function normaliseRest(layout: Layout, path: string, value: Value, where: string): Value {
  const tokens = readPath(layout, path, where);
  if (tokens === undefined) return normaliseData(value, [], where);
  const patterns = tokens.reduce<readonly Tokens[]>(stepInto, layout.unordered);
  return normaliseData(value, patterns, where);
}

/** The tokens of a path outside the collections; undefined where it names the order of a list. */
export function readPath(layout: Layout, path: Value, where: string): Tokens | undefined {
  if (typeof path !== 'string')
    throw invalid(where, 'path is a JSON pointer, such as "/settings/language"');
  if (layout.collections.some((list) => list.keepsOrder && path === `${list.path}${ORDER_SUFFIX}`))
    return undefined;
  const tokens = parsePointer(path);
  if (tokens === undefined)
    throw invalid(where, `"${path}" is not a JSON pointer, such as "/settings/language"`);
  const list = layout.collections.find(
    (collection) =>
      !collection.isMap &&
      isBeneath(collection.tokens, tokens) &&
      isPlace(tokens[collection.tokens.length]),
  );
  if (list !== undefined)
    throw invalid(where, `"${path}" is inside "${list.name}"; name the record by its key there`);
  return tokens;
}

/** Lists are compared by key or as whole values, never by place. */
function isPlace(token: string | undefined): boolean {
  return token !== undefined && /^\d+$/.test(token);
}

function normaliseData(value: Value, unordered: readonly Tokens[], where: string): Value {
  const data = decodeData(value);
  if (data === undefined)
    throw invalid(where, 'JSON has no form for this value; state what the document holds');
  return encodeData(sortLists(data, unordered));
}
