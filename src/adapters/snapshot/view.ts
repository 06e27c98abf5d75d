import { valueText } from '../../protocol/bag.ts';
import { encodeData, isObject, type Row, type Value } from '../../protocol/value.ts';
import {
  type Collection,
  type DocumentParts,
  ELEMENT,
  OTHER_FIELDS,
  type ReferenceList,
} from './layout.ts';
import type { Tokens } from './pointer.ts';
import { ABSENT, findValue, sortLists } from './values.ts';

/** One record in the form that is compared. */
interface RecordView {
  readonly key: Row;
  /** All columns except the key. A declared field that is missing is `ABSENT`. */
  readonly fields: Row;
}

/** The records of one collection by the text of their key, in document order. */
export interface CollectionView {
  readonly records: ReadonlyMap<string, RecordView>;
  /** Whether the records are in a list, so that their order has a meaning. */
  readonly isList: boolean;
}

/** A document split without loss: the records of its collections, and the rest without them. */
export interface DocumentView {
  readonly rest: Value;
  readonly collections: ReadonlyMap<string, CollectionView>;
  /** The elements of lists declared as references, by target. The lists themselves are empty. */
  readonly elements: ReadonlyMap<string, readonly Row[]>;
}

type Elements = Map<string, Row[]>;
type Entry = { readonly [field: string]: Value };
type Mutable = { [key: string]: Value };

/**
 * Splits a document. Parts that are not as registered (a list with other elements, two records with
 * one key, another value at the path) stay in the rest and are compared as a whole.
 */
export function viewDocument(parts: DocumentParts, state: Value): DocumentView {
  let rest = state;
  const elements: Elements = new Map();
  const collections = new Map<string, CollectionView>();
  for (const collection of parts.collections) {
    const taken = takeRecords(findValue(rest, collection.tokens), collection, elements);
    collections.set(collection.target, taken?.view ?? NO_RECORDS);
    if (taken !== undefined) rest = replaceAt(rest, collection.tokens, taken.left);
  }
  rest = takeElements(sortLists(rest, parts.unordered), parts.lists, [], elements);
  return { rest, collections, elements };
}

const NO_RECORDS: CollectionView = { records: new Map(), isList: false };

/** The records of a collection, and what is left in their place. */
function takeRecords(
  found: Value | undefined,
  collection: Collection,
  elements: Elements,
): { readonly view: CollectionView; readonly left: Value } | undefined {
  if (typeof found !== 'object' || found === null || isObject(found) !== collection.isMap)
    return undefined;
  const entries = isObject(found) ? mapEntries(found, collection) : listEntries(found, collection);
  if (entries === undefined) return undefined;
  const records = new Map<string, RecordView>();
  for (const { key, entry } of entries)
    records.set(keyText(collection, key), viewRecord(collection, key, entry, elements));
  if (!isObject(found)) return { view: { records, isList: true }, left: [] };
  const others = Object.entries(found).filter(([, value]) => !isObject(value));
  return { view: { records, isList: false }, left: Object.fromEntries(others) };
}

interface Keyed {
  readonly key: Row;
  readonly entry: Entry;
}

function mapEntries(found: Entry, { key: [name = ''] }: Collection): readonly Keyed[] {
  return Object.entries(found).flatMap(([id, entry]) =>
    isObject(entry) ? [{ key: { [name]: id }, entry }] : [],
  );
}

/** Undefined unless every element is a record with a different key. */
function listEntries(
  found: readonly Value[],
  collection: Collection,
): readonly Keyed[] | undefined {
  const keyed: Keyed[] = [];
  const keys = new Set<string>();
  for (const entry of found) {
    const key = isObject(entry) ? readKey(collection, entry) : undefined;
    if (key === undefined || !isObject(entry)) return undefined;
    keys.add(keyText(collection, key));
    keyed.push({ key, entry });
  }
  return keys.size === found.length ? keyed : undefined;
}

function readKey(collection: Collection, entry: Entry): Row | undefined {
  const key: Mutable = {};
  for (const name of collection.key) {
    const value = Object.hasOwn(entry, name) ? entry[name] : undefined;
    if (value === undefined || value === null || typeof value === 'object') return undefined;
    key[name] = value;
  }
  return key;
}

/** A unique text for a key, used to look up the record. */
export function keyText(collection: Pick<Collection, 'key'>, key: Row): string {
  let text = '';
  for (const name of collection.key) text += valueText(key[name] ?? null);
  return text;
}

function viewRecord(
  collection: Collection,
  key: Row,
  entry: Entry,
  elements: Elements,
): RecordView {
  const owner = collection.key.map((name) => key[name] ?? null);
  const sorted = sortLists(entry, collection.unordered);
  const record = takeElements(sorted, collection.lists, owner, elements) as Entry;
  const isOwn = (name: string) => collection.isMap || !collection.key.includes(name);
  return { key, fields: spreadFields(collection.fields, record, isOwn) };
}

/** Removes the elements of the lists and leaves the lists empty. */
function takeElements(
  value: Value,
  lists: readonly ReferenceList[],
  owner: readonly Value[],
  elements: Elements,
): Value {
  let rest = value;
  for (const list of lists) {
    const found = findValue(rest, list.tokens);
    if (!Array.isArray(found) || (list.fields !== null && !found.every(isObject))) continue;
    const known = elements.get(list.target) ?? [];
    elements.set(list.target, known);
    const of = Object.fromEntries(
      list.owner.map((column, index) => [column, owner[index] ?? null]),
    );
    for (const element of found) known.push({ ...of, ...viewElement(list, element) });
    rest = replaceAt(rest, list.tokens, []);
  }
  return rest;
}

function viewElement({ fields }: ReferenceList, element: Value): Row {
  if (fields === null || !isObject(element)) return { [ELEMENT]: encodeData(element) };
  return spreadFields(fields, element, () => true);
}

/** Puts declared fields in their columns, and all others in one column. */
function spreadFields(
  declared: readonly string[],
  entry: Entry,
  isOwn: (name: string) => boolean,
): Row {
  const fields: Mutable = {};
  const others: Mutable = {};
  for (const name of declared) fields[name] = ABSENT;
  for (const [name, value] of Object.entries(entry)) {
    if (!isOwn(name)) continue;
    if (Object.hasOwn(fields, name)) fields[name] = encodeData(value);
    else others[name] = value;
  }
  fields[OTHER_FIELDS] = encodeData(others);
  return fields;
}

/** Replaces the value at an existing path. Copies the objects on the way. */
function replaceAt(value: Value, [token, ...deeper]: Tokens, inner: Value): Value {
  if (token === undefined) return inner;
  const parent = value as Entry;
  return { ...parent, [token]: replaceAt(parent[token] ?? null, deeper, inner) };
}
