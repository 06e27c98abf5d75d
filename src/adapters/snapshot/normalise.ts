import { invalid, type ManifestSchema, type RelationShape } from '../../backend/manifest-schema.ts';
import type { ApprovedEffect, Cell, StateRead } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import { encodeData, isObject, type Value } from '../../protocol/value.ts';
import {
  type DocumentLayout,
  type DocumentParts,
  orderPath,
  REST_TARGET,
  type SnapshotColumn,
} from './layout.ts';
import { isBeneath, parsePointer, stepInto, type Tokens } from './pointer.ts';
import { ABSENT, isAbsent, jsonOf, sortLists } from './values.ts';

type Shape = RelationShape<SnapshotColumn>;

/** The schema of a document for manifests: JSON values, with unordered lists sorted. */
export class SnapshotSchema implements ManifestSchema<SnapshotColumn> {
  readonly registration: Registration;
  readonly labels = {
    assigns: (_: Shape, { generated }: SnapshotColumn) => generated,
    where: 'on a field that its collection declares as generated',
  };
  readonly #layout: DocumentLayout;

  constructor(layout: DocumentLayout) {
    this.registration = layout.registration;
    this.#layout = layout;
  }

  registered({ op, target, key, after }: ApprovedEffect, where: string): Shape | undefined {
    if (target !== REST_TARGET)
      return this.#layout.relations.find((relation) => relation.target === target);
    const { path } = { ...key, ...(op === 'insert' ? after : {}) };
    if (path === undefined || !('is' in path)) throw invalid(where, 'path must be stated exactly');
    return restShape(this.#layout, path.is, where);
  }

  readable({ target, key }: Pick<StateRead, 'target' | 'key'>, where: string): Shape {
    const { whole } = this.#layout;
    if (target === REST_TARGET) return restShape(whole, key.path ?? null, where);
    const collection = whole.collections.find((candidate) => candidate.target === target);
    if (collection !== undefined) return collection;
    throw invalid(where, `"${target}" is not a collection`);
  }

  /** The value as an observation would report it. */
  store(_: Shape, { kind, unordered }: SnapshotColumn, value: Value, where: string): Value {
    if (kind === 'field' && isAbsent(value)) return value;
    const data = jsonOf(value);
    if (data === undefined)
      throw invalid(where, 'JSON has no form for this value; state what the document holds');
    if (kind === 'others' && !isObject(data))
      throw invalid(where, 'state the other fields as an object');
    if (kind === 'object-key' && typeof data !== 'string')
      throw invalid(where, 'keys of an object are text');
    if (kind === 'list-key' && (data === null || typeof data === 'object'))
      throw invalid(where, 'a key is text, a number, true or false');
    return encodeData(sortLists(data, unordered));
  }

  fill(_: Shape, { kind }: SnapshotColumn, where: string): Cell {
    if (kind === 'field') return { is: ABSENT };
    if (kind === 'others') return { is: {} };
    throw invalid(where, 'it must be stated');
  }
}

/** Outside the collections, the path determines how the value is compared. */
function restShape(parts: DocumentParts, path: Value, where: string): Shape {
  const tokens = readPath(parts, path, where);
  const unordered = tokens === undefined ? [] : tokens.reduce(stepInto, parts.unordered);
  const column = { kind: 'whole', generated: false } as const;
  const columns = [
    { ...column, name: 'path', unordered: [] },
    { ...column, name: 'value', unordered },
  ];
  return { target: REST_TARGET, key: ['path'], columns };
}

/** The tokens of a path outside the collections; undefined if it names the order of a list. */
export function readPath(
  { collections }: DocumentParts,
  path: Value,
  where: string,
): Tokens | undefined {
  if (collections.some((list) => list.keepsOrder && path === orderPath(list))) return undefined;
  const tokens = typeof path === 'string' ? parsePointer(path) : undefined;
  if (tokens === undefined) {
    const stated = typeof path === 'string' ? `"${path}"` : 'path';
    throw invalid(where, `${stated} is not a JSON pointer, such as "/settings/language"`);
  }
  // Lists are compared by key or as a whole, never by index.
  const list = collections.find(
    ({ isMap, tokens: outer }) =>
      !isMap && isBeneath(outer, tokens) && /^\d+$/.test(tokens[outer.length] ?? ''),
  );
  if (list !== undefined)
    throw invalid(where, `"${path}" is inside "${list.target}"; name the record by its key there`);
  return tokens;
}
