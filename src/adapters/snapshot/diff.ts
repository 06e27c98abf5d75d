import { rowText, sameValue } from '../../protocol/bag.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import { encodeData, isObject, type Row, type Value } from '../../protocol/value.ts';
import { type DocumentLayout, orderPath, REST_TARGET } from './layout.ts';
import { extendPointer } from './pointer.ts';
import type { CollectionView, DocumentView } from './view.ts';

/**
 * The complete net difference of two states: records by key, everything else by JSON pointer.
 * Applying it to the first state gives the second. It takes linear time.
 */
export function diffViews(
  layout: DocumentLayout,
  before: DocumentView,
  after: DocumentView,
): readonly ChangeRecord[] {
  const changes: ChangeRecord[] = [];
  for (const list of layout.collections) {
    const { target, keepsOrder } = list;
    const was = before.collections.get(target);
    const is = after.collections.get(target);
    if (was === undefined || is === undefined) continue;
    diffRecords(target, was, is, changes);
    if (keepsOrder && was.isList && is.isList && !isAppended(was, is))
      changes.push(changeOfRest(orderPath(list), listOrder(was), listOrder(is)));
  }
  for (const { target } of layout.relations) diffElements(target, before, after, changes);
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
      continue;
    }
    const changed = Object.keys(fields).filter(
      (name) => !sameValue(fields[name], now.fields[name]),
    );
    if (changed.length === 0) continue;
    const before = pick(fields, changed);
    const after = pick(now.fields, changed);
    changes.push({ op: 'update', target, key, before, after });
  }
  for (const [id, { key, fields }] of is.records) {
    if (!was.records.has(id))
      changes.push({ op: 'insert', target, key, before: null, after: fields });
  }
}

function pick(row: Row, names: readonly string[]): Row {
  return Object.fromEntries(names.map((name) => [name, row[name] ?? null]));
}

/** Elements have no key and no order. Only the number of equal elements counts. */
function diffElements(
  target: string,
  before: DocumentView,
  after: DocumentView,
  changes: ChangeRecord[],
): void {
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

/** Whether the remaining records kept their order and all new records come after them. */
function isAppended(was: CollectionView, is: CollectionView): boolean {
  const stayed = [...was.records.keys()].filter((id) => is.records.has(id));
  const now = is.records.keys();
  return stayed.every((id) => now.next().value === id);
}

/** The keys of a list's records in order. A key of one field is given as its value. */
export function listOrder({ records }: CollectionView): Value {
  return [...records.values()].map(({ key }) => {
    const values = Object.values(key);
    return values.length === 1 ? (values[0] ?? null) : values;
  });
}

/** Compares objects field by field, and lists and other values as a whole. */
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
    const after = { value: encodeData(value) };
    changes.push({ op: 'insert', target: REST_TARGET, key, before: null, after });
  }
}

function changeOfRest(path: string, was: Value, is: Value): ChangeRecord {
  const [before, after] = [{ value: was }, { value: is }];
  return { op: 'update', target: REST_TARGET, key: { path }, before, after };
}
