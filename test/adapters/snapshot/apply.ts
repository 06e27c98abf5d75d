import type { ChangeRecord } from '../../../src/protocol/effect.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

/** What the independent reading of effects knows about a collection. */
export interface Place {
  readonly path: readonly string[];
  readonly map: boolean;
  readonly key: readonly string[];
  readonly fields: readonly string[];
}

/**
 * Applies observed effects to a state, written from their description alone: changed and removed
 * records, then places by pointer, then new records at the end of their list, then the order of a
 * list.
 */
export function applyEffects(
  base: unknown,
  records: readonly ChangeRecord[],
  places: Readonly<Record<string, Place>>,
): unknown {
  const holder = { root: structuredClone(base) as Json };
  const ofRest = records.filter(({ target }) => target === '/');
  const ofRecords = records.filter(({ target }) => target !== '/');
  for (const record of ofRecords)
    if (record.op !== 'insert') changeRecord(holder, record, placeOf(places, record));
  for (const record of ofRest) if (!pathOf(record).endsWith('~order')) changeRest(holder, record);
  for (const record of ofRecords)
    if (record.op === 'insert') addRecord(holder, record, placeOf(places, record));
  for (const record of ofRest)
    if (pathOf(record).endsWith('~order')) reorder(holder, record, places);
  return holder.root;
}

function placeOf(places: Readonly<Record<string, Place>>, { target }: ChangeRecord): Place {
  const place = places[target];
  if (place === undefined) throw new Error(`no collection ${target}`);
  return place;
}

function pathOf(record: ChangeRecord): string {
  return String(record.key?.path);
}

/**
 * Undoes the doubling of `$`; anything else that starts with `$` would be a tag, which no document
 * has.
 */
function plain(value: unknown): Json {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value as Json;
  const result: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    if (/^\$(?!\$)/.test(key)) throw new Error(`a tag where data was expected: ${key}`);
    result[key.startsWith('$') ? key.slice(1) : key] = plain(inner);
  }
  return result;
}

function containerOf(holder: { root: Json }, place: Place): Json {
  return place.path.reduce<Json>((at, token) => (at as JsonObject)[token] as Json, holder.root);
}

function setFields(entry: JsonObject, image: object, place: Place): void {
  for (const [column, value] of Object.entries(image)) {
    if (column === '*') {
      const own = place.map ? place.fields : [...place.fields, ...place.key];
      for (const name of Object.keys(entry)) if (!own.includes(name)) delete entry[name];
      Object.assign(entry, plain(value));
    } else if (JSON.stringify(value) === '{"$bytes":""}') delete entry[column];
    else entry[column] = plain(value);
  }
}

function changeRecord(holder: { root: Json }, record: ChangeRecord, place: Place): void {
  const container = containerOf(holder, place);
  const mapKey = String(record.key?.[place.key[0] ?? '']);
  const index = place.map
    ? -1
    : (container as JsonObject[]).findIndex((entry) => hasKey(entry, record, place));
  if (record.op === 'delete') {
    if (place.map) delete (container as JsonObject)[mapKey];
    else (container as Json[]).splice(index, 1);
  } else {
    const entry = place.map ? (container as JsonObject)[mapKey] : (container as Json[])[index];
    setFields(entry as JsonObject, record.after ?? {}, place);
  }
}

function hasKey(entry: JsonObject, record: ChangeRecord, place: Place): boolean {
  return place.key.every((name) => entry[name] === record.key?.[name]);
}

function addRecord(holder: { root: Json }, record: ChangeRecord, place: Place): void {
  const container = containerOf(holder, place);
  const entry: JsonObject = place.map ? {} : { ...(record.key as JsonObject) };
  setFields(entry, record.after ?? {}, place);
  if (place.map) (container as JsonObject)[String(record.key?.[place.key[0] ?? ''])] = entry;
  else (container as Json[]).push(entry);
}

function changeRest(holder: { root: Json }, record: ChangeRecord): void {
  const tokens = pathOf(record)
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = tokens.pop();
  if (last === undefined) {
    holder.root = plain(record.after?.value);
    return;
  }
  const parent = tokens.reduce<Json>(
    (at, token) => (at as JsonObject)[token] as Json,
    holder.root,
  ) as JsonObject;
  if (record.op === 'delete') delete parent[last];
  else parent[last] = plain(record.after?.value);
}

function reorder(
  holder: { root: Json },
  record: ChangeRecord,
  places: Readonly<Record<string, Place>>,
): void {
  const place = Object.values(places).find(
    ({ path }) => `/${path.join('/')}~order` === pathOf(record),
  );
  if (place === undefined) throw new Error(`no list ${pathOf(record)}`);
  const list = containerOf(holder, place) as JsonObject[];
  const order = (plain(record.after?.value) as Json[]).map((key) =>
    JSON.stringify(Array.isArray(key) ? key : [key]),
  );
  const rank = (entry: JsonObject) =>
    order.indexOf(JSON.stringify(place.key.map((name) => entry[name])));
  list.sort((a, b) => rank(a) - rank(b));
}
