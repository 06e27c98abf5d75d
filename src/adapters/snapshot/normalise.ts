import { invalid, type ManifestSchema, type RelationShape } from '../../backend/manifest-schema.ts';
import type { ApprovedEffect, Cell, StateRead } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import {
  type FoundList,
  findList,
  normaliseElementField,
  normaliseField,
  normaliseRest,
  readPath,
} from './cells.ts';
import { OTHER_FIELDS } from './declared.ts';
import { type Collection, type Layout, REST_TARGET, withWholeLists } from './layout.ts';
import { ABSENT } from './values.ts';

/** A column with how its values are read. */
interface Field {
  readonly name: string;
  readonly store: (value: Value, where: string) => Value;
  /** What a new record holds that does not state the field; undefined if it has to be stated. */
  readonly absent?: Value | undefined;
  readonly generated?: boolean;
}

type Shape = RelationShape<Field>;

/**
 * The collections of a document as manifests see them: JSON values, unordered lists in their fixed
 * order.
 */
export class SnapshotSchema implements ManifestSchema<Field> {
  readonly registration: Registration;
  readonly labels = {
    assigns: (_: Shape, { generated }: Field) => generated === true,
    where: 'on a field that its collection declares as generated',
  };
  readonly #layout: Layout;
  readonly #whole: Layout;

  constructor(layout: Layout) {
    this.registration = layout.registration;
    this.#layout = layout;
    this.#whole = withWholeLists(layout);
  }

  registered({ op, target, key, after }: ApprovedEffect, where: string): Shape | undefined {
    const list = findList(this.#layout, target);
    if (list !== undefined) return elementShape(list);
    if (target !== REST_TARGET) return findCollection(this.#layout, target);
    const { path } = { ...key, ...(op === 'insert' ? after : {}) };
    if (path === undefined || !('is' in path)) throw invalid(where, 'path must be stated exactly');
    return restShape(this.#layout, path.is, where);
  }

  readable({ target, key }: Pick<StateRead, 'target' | 'key'>, where: string): Shape {
    if (target === REST_TARGET) return restShape(this.#whole, key.path ?? null, where);
    const shape = findCollection(this.#whole, target);
    if (shape !== undefined) return shape;
    throw invalid(where, `"${target}" is not a collection`);
  }

  store(_: Shape, field: Field, value: Value, where: string): Value {
    return field.store(value, where);
  }

  fill(_: Shape, { absent }: Field, where: string): Cell {
    if (absent === undefined) throw invalid(where, 'it must be stated');
    return { is: absent };
  }
}

function findCollection({ collections }: Layout, target: string): Shape | undefined {
  const collection = collections.find(({ name }) => name === target);
  return collection && collectionShape(collection);
}

function collectionShape(collection: Collection): Shape {
  const { name, key, target, generated } = collection;
  const columns = target.columns.map((column) => ({
    name: column,
    store: (value: Value, where: string) => normaliseField(collection, column, value, where),
    absent: key.includes(column) ? undefined : absentOf(column),
    generated: generated.includes(column),
  }));
  return { target: name, key, columns };
}

/** An element is all there is of its row: it comes or goes. */
function elementShape({ list, collection, unordered }: FoundList): Shape {
  const { name, owner, fields, target, generated } = list;
  const columns = target.columns.map((column) => {
    const ownerKey = collection?.key[owner.indexOf(column)];
    return {
      name: column,
      store: (value: Value, where: string) =>
        collection !== undefined && ownerKey !== undefined
          ? normaliseField(collection, ownerKey, value, where)
          : normaliseElementField(list, column, value, { where, unordered }),
      absent: column === OTHER_FIELDS || fields?.includes(column) ? absentOf(column) : undefined,
      generated: generated.includes(column),
    };
  });
  return { target: name, key: [], columns };
}

/** Outside the collections the path decides how the value is read. */
function restShape(layout: Layout, path: Value, where: string): Shape {
  readPath(layout, path, where);
  const columns = [
    { name: 'path', store: (value: Value) => value },
    {
      name: 'value',
      store: (value: Value, at: string) => normaliseRest(layout, String(path), value, at),
    },
  ];
  return { target: REST_TARGET, key: ['path'], columns };
}

function absentOf(column: string): Value {
  return column === OTHER_FIELDS ? {} : ABSENT;
}
