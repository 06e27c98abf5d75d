import { valueText } from '../../protocol/bag.ts';
import { encodeData, isObject, type Row, type Value } from '../../protocol/value.ts';
import { OTHER_FIELDS } from './declared.ts';
import type { Collection, Layout } from './layout.ts';
import type { Tokens } from './pointer.ts';
import { type ReferenceList, readElements } from './references.ts';
import { ABSENT, sortLists } from './values.ts';

/** One record as it is compared. */
export interface RecordView {
  readonly key: Row;
  /** Every column beside the key; a declared field that the record lacks is `ABSENT`. */
  readonly fields: Row;
}

/** The records of one collection by the text of their key, in the order of the document. */
export interface CollectionView {
  readonly records: ReadonlyMap<string, RecordView>;
  /**
   * Whether there is a list of records, whose order means something; an object's keys have none.
   */
  readonly isList: boolean;
}

/**
 * A document taken apart without loss: the records of its collections, and the rest with empty
 * places for them.
 */
export interface View {
  readonly rest: Value;
  readonly collections: ReadonlyMap<string, CollectionView>;
  /**
   * The elements of lists that are declared as references, by target; the lists themselves are
   * empty.
   */
  readonly elements: ReadonlyMap<string, readonly Row[]>;
}

type Elements = Map<string, Row[]>;
type Mutable = { [key: string]: Value };

/**
 * Reads a document as the layout says. What does not look as registered (a list with a stranger in
 * it, two records with one key, something else at the path) stays part of the rest, so that it is
 * compared as a whole.
 */
export function viewDocument(layout: Layout, text: string): View {
  return takeApart(layout, JSON.parse(text));
}

/** The same of a state that was read already, when it is first asked for. */
export function viewLater(layout: Layout, state: Value): () => View {
  let view: View | undefined;
  return () => {
    view ??= takeApart(layout, state);
    return view;
  };
}

function takeApart(layout: Layout, state: Value): View {
  const holder: Mutable = { '': state };
  const elements: Elements = new Map();
  const collections = new Map(
    layout.collections.map(
      (collection) => [collection.name, takeRecords(holder, collection, elements)] as const,
    ),
  );
  const sorted: Mutable = { '': sortLists(holder[''] ?? null, layout.unordered) };
  for (const list of layout.lists) takeElements(sorted, list, [], elements);
  return { rest: sorted[''] ?? null, collections, elements };
}

/** Takes the elements of a list out and leaves it empty. */
function takeElements(
  holder: Mutable,
  list: ReferenceList,
  key: readonly Value[],
  elements: Elements,
): void {
  const rows = readElements(list, findAt(holder, list.tokens), key);
  if (rows === undefined) return;
  putAt(holder, list.tokens, []);
  const known = elements.get(list.name) ?? [];
  elements.set(list.name, known);
  for (const row of rows) known.push(row);
}

const NO_RECORDS: CollectionView = { records: new Map(), isList: false };

/**
 * Takes the records of a collection out of the document and leaves an empty list or object in their
 * place.
 */
function takeRecords(holder: Mutable, collection: Collection, elements: Elements): CollectionView {
  const found = findAt(holder, collection.tokens);
  if (typeof found !== 'object' || found === null) return NO_RECORDS;
  if (!isObject(found)) {
    const records = collection.isMap ? undefined : readList(collection, found, elements);
    if (records === undefined) return NO_RECORDS;
    putAt(holder, collection.tokens, []);
    return { records, isList: true };
  }
  if (!collection.isMap) return NO_RECORDS;
  const records = new Map<string, RecordView>();
  const strangers: Mutable = {};
  const [name = ''] = collection.key;
  for (const id of Object.keys(found)) {
    const entry = found[id] as Value;
    const key = { [name]: id };
    if (isObject(entry))
      records.set(keyText(collection, key), viewRecord(collection, key, entry, elements));
    else strangers[id] = entry;
  }
  putAt(holder, collection.tokens, strangers);
  return { records, isList: false };
}

function findAt(holder: Mutable, tokens: Tokens): Value | undefined {
  let found = holder[''];
  for (const token of tokens) {
    if (found === undefined || !isObject(found) || !Object.hasOwn(found, token)) return undefined;
    found = found[token];
  }
  return found;
}

/**
 * Puts a value where another was found. What is on the way is copied: the state is not ours to
 * change.
 */
function putAt(holder: Mutable, tokens: Tokens, value: Value): void {
  let parent = holder;
  let name = '';
  for (const token of tokens) {
    const copy = { ...(parent[name] as Mutable) };
    parent[name] = copy;
    parent = copy;
    name = token;
  }
  parent[name] = value;
}

/**
 * Undefined unless every element is a record with a key of its own. Nothing is taken out before
 * that is known.
 */
function readList(
  collection: Collection,
  list: readonly Value[],
  elements: Elements,
): ReadonlyMap<string, RecordView> | undefined {
  const found = new Map<
    string,
    { readonly key: Row; readonly entry: { readonly [field: string]: Value } }
  >();
  for (const entry of list) {
    const key = isObject(entry) ? readKey(collection, entry) : undefined;
    if (key === undefined || !isObject(entry)) return undefined;
    found.set(keyText(collection, key), { key, entry });
  }
  if (found.size !== list.length) return undefined;
  return new Map(
    [...found].map(([id, { key, entry }]) => [id, viewRecord(collection, key, entry, elements)]),
  );
}

function readKey(
  collection: Collection,
  entry: { readonly [field: string]: Value },
): Row | undefined {
  const key: Mutable = {};
  for (const name of collection.key) {
    const value = Object.hasOwn(entry, name) ? entry[name] : undefined;
    if (value === undefined || value === null || typeof value === 'object') return undefined;
    key[name] = value;
  }
  return key;
}

/** An injective text of a key, under which a record is found again. */
export function keyText(collection: Pick<Collection, 'key'>, key: Row): string {
  let text = '';
  for (const name of collection.key) text += valueText(key[name] ?? null);
  return text;
}

function viewRecord(
  collection: Collection,
  key: Row,
  entry: { readonly [field: string]: Value },
  elements: Elements,
): RecordView {
  const record = withoutElements(collection, key, entry, elements);
  const fields: Mutable = {};
  const others: Mutable = {};
  for (const name of collection.fields) fields[name] = ABSENT;
  for (const name of Object.keys(record)) {
    if (!collection.isMap && collection.key.includes(name)) continue;
    const value = record[name] as Value;
    if (Object.hasOwn(fields, name)) fields[name] = encodeData(value);
    else others[name] = value;
  }
  fields[OTHER_FIELDS] = encodeData(others);
  return { key, fields };
}

/** The record as it is compared, once its elements are where they are compared. */
function withoutElements(
  collection: Collection,
  key: Row,
  entry: { readonly [field: string]: Value },
  elements: Elements,
): { readonly [field: string]: Value } {
  const holder = { '': sortLists(entry, collection.unordered) };
  if (collection.lists.length > 0) {
    const owner = collection.key.map((name) => key[name] ?? null);
    for (const list of collection.lists) takeElements(holder, list, owner, elements);
  }
  return holder[''] as { readonly [field: string]: Value };
}
