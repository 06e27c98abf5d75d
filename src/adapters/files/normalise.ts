import { EffectMatchError, unreachable } from '../../errors.ts';
import { canonical } from '../../protocol/canon.ts';
import { checkCell } from '../../protocol/constraint.ts';
import type { ApprovedEffect, Cell, CellRow, Requirement, StateRead } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Target } from '../../protocol/registration.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { formatMode, parseMode } from './action.ts';
import { normaliseContent } from './content.ts';
import { findPathProblem } from './paths.ts';

const COMPARED = ['kind', 'mode', 'content', 'link'] as const;
type Compared = (typeof COMPARED)[number];

/** The one thing that a folder holds: something at a path. */
export const FILE_TARGET: Target = { name: 'file', columns: ['path', ...COMPARED], key: ['path'], volatile: [] };

/**
 * The manifest in the form in which trees are compared: modes as octal text, content as small text or as digest and
 * size, the columns of a new file filled in. Idempotent. Needs no look at the folder.
 */
export function normaliseManifest(manifest: Manifest): Manifest {
  return {
    ...manifest,
    effects: manifest.effects.map((effect, index) =>
      normaliseEffect(effect, `effects[${index}] (${effect.op} ${effect.target})`),
    ),
    requires: manifest.requires.map((requirement, index) => normaliseRequirement(requirement, `requires[${index}]`)),
    watch: manifest.watch.map((read, index) => {
      readPathKey(read, `watch[${index}]`);
      checkColumns(read.columns ?? [], `watch[${index}]`);
      return read;
    }),
  };
}

function normaliseEffect(effect: ApprovedEffect, where: string): ApprovedEffect {
  if (effect.target !== FILE_TARGET.name) throw invalid(where, `a folder has only the target "${FILE_TARGET.name}"`);
  const { key, before, after } = effect;
  if (key === undefined && before === undefined && after === undefined) {
    throw invalid(where, 'counts of writes need an event profile; this adapter compares files, so state them');
  }
  switch (effect.op) {
    case 'insert': {
      const { path, ...rest } = { ...key, ...after };
      return {
        ...effect,
        key: normaliseKey(path === undefined ? {} : { path }, where),
        after: fillInsert(rest, where),
      };
    }
    case 'update': {
      const images = normaliseUpdate(before ?? {}, after ?? {}, where);
      return { ...effect, key: normaliseKey(key ?? {}, where), ...images };
    }
    case 'delete': {
      const cells = normaliseCells(before ?? {}, where);
      const whole = Object.fromEntries(
        COMPARED.map((column) => [column, ownCell(cells, column) ?? { any: true as const }]),
      );
      return { ...effect, key: normaliseKey(key ?? {}, where), before: whole };
    }
    default:
      return unreachable(effect.op);
  }
}

/** A file is the default; what a folder or a link cannot have is null. */
function fillInsert(row: CellRow, where: string): CellRow {
  const cells = normaliseCells(row, where);
  const kind = cells.kind ?? { is: cells.link === undefined || isNull(cells.link) ? 'file' : 'symlink' };
  const name = 'is' in kind ? kind.is : undefined;
  const absent: Cell = { is: null };
  if (name === undefined) {
    const missing = COMPARED.find((column) => column !== 'kind' && cells[column] === undefined);
    if (missing !== undefined) throw invalid(where, `kind is not exact, so state "${missing}" too, for example any()`);
  }
  const content = cells.content ?? absent;
  const link = cells.link ?? absent;
  if (name === 'file' && isNull(content))
    throw invalid(where, 'state the content of the file: text, bytes or digest and size');
  if (name === 'symlink' && isNull(link)) throw invalid(where, 'state "link", the target of the symbolic link');
  if (name !== undefined && name !== 'file' && !isNull(content))
    throw invalid(where, `a ${String(name)} has no content`);
  if (name !== undefined && name !== 'symlink' && !isNull(link)) throw invalid(where, `a ${String(name)} has no link`);
  const mode = cells.mode ?? (name === 'symlink' ? absent : { is: name === 'directory' ? '0755' : '0644' });
  return { kind, mode, content, link };
}

function isNull(cell: Cell): boolean {
  return 'is' in cell && cell.is === null;
}

function normaliseUpdate(before: CellRow, after: CellRow, where: string): { before: CellRow; after: CellRow } {
  const to = normaliseCells(after, where);
  const from = normaliseCells(before, where);
  const names = Object.keys(to);
  const untold = Object.keys(from).find((name) => !names.includes(name));
  if (untold !== undefined) throw invalid(where, `"${untold}" has a value before and none after; state both`);
  if (names.length === 0) throw invalid(where, 'it changes nothing; leave it out');
  for (const name of names) {
    const [was, is] = [from[name], to[name]];
    if (was === undefined || is === undefined || !('is' in was) || !('is' in is)) continue;
    if (canonical(was.is) === canonical(is.is))
      throw invalid(where, `"${name}" is the same before and after; leave it out`);
  }
  return {
    before: Object.fromEntries(names.map((name) => [name, from[name] ?? { any: true as const }])),
    after: to,
  };
}

function normaliseKey(key: CellRow, where: string): CellRow {
  const { path, ...rest } = key;
  const stray = Object.keys(rest)[0];
  if (stray !== undefined) throw invalid(where, `"${stray}" is not part of the key; a file is named by its path alone`);
  if (path === undefined) throw invalid(where, 'the path is missing');
  const map = (value: Value): Value => {
    if (typeof value !== 'string') throw invalid(where, 'the path must be text');
    const problem = findPathProblem(value);
    if (problem !== undefined) throw invalid(where, `the path ${JSON.stringify(value)}: ${problem}`);
    return value;
  };
  return { path: normaliseCell(path, map, `${where}, path`) };
}

function normaliseCells(row: CellRow, where: string): { readonly [column: string]: Cell } {
  checkColumns(Object.keys(row), where);
  if (Object.hasOwn(row, 'path')) throw invalid(where, 'the path is the key; state it there');
  return Object.fromEntries(
    Object.entries(row).map(([column, cell]) => {
      const at = `${where}, column "${column}"`;
      return [column, normaliseCell(cell, (value) => normaliseValue(column as Compared, value, at), at)];
    }),
  );
}

function normaliseCell(cell: Cell, map: (value: Value) => Value, where: string): Cell {
  if ('is' in cell) return { is: map(cell.is) };
  if ('oneOf' in cell) return { oneOf: cell.oneOf.map(map) };
  if ('between' in cell) {
    const between = { between: [map(cell.between[0]), map(cell.between[1])] as const };
    checkCell(between, where);
    return between;
  }
  if ('generated' in cell || 'now' in cell)
    throw invalid(where, 'a folder assigns no values; state the value, or any()');
  return cell;
}

function normaliseValue(column: Compared, value: Value, where: string): Value {
  switch (column) {
    case 'kind':
      if (value === 'file' || value === 'directory' || value === 'symlink') return value;
      throw invalid(where, 'it is file, directory or symlink');
    case 'mode': {
      const bits = value === null ? undefined : parseMode(value);
      if (value !== null && bits === undefined) throw invalid(where, "it is permission bits such as '0644'");
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

function normaliseRequirement(requirement: Requirement, where: string): Requirement {
  readPathKey(requirement, where);
  if (requirement.row === null) return requirement;
  checkColumns(Object.keys(requirement.row), where);
  const row: Row = Object.fromEntries(
    Object.entries(requirement.row).map(([column, value]) => [
      column,
      column === 'path' ? value : normaliseValue(column as Compared, value, `${where}, column "${column}"`),
    ]),
  );
  return { ...requirement, row };
}

/** The path of a read or requirement; exactly the key must be named. */
export function readPathKey(read: Pick<StateRead, 'target' | 'key'>, where: string): string {
  if (read.target !== FILE_TARGET.name) throw invalid(where, `a folder has only the target "${FILE_TARGET.name}"`);
  const { path, ...rest } = read.key;
  if (typeof path !== 'string' || Object.keys(rest).length > 0) throw invalid(where, 'its key is the path, as text');
  const problem = findPathProblem(path);
  if (problem !== undefined) throw invalid(where, `the path ${JSON.stringify(path)}: ${problem}`);
  return path;
}

export function checkColumns(columns: readonly string[], where: string): void {
  const unknown = columns.find((column) => !FILE_TARGET.columns.includes(column));
  if (unknown !== undefined) {
    throw invalid(where, `a file has no column "${unknown}"; it has ${FILE_TARGET.columns.join(', ')}`);
  }
}

function ownCell(row: CellRow, name: string): Cell | undefined {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

function invalid(where: string, what: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', `${where}: ${what}`);
}
