import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';
import { findCollection, invalid, normaliseField, readPath } from './cells.ts';
import { listOrder } from './diff.ts';
import { encodeData } from './document.ts';
import { type Collection, type Layout, ORDER_SUFFIX, REST_TARGET } from './layout.ts';
import { keyText, type View } from './view.ts';

/** The same read with its key as the document holds it. Unknown columns and incomplete keys are refused. */
export function normaliseRead(layout: Layout, read: StateRead, where: string): StateRead {
  const collection = findCollection(layout, read.target, where);
  const columns = collection?.target.columns ?? ['path', 'value'];
  const unknown = read.columns?.find((name) => !columns.includes(name));
  if (unknown !== undefined) throw invalid(where, `"${read.target}" has no column "${unknown}"`);
  return { ...read, key: normaliseKey(layout, collection, read.key, where) };
}

/** A key with exactly the columns it must have, each as the document holds it. */
export function normaliseKey(layout: Layout, collection: Collection | undefined, key: Row, where: string): Row {
  checkKeyColumns(collection, Object.keys(key), where);
  if (collection === undefined) {
    readPath(layout, key.path ?? null, where);
    return key;
  }
  return Object.fromEntries(
    Object.entries(key).map(([name, value]) => [name, normaliseField(collection, name, value, where)]),
  );
}

/** Refuses a key with more or fewer columns than the target's. */
export function checkKeyColumns(collection: Collection | undefined, names: readonly string[], where: string): void {
  const wanted = collection?.key ?? ['path'];
  if (wanted.length === names.length && wanted.every((name) => names.includes(name))) return;
  throw invalid(where, `the key is ${wanted.map((name) => `"${name}"`).join(' and ')}; name exactly that`);
}

/** Reads records by key and other places by pointer, in the order asked, from one state. */
export function readView(layout: Layout, view: View, reads: readonly StateRead[]): readonly StateReading[] {
  return reads.map((read, index) => {
    const where = `read ${index + 1} of "${read.target}"`;
    const { target, key, columns } = normaliseRead(layout, read, where);
    const collection = findCollection(layout, target, where);
    const whole = collection === undefined ? readRest(layout, view, key) : readRecord(collection, view, key);
    if (whole === null || columns === undefined) return { target, key, row: whole };
    return { target, key, row: Object.fromEntries(columns.map((name) => [name, whole[name] ?? null])) };
  });
}

function readRecord(collection: Collection, view: View, key: Row): Row | null {
  const record = view.collections.get(collection.name)?.records.get(keyText(collection, key));
  return record === undefined ? null : { ...record.key, ...record.fields };
}

function readRest(layout: Layout, view: View, key: Row): Row | null {
  const path = key.path ?? null;
  const tokens = readPath(layout, path, REST_TARGET);
  if (tokens === undefined) {
    const list = layout.collections.find((collection) => path === `${collection.path}${ORDER_SUFFIX}`);
    const found = list && view.collections.get(list.name);
    return found?.isList === true ? { path, value: listOrder(found) } : null;
  }
  let at: Value | undefined = view.rest;
  for (const token of tokens) {
    at = at !== undefined && isObject(at) && Object.hasOwn(at, token) ? at[token] : undefined;
  }
  return at === undefined ? null : { path, value: encodeData(at) };
}
