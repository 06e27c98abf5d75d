import { normaliseRead } from '../../backend/normalise.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { encodeData, type Row, type Value } from '../../protocol/value.ts';
import { listOrder } from './diff.ts';
import { type DocumentLayout, type DocumentParts, orderPath, REST_TARGET } from './layout.ts';
import { readPath, SnapshotSchema } from './normalise.ts';
import { findValue } from './values.ts';
import { type DocumentView, keyText, viewDocument } from './view.ts';

/** Reads records by key, and other values by pointer, from one state in the given order. */
export function readState(
  layout: DocumentLayout,
  state: Value,
  reads: readonly StateRead[],
): readonly StateReading[] {
  const schema = new SnapshotSchema(layout);
  const view = viewDocument(layout.whole, state);
  return reads.map((read, index) => {
    const where = `read ${index + 1}, of "${read.target}"`;
    const { target, key, columns } = normaliseRead(schema, read, where);
    const row =
      target === REST_TARGET
        ? readRest(layout.whole, view, key)
        : readRecord(layout.whole, view, target, key);
    if (row === null || columns === undefined) return { target, key, row };
    const asked = columns.map((name) => [name, row[name] ?? null]);
    return { target, key, row: Object.fromEntries(asked) };
  });
}

function readRecord(
  { collections }: DocumentParts,
  view: DocumentView,
  target: string,
  key: Row,
): Row | null {
  const collection = collections.find((candidate) => candidate.target === target);
  const record = collection && view.collections.get(target)?.records.get(keyText(collection, key));
  return record === undefined ? null : { ...record.key, ...record.fields };
}

function readRest(parts: DocumentParts, view: DocumentView, key: Row): Row | null {
  const path = key.path ?? null;
  const tokens = readPath(parts, path, REST_TARGET);
  if (tokens !== undefined) {
    const value = findValue(view.rest, tokens);
    return value === undefined ? null : { path, value: encodeData(value) };
  }
  const list = parts.collections.find((candidate) => path === orderPath(candidate));
  const found = list && view.collections.get(list.target);
  return found?.isList === true ? { path, value: listOrder(found) } : null;
}
