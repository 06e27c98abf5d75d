import { canonical } from '../../protocol/canon.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import { demandKnown, isColumn, OTHER_FIELDS, readPointer, refused } from './declared.ts';
import type { CollectionOption, SnapshotOptions } from './options.ts';
import { isBeneath, type Tokens } from './pointer.ts';
import { admitLists, type ReferenceList } from './references.ts';

/**
 * The target of everything outside the collections: `path` is a JSON pointer, `value` what it
 * points to.
 */
export const REST_TARGET = '/';
/**
 * Ends the path under which the order of a list's records is reported. No JSON pointer contains a
 * `~` like this.
 */
export const ORDER_SUFFIX = '~order';

/** One registered collection, checked. */
export interface Collection {
  readonly name: string;
  readonly path: string;
  readonly tokens: Tokens;
  /** Records by the keys of an object, instead of a list of records that hold their key. */
  readonly isMap: boolean;
  readonly keepsOrder: boolean;
  readonly key: readonly string[];
  /** The declared fields without the key. */
  readonly fields: readonly string[];
  readonly unordered: readonly Tokens[];
  readonly generated: readonly string[];
  readonly target: Target;
  /** Lists inside a record whose elements are compared one by one. */
  readonly lists: readonly ReferenceList[];
}

/**
 * How a document is read: its collections, and the lists outside them whose order does not matter.
 */
export interface Layout {
  readonly collections: readonly Collection[];
  readonly unordered: readonly Tokens[];
  /** Lists outside the collections whose elements are compared one by one. */
  readonly lists: readonly ReferenceList[];
  /** Where tools put identifiers that they make. */
  readonly generated: readonly { readonly target: string; readonly column: string }[];
  readonly registration: Registration;
  /** Everything that decides how documents compare, as text: part of the adapter's identity. */
  readonly text: string;
}

/**
 * Checks what an application says about its state; the first thing that could not be compared is
 * refused.
 */
export function admitLayout(options: SnapshotOptions): Layout {
  const values = options.values ?? 'plain';
  if (values !== 'plain' && values !== 'digest')
    throw refused(`values "${String(values)}" is neither plain nor digest`);
  const collections = Object.entries(options.collections).map(([name, option]) =>
    admitCollection(name, option, options),
  );
  for (const [index, one] of collections.entries()) {
    const clash = collections.slice(index + 1).find((other) => overlaps(one.tokens, other.tokens));
    if (clash !== undefined)
      throw refused(`collections "${one.name}" and "${clash.name}" overlap; give disjoint paths`);
  }
  const unordered = (options.unordered ?? []).map((path) => readPointer(path, 'unordered'));
  for (const pattern of unordered) {
    const inside = collections.find(({ tokens }) => isBeneath(tokens, pattern));
    if (inside === undefined) continue;
    throw refused(`unordered: a list of "${inside.name}" is named there, relative to its records`);
  }
  const lists = admitLists(options.references ?? {}, undefined);
  for (const { name, tokens } of lists) {
    const inside = collections.find((collection) => overlaps(collection.tokens, tokens));
    if (inside !== undefined)
      throw refused(`references: "${name}" and the collection "${inside.name}" overlap`);
  }
  const rest: Target = {
    name: REST_TARGET,
    columns: ['path', 'value'],
    key: ['path'],
    volatile: [],
  };
  const all = [...lists, ...collections.flatMap((collection) => collection.lists)];
  const targets = [
    ...collections.map(({ target }) => target),
    ...all.map(({ target }) => target),
    rest,
  ];
  const twice = targets.find(
    ({ name }, index) => targets.findIndex((other) => other.name === name) !== index,
  );
  if (twice !== undefined)
    throw refused(`two things would be called "${twice.name}"; rename the collection`);
  const described = collections.map(({ tokens: _, target: __, ...facts }) => ({ ...facts }));
  return {
    collections,
    unordered,
    lists,
    generated: [...collections, ...all].flatMap(({ name, generated }) =>
      generated.map((column) => ({ target: name, column })),
    ),
    registration: { profile: 'net-state', values, targets },
    text: canonical({ collections: described, unordered, lists }),
  };
}

/**
 * The same documents as they are read: lists that are declared as references whole and in their
 * place, without order.
 */
export function withWholeLists(layout: Layout): Layout {
  const all = [...layout.lists, ...layout.collections.flatMap((collection) => collection.lists)];
  if (all.length === 0) return layout;
  const unorder = (one: Pick<Layout, 'unordered' | 'lists'>) => ({
    unordered: [...one.unordered, ...one.lists.map(({ tokens }) => tokens)],
    lists: [],
  });
  const collections = layout.collections.map((collection) => ({
    ...collection,
    ...unorder(collection),
  }));
  const targets = layout.registration.targets.filter(({ name }) =>
    all.every((list) => list.name !== name),
  );
  return {
    ...layout,
    ...unorder(layout),
    collections,
    registration: { ...layout.registration, targets },
  };
}

function overlaps(one: Tokens, other: Tokens): boolean {
  return isBeneath(one, other) || isBeneath(other, one);
}

function admitCollection(
  name: string,
  option: CollectionOption,
  { initial }: SnapshotOptions,
): Collection {
  const where = `collection "${name}"`;
  if (name === '' || name.length > 512 || name === REST_TARGET)
    throw refused(`${where}: choose another name`);
  const tokens = readPointer(option.path, where);
  const isMap = option.map ?? false;
  const key = typeof option.key === 'string' ? [option.key] : [...option.key];
  if (key.length === 0 || (isMap && key.length > 1)) {
    throw refused(
      `${where}: key needs ${isMap ? 'one name for the keys of the object' : 'at least one field'}`,
    );
  }
  const declared = option.fields ?? fieldsOf(initial, { tokens, isMap }, where);
  const fields = [...new Set(declared)].filter((field) => !key.includes(field));
  const strange = [...key, ...fields].find((field) => !isColumn(field));
  if (strange !== undefined) {
    throw refused(
      `${where}: "${strange}" cannot be declared; such a field is compared as part of "${OTHER_FIELDS}"`,
    );
  }
  if (new Set(key).size !== key.length) throw refused(`${where}: a field is in the key twice`);
  if (isMap && option.fields?.includes(key[0] ?? '') === true) {
    throw refused(
      `${where}: the object's keys and a field would both be called "${key[0]}"; rename key`,
    );
  }
  const columns = [...key, ...fields, OTHER_FIELDS];
  const volatile = [...new Set(option.volatile ?? [])];
  const generated = [...new Set(option.generated ?? (key.length === 1 ? key : []))];
  demandKnown(volatile, [...fields, OTHER_FIELDS], `${where}, volatile`);
  demandKnown(generated, [...key, ...fields], `${where}, generated`);
  const unordered = (option.unordered ?? []).map((path) =>
    readPointer(path, `${where}, unordered`),
  );
  if (unordered.some((pattern) => pattern.length === 0)) {
    throw refused(
      `${where}: unordered names lists inside a record, such as "/items"; for its own order set order`,
    );
  }
  const keepsOrder = !isMap && (option.order ?? 'kept') === 'kept';
  const target = { name, columns, key, volatile };
  const lists = admitLists(option.references ?? {}, { name, key });
  return {
    name,
    path: option.path,
    tokens,
    isMap,
    keepsOrder,
    key,
    fields,
    unordered,
    generated,
    target,
    lists,
  };
}

/** Where no fields are declared, those that the records of the initial state have. */
function fieldsOf(
  initial: unknown,
  place: { readonly tokens: Tokens; readonly isMap: boolean },
  where: string,
): readonly string[] {
  if (initial === undefined)
    throw refused(`${where}: declare fields, since there is no initial state to take them from`);
  let at: Value | undefined = initial as Value;
  for (const token of place.tokens)
    at = at !== undefined && isObject(at) && Object.hasOwn(at, token) ? at[token] : undefined;
  const records: readonly unknown[] =
    typeof at === 'object' && at !== null ? Object.values(at) : [];
  const found = records.flatMap((record) =>
    isObject(record as Value) ? Object.keys(record as object) : [],
  );
  return [...new Set(found)].filter(isColumn).sort();
}
