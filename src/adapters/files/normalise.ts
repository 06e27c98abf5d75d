import { invalid, type ManifestSchema, type RelationShape } from '../../backend/manifest-schema.ts';
import { unreachable } from '../../errors.ts';
import type { ApprovedEffect, Cell, CellRow, StateRead } from '../../protocol/effect.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import { formatMode, parseMode } from './action.ts';
import { normaliseContent } from './content.ts';
import { findPathProblem } from './paths.ts';

const COLUMNS = ['path', 'kind', 'mode', 'content', 'link'] as const;
type ColumnName = (typeof COLUMNS)[number];

/** The only target of a folder: an entry at a path. */
export const FILE_TARGET: Target = { name: 'file', columns: COLUMNS, key: ['path'], volatile: [] };

/** A column with the default cell for new entries, or a message that says what to state. */
interface Column {
  readonly name: ColumnName;
  readonly otherwise: Cell | string;
}

type Shape = RelationShape<Column>;

/**
 * The schema of a folder for manifests. Modes are octal text; content is small text, or digest and
 * size.
 */
export class FilesSchema implements ManifestSchema<Column> {
  readonly registration: Registration;

  constructor(values: Registration['values']) {
    this.registration = { profile: 'net-state', values, targets: [FILE_TARGET] };
  }

  registered({ op, target, after }: ApprovedEffect, where: string): Shape {
    checkTarget(target, where);
    return op === 'insert' ? shapeOf(defaultsFor(after ?? {}, where)) : UNFILLED;
  }

  readable({ target }: Pick<StateRead, 'target' | 'key'>, where: string): Shape {
    checkTarget(target, where);
    return UNFILLED;
  }

  store(_: Shape, { name }: Column, value: Value, where: string): Value {
    return normaliseValue(name, value, where);
  }

  fill(_: Shape, { otherwise }: Column, where: string): Cell {
    if (typeof otherwise === 'string') throw invalid(where, otherwise);
    return otherwise;
  }

  checkConstraint(_: Column, cell: Cell, where: string): void {
    if ('generated' in cell || 'now' in cell) {
      throw invalid(where, 'a folder assigns no values; state the value, or any()');
    }
  }
}

type Defaults = Readonly<Record<ColumnName, Cell | string>>;

function shapeOf(defaults: Defaults): Shape {
  const columns = COLUMNS.map((name) => ({ name, otherwise: defaults[name] }));
  return { target: FILE_TARGET.name, key: FILE_TARGET.key, columns };
}

const MISSING_PATH = 'the path is missing; state it';
const NULL: Cell = { is: null };
const UNFILLED = shapeOf({ path: MISSING_PATH, kind: NULL, mode: NULL, content: NULL, link: NULL });

/**
 * The default kind is a file. Columns that a folder or link lacks are null and must not be stated.
 */
function defaultsFor(row: CellRow, where: string): Defaults {
  const isLink = row.link !== undefined && !isNull(row.link);
  const kind = row.kind ?? { is: isLink ? 'symlink' : 'file' };
  const path = MISSING_PATH;
  if (!('is' in kind)) {
    const unknown = 'kind is not exact, so state it too, for example any()';
    return { path, kind, mode: unknown, content: unknown, link: unknown };
  }
  const refuseStated = (name: 'content' | 'link') => {
    const cell = row[name];
    if (cell !== undefined && !isNull(cell)) {
      throw invalid(where, `a ${String(kind.is)} has no ${name}`);
    }
  };
  const needed = (name: 'content' | 'link', what: string) => {
    const cell = row[name];
    if (cell !== undefined && isNull(cell)) throw invalid(where, what);
    return what;
  };
  if (kind.is === 'symlink') {
    refuseStated('content');
    const link = needed('link', 'state "link", the target of the symbolic link');
    return { path, kind, mode: NULL, content: NULL, link };
  }
  refuseStated('link');
  if (kind.is !== 'file') {
    refuseStated('content');
    return { path, kind, mode: { is: '0755' }, content: NULL, link: NULL };
  }
  const content = needed(
    'content',
    'state the content of the file: text, bytes or digest and size',
  );
  return { path, kind, mode: { is: '0644' }, content, link: NULL };
}

function isNull(cell: Cell): boolean {
  return 'is' in cell && cell.is === null;
}

function normaliseValue(column: ColumnName, value: Value, where: string): Value {
  switch (column) {
    case 'path': {
      if (typeof value !== 'string') throw invalid(where, 'the path must be text');
      const problem = findPathProblem(value);
      if (problem === undefined) return value;
      throw invalid(where, `the path ${JSON.stringify(value)}: ${problem}`);
    }
    case 'kind':
      if (value === 'file' || value === 'directory' || value === 'symlink') return value;
      throw invalid(where, 'it is file, directory or symlink');
    case 'mode': {
      const bits = value === null ? undefined : parseMode(value);
      if (value !== null && bits === undefined)
        throw invalid(where, "it is permission bits such as '0644'");
      return bits === undefined ? null : formatMode(bits);
    }
    case 'content': {
      const content = value === null ? null : normaliseContent(value);
      if (content === undefined) throw invalid(where, 'it is text, bytes, or { sha256, size }');
      return content;
    }
    case 'link':
      if (value === null || typeof value === 'string') return value;
      throw invalid(where, 'it is the target of a symbolic link, as text');
    default:
      return unreachable(column);
  }
}

function checkTarget(target: string, where: string): void {
  if (target === FILE_TARGET.name) return;
  throw invalid(where, `a folder has only the target "${FILE_TARGET.name}"`);
}
