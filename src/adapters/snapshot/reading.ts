import { normaliseRead } from '../../backend/normalise.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { encodeData, isObject, type Row, type Value } from '../../protocol/value.ts';
import { readPath } from './cells.ts';
import { listOrder } from './diff.ts';
import { type Collection, type Layout, ORDER_SUFFIX, REST_TARGET } from './layout.ts';
import { SnapshotSchema } from './normalise.ts';
import { keyText, type View } from './view.ts';

/** Reads records by key and other places by pointer, in the order asked, from one state. */
export function readView(
  layout: Layout,
  view: View,
  reads: readonly StateRead[],
): readonly StateReading[] {
  const schema = new SnapshotSchema(layout);
  return reads.map((read, index) => {
    const { target, key, columns } = normaliseRead(
      schema,
      read,
      `read ${index + 1} of "${read.target}"`,
    );
    const collection = layout.collections.find(({ name }) => name === target);
    const whole =
      collection === undefined ? readRest(layout, view, key) : readRecord(collection, view, key);
    if (whole === null || columns === undefined) return { target, key, row: whole };
    return {
      target,
      key,
      row: Object.fromEntries(columns.map((name) => [name, whole[name] ?? null])),
    };
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
    const list = layout.collections.find(
      (collection) => path === `${collection.path}${ORDER_SUFFIX}`,
    );
    const found = list && view.collections.get(list.name);
    return found?.isList === true ? { path, value: listOrder(found) } : null;
  }
  let at: Value | undefined = view.rest;
  for (const token of tokens) {
    at = at !== undefined && isObject(at) && Object.hasOwn(at, token) ? at[token] : undefined;
  }
  return at === undefined ? null : { path, value: encodeData(at) };
}
