import { list, type RelationShape } from '../../backend/manifest-schema.ts';
import { readValuesOption } from '../../backend/setup.ts';
import { canonical } from '../../protocol/canon.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import {
  type CollectionOption,
  type ReferencesOption,
  refused,
  type SnapshotOptions,
} from './options.ts';
import { findOverlap, isBeneath, parsePointer, stepInto, type Tokens } from './pointer.ts';
import { findValue } from './values.ts';

/**
 * The target of everything outside the collections. `path` is a JSON pointer, and `value` is what
 * it points to.
 */
export const REST_TARGET = '/';
/**
 * The path under which the order of a list's records is reported. In a JSON pointer `~` is always
 * followed by 0 or 1, so no field has this path.
 */
export const orderPath = ({ path }: Pick<Collection, 'path'>) => `${path}~order`;
/** The column for all undeclared fields of a record, as one object. */
export const OTHER_FIELDS = '*';
/** The column of elements that are compared whole. */
export const ELEMENT = 'value';

/** A column, and what values it can have. */
export interface SnapshotColumn {
  readonly name: string;
  /** An object key is text, and a list key is any scalar. `whole` values must be stated. */
  readonly kind: 'object-key' | 'list-key' | 'field' | 'others' | 'whole';
  /** Lists inside a value whose order does not matter. */
  readonly unordered: readonly Tokens[];
  /** Whether tools generate its new values. */
  readonly generated: boolean;
}

/** The records of a collection, or the elements of lists. The declaration has been checked. */
interface SnapshotRelation extends RelationShape<SnapshotColumn> {
  /** Its location in the document, or in the record that an element belongs to. */
  readonly tokens: Tokens;
  readonly volatile: readonly string[];
  /** The declared fields without the key; null if elements are compared whole. */
  readonly fields: readonly string[] | null;
}

/** One registered collection. */
export interface Collection extends SnapshotRelation {
  readonly path: string;
  /**
   * Whether records are keyed by the keys of an object. Otherwise they are a list and contain their
   * key.
   */
  readonly isMap: boolean;
  readonly keepsOrder: boolean;
  readonly fields: readonly string[];
  readonly unordered: readonly Tokens[];
  /** Lists inside a record whose elements are compared one by one. */
  readonly lists: readonly ReferenceList[];
}

/** A list whose elements are rows without a key. Their number matters, but not their order. */
export interface ReferenceList extends SnapshotRelation {
  /** The columns that name the record of an element, in the order of the record's key. */
  readonly owner: readonly string[];
}

/** How a document is split into parts for the comparison. */
export interface DocumentParts {
  readonly collections: readonly Collection[];
  /** Lists outside the collections whose order does not matter. */
  readonly unordered: readonly Tokens[];
  /** Lists outside the collections whose elements are compared one by one. */
  readonly lists: readonly ReferenceList[];
}

/** The checked layout of an application's state. */
export interface DocumentLayout extends DocumentParts {
  /** Every collection and every list of elements. */
  readonly relations: readonly SnapshotRelation[];
  /** How a document is split for reading. Lists of elements stay whole. */
  readonly whole: DocumentParts;
  readonly registration: Registration;
  /** Everything that affects the comparison, as text. It is part of the adapter's identity. */
  readonly text: string;
}

/** Checks the declared layout. Refuses parts that cannot be compared. */
export function admitLayout(options: SnapshotOptions): DocumentLayout {
  const values = readValuesOption(options.values, refused);
  const parts = admitParts(options);
  const inner = parts.collections.flatMap(({ lists }) => lists);
  const relations = [...parts.collections, ...parts.lists, ...inner];
  const targets = [...relations.map(targetOf), REST];
  const twice = targets.find(
    ({ name }, index) => targets.findIndex((other) => other.name === name) !== index,
  );
  if (twice !== undefined)
    throw refused(`two things would be called "${twice.name}"; rename the collection`);
  return {
    ...parts,
    relations,
    whole: admitParts(withWholeLists(options)),
    registration: { profile: 'net-state', values, targets },
    text: canonical(parts),
  };
}

const REST: Target = { name: REST_TARGET, columns: ['path', 'value'], key: ['path'], volatile: [] };

function targetOf({ target, columns, key, volatile }: SnapshotRelation): Target {
  return { name: target, columns: columns.map(({ name }) => name), key, volatile };
}

/** The same options, but with every list of elements as an unordered list in its place. */
function withWholeLists(options: SnapshotOptions): SnapshotOptions {
  const unordered = (one: Pick<CollectionOption, 'unordered' | 'references'>) => ({
    unordered: [...(one.unordered ?? []), ...Object.keys(one.references ?? {})],
    references: {},
  });
  const collections = Object.entries(options.collections).map(([name, collection]) => [
    name,
    { ...collection, ...unordered(collection) },
  ]);
  return { ...options, ...unordered(options), collections: Object.fromEntries(collections) };
}

function admitParts(options: SnapshotOptions): DocumentParts {
  const collections = Object.entries(options.collections).map(([name, option]) =>
    admitCollection(name, option, options.initial),
  );
  const unordered = (options.unordered ?? []).map((path) => readPointer(path, 'unordered'));
  for (const pattern of unordered) {
    const inside = collections.find(({ tokens }) => isBeneath(tokens, pattern));
    if (inside !== undefined)
      throw refused(
        `unordered: name a list inside "${inside.target}" in its own options, relative to a record`,
      );
  }
  const lists = admitLists(options.references, { target: '', columns: [], key: [], unordered });
  const overlap = findOverlap([...collections, ...lists]);
  if (overlap !== undefined)
    throw refused(`"${overlap[0].target}" and "${overlap[1].target}" overlap; give disjoint paths`);
  return { collections, unordered, lists };
}

function admitCollection(name: string, option: CollectionOption, initial: unknown): Collection {
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
  if (isMap && option.fields?.includes(key[0] ?? '') === true)
    throw refused(
      `${where}: the object's keys and a field would both be called "${key[0]}"; rename key`,
    );
  const declared = option.fields ?? fieldsOf(initial, tokens, where);
  const fields = [...new Set(declared)].filter((field) => !key.includes(field));
  demandColumns([...key, ...fields], where);
  const volatile = [...new Set(option.volatile ?? [])];
  const generated = option.generated ?? (key.length === 1 ? key : []);
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
  const kind = isMap ? 'object-key' : 'list-key';
  const column = columnMaker(unordered, generated);
  const columns = [
    ...key.map((field) => column(field, kind)),
    ...fields.map((field) => column(field, 'field')),
    column(OTHER_FIELDS, 'others'),
  ];
  const keepsOrder = !isMap && (option.order ?? 'kept') === 'kept';
  const lists = admitLists(option.references, { target: name, columns, key, unordered });
  const { path } = option;
  return {
    target: name,
    path,
    tokens,
    key,
    fields,
    columns,
    volatile,
    unordered,
    isMap,
    keepsOrder,
    lists,
  };
}

/** The fields of the records in the initial state, used if none are declared. */
function fieldsOf(initial: unknown, tokens: Tokens, where: string): readonly string[] {
  if (initial === undefined)
    throw refused(`${where}: declare fields, or give the initial state to take them from`);
  const found = findValue(initial as Value, tokens);
  const records = typeof found === 'object' && found !== null ? Object.values(found) : [];
  const names = records.filter(isObject).flatMap((record) => Object.keys(record));
  return [...new Set(names)].filter(isColumn).sort();
}

function admitLists(
  options: { readonly [path: string]: ReferencesOption } | undefined,
  place: RelationShape<SnapshotColumn> & Pick<DocumentParts, 'unordered'>,
): readonly ReferenceList[] {
  const lists = Object.entries(options ?? {}).map(([path, option]) =>
    admitList(path, option, place),
  );
  const overlap = findOverlap(lists);
  if (overlap === undefined) return lists;
  const names = list(overlap.map(({ target }) => target));
  throw refused(`references: ${names} overlap; declare one of them`);
}

function admitList(
  path: string,
  { fields, generated = [] }: ReferencesOption,
  place: RelationShape<SnapshotColumn> & Pick<DocumentParts, 'unordered'>,
): ReferenceList {
  const target = `${place.target}${path}`;
  const where = `references "${target}"`;
  const tokens = readPointer(path, where);
  if (tokens.length === 0 || tokens.includes('*'))
    throw refused(`${where}: name one list, without "*"`);
  const keys = place.columns.filter(({ name }) => place.key.includes(name));
  const owner = keys.map(({ name }) => `${place.target}.${name}`);
  const own = fields === undefined ? [ELEMENT] : [...new Set(fields)];
  demandColumns([...owner, ...own], where);
  demandKnown(generated, own, `${where}, generated`);
  // The index of an element has no meaning, so only patterns for every index apply.
  const inside = stepInto(tokens.reduce(stepInto, place.unordered), '');
  const column = columnMaker(inside, generated);
  const columns = [
    ...keys.map((key, index) => ({ ...key, name: owner[index] ?? '', generated: false })),
    ...own.map((name) => column(name, fields === undefined ? 'whole' : 'field')),
    ...(fields === undefined ? [] : [column(OTHER_FIELDS, 'others')]),
  ];
  return { target, tokens, owner, fields: fields ? own : null, columns, key: [], volatile: [] };
}

function columnMaker(unordered: readonly Tokens[], generated: readonly string[]) {
  return (name: string, kind: SnapshotColumn['kind']): SnapshotColumn => ({
    name,
    kind,
    unordered: kind === 'others' || kind === 'whole' ? unordered : stepInto(unordered, name),
    generated: generated.includes(name),
  });
}

/** Whether records and manifests can use the name as a column without confusion. */
function isColumn(name: unknown): boolean {
  if (typeof name !== 'string' || name === '' || name === '__proto__' || name === OTHER_FIELDS)
    return false;
  return name.length <= 256 && !name.startsWith('$') && name.isWellFormed();
}

function demandColumns(names: readonly string[], where: string): void {
  const wrong = names.find((name, index) => !isColumn(name) || names.indexOf(name) !== index);
  if (wrong !== undefined)
    throw refused(
      `${where}: "${wrong}" cannot be declared, or is twice; fields without a column are compared as "${OTHER_FIELDS}"`,
    );
}

function demandKnown(names: readonly string[], known: readonly string[], where: string): void {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw refused(`${where}: "${unknown}" is not possible here; there are ${list(known)}`);
}

function readPointer(path: unknown, where: string): Tokens {
  const tokens = typeof path === 'string' ? parsePointer(path) : undefined;
  if (tokens !== undefined) return tokens;
  throw refused(`${where}: "${String(path)}" is not a JSON pointer, such as "/orders"`);
}
