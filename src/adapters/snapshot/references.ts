import type { Target } from '../../protocol/registration.ts';
import { encodeData, isObject, type Row, type Value } from '../../protocol/value.ts';
import { demandKnown, isColumn, OTHER_FIELDS, readPointer, refused } from './declared.ts';
import type { ReferencesOption } from './options.ts';
import { isBeneath, type Tokens } from './pointer.ts';
import { ABSENT } from './values.ts';

/** The column of elements that are compared whole. */
const ELEMENT = 'value';

/**
 * A list whose elements are rows of a target of their own, without a key: they count, and have no
 * order.
 */
export interface ReferenceList {
  readonly name: string;
  /** Where it is, in the record or in the document. */
  readonly tokens: Tokens;
  /** The columns that say to which record an element belongs, in the order of the record's key. */
  readonly owner: readonly string[];
  /** Fields of elements that get columns of their own; null where elements are compared whole. */
  readonly fields: readonly string[] | null;
  readonly generated: readonly string[];
  readonly target: Target;
}

/**
 * Checks the lists that an application declares as references, in a collection's records or outside
 * of all.
 */
export function admitLists(
  options: { readonly [path: string]: ReferencesOption },
  collection: { readonly name: string; readonly key: readonly string[] } | undefined,
): readonly ReferenceList[] {
  const lists = Object.entries(options).map(([path, option]) =>
    admitList(path, option, collection),
  );
  for (const [index, one] of lists.entries()) {
    const clash = lists
      .slice(index + 1)
      .find((other) => isBeneath(one.tokens, other.tokens) || isBeneath(other.tokens, one.tokens));
    if (clash !== undefined)
      throw refused(`references: "${one.name}" and "${clash.name}" overlap; declare one of them`);
  }
  return lists;
}

function admitList(
  path: string,
  { fields, generated = [] }: ReferencesOption,
  collection: { readonly name: string; readonly key: readonly string[] } | undefined,
): ReferenceList {
  const name = `${collection?.name ?? ''}${path}`;
  const where = `references "${name}"`;
  const tokens = readPointer(path, where);
  if (tokens.length === 0 || tokens.includes('*'))
    throw refused(`${where}: name one list, without "*"`);
  const owner = (collection?.key ?? []).map((column) => `${collection?.name}.${column}`);
  const own = fields === undefined ? [ELEMENT] : [...new Set(fields)];
  const strange = [...owner, ...own].find(
    (column, index, all) => !isColumn(column) || all.indexOf(column) !== index,
  );
  if (strange !== undefined)
    throw refused(`${where}: "${strange}" cannot be a column; leave it to "${OTHER_FIELDS}"`);
  demandKnown(generated, own, `${where}, generated`);
  const columns = [...owner, ...own, ...(fields === undefined ? [] : [OTHER_FIELDS])];
  const target: Target = { name, columns, key: [], volatile: [] };
  return {
    name,
    tokens,
    owner,
    fields: fields === undefined ? null : own,
    generated: [...new Set(generated)],
    target,
  };
}

/**
 * The elements of a list as rows; undefined for what is no such list, which is then compared as a
 * whole value where it is. `key` is that of the record it belongs to.
 */
export function readElements(
  list: ReferenceList,
  found: Value | undefined,
  key: readonly Value[],
): readonly Row[] | undefined {
  if (!Array.isArray(found)) return undefined;
  const elements: readonly Value[] = found;
  if (list.fields !== null && !elements.every(isObject)) return undefined;
  const owner = list.owner.map((column, index): [string, Value] => [column, key[index] ?? null]);
  return elements.map((element) => ({
    ...Object.fromEntries(owner),
    ...readElement(list, element),
  }));
}

function readElement({ fields }: ReferenceList, element: Value): Row {
  if (fields === null || !isObject(element)) return { [ELEMENT]: encodeData(element) };
  const declared = fields.map((name): [string, Value] => [
    name,
    Object.hasOwn(element, name) ? encodeData(element[name] ?? null) : ABSENT,
  ]);
  const others = Object.entries(element).filter(([name]) => !fields.includes(name));
  return {
    ...Object.fromEntries(declared),
    [OTHER_FIELDS]: encodeData(Object.fromEntries(others)),
  };
}
