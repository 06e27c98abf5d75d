import { rowText, sameValue } from '../../protocol/bag.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import { encodeData, isObject, type Row, type Value } from '../../protocol/value.ts';
import { type Layout, ORDER_SUFFIX, REST_TARGET } from './layout.ts';
import { extendPointer } from './pointer.ts';
import type { CollectionView, RecordView, View } from './view.ts';

/**
 * The net difference of two states: records by key, everything else by JSON pointer, nothing left
 * out. Applied to the first state it gives the second. Linear in the size of the two.
 */
export function diffViews(layout: Layout, before: View, after: View): readonly ChangeRecord[] {
  const changes: ChangeRecord[] = [];
  for (const { name, path, keepsOrder } of layout.collections) {
    const was = before.collections.get(name);
    const is = after.collections.get(name);
    if (was === undefined || is === undefined) continue;
    diffRecords(name, was, is, changes);
    if (keepsOrder && was.isList && is.isList && !isAppended(was, is)) {
      changes.push(changeOfRest(`${path}${ORDER_SUFFIX}`, listOrder(was), listOrder(is)));
    }
  }
  for (const { name } of layout.lists) diffElements(name, before, after, changes);
  for (const { lists } of layout.collections)
    for (const { name } of lists) diffElements(name, before, after, changes);
  diffRest('', before.rest, after.rest, changes);
  return changes;
}

function diffRecords(
  target: string,
  was: CollectionView,
  is: CollectionView,
  changes: ChangeRecord[],
): void {
  for (const [id, { key, fields }] of was.records) {
    const now = is.records.get(id);
    if (now === undefined) {
      changes.push({ op: 'delete', target, key, before: fields, after: null });
    } else {
      const before: { [column: string]: Value } = {};
      const after: { [column: string]: Value } = {};
      let isChanged = false;
      for (const name of Object.keys(fields)) {
        if (sameValue(fields[name], now.fields[name])) continue;
        before[name] = fields[name] ?? null;
        after[name] = now.fields[name] ?? null;
        isChanged = true;
      }
      if (isChanged) changes.push({ op: 'update', target, key, before, after });
    }
  }
  for (const [id, { key, fields }] of is.records) {
    if (!was.records.has(id))
      changes.push({ op: 'insert', target, key, before: null, after: fields });
  }
}

/** Elements have no key and no order: what counts is how many there are of each. */
function diffElements(target: string, before: View, after: View, changes: ChangeRecord[]): void {
  const surplus = new Map<string, { readonly row: Row; by: number }>();
  const count = (rows: readonly Row[], by: 1 | -1): void => {
    for (const row of rows) {
      const id = rowText(row);
      const known = surplus.get(id) ?? { row, by: 0 };
      known.by += by;
      surplus.set(id, known);
    }
  };
  count(before.elements.get(target) ?? [], -1);
  count(after.elements.get(target) ?? [], 1);
  for (const { row, by } of surplus.values()) {
    const change: ChangeRecord =
      by > 0
        ? { op: 'insert', target, key: null, before: null, after: row }
        : { op: 'delete', target, key: null, before: row, after: null };
    for (let copies = Math.abs(by); copies > 0; copies -= 1) changes.push(change);
  }
}

/** Whether the records that stayed are in their old order and all new ones come after them. */
function isAppended(was: CollectionView, is: CollectionView): boolean {
  const stayed = [...was.records.keys()].filter((id) => is.records.has(id));
  let at = 0;
  for (const id of is.records.keys()) {
    if (at === stayed.length) return true;
    if (stayed[at] !== id) return false;
    at += 1;
  }
  return true;
}

/** The keys of a list's records in their order; a key of one field stands for itself. */
export function listOrder({ records }: CollectionView): Value {
  return [...records.values()].map(({ key }: RecordView) => {
    const values = Object.values(key);
    return values.length === 1 ? (values[0] ?? null) : values;
  });
}

/** Objects are compared field by field; lists and everything else as whole values. */
function diffRest(path: string, was: Value, is: Value, changes: ChangeRecord[]): void {
  if (!isObject(was) || !isObject(is)) {
    if (!sameValue(was, is)) changes.push(changeOfRest(path, encodeData(was), encodeData(is)));
    return;
  }
  for (const [name, value] of Object.entries(was)) {
    const at = extendPointer(path, name);
    const now = Object.hasOwn(is, name) ? is[name] : undefined;
    if (now !== undefined) diffRest(at, value, now, changes);
    else {
      const before = { value: encodeData(value) };
      changes.push({ op: 'delete', target: REST_TARGET, key: { path: at }, before, after: null });
    }
  }
  for (const [name, value] of Object.entries(is)) {
    if (Object.hasOwn(was, name)) continue;
    const key = { path: extendPointer(path, name) };
    changes.push({
      op: 'insert',
      target: REST_TARGET,
      key,
      before: null,
      after: { value: encodeData(value) },
    });
  }
}

function changeOfRest(path: string, before: Value, after: Value): ChangeRecord {
  return {
    op: 'update',
    target: REST_TARGET,
    key: { path },
    before: { value: before },
    after: { value: after },
  };
}
