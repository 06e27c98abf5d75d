import { readItems, readUntrusted } from '../../backend/action.ts';
import {
  type Fields,
  readFields,
  refuseAction,
  refuseUnknown,
} from '../../contract/action-input.ts';
import type { Value } from '../../protocol/value.ts';
import { describeContent } from './content.ts';
import { findLinkProblem, findPathProblem, RESERVED_PREFIX } from './paths.ts';

/**
 * One operation on the folder. `read` and `list` show a task what the candidate contains and change
 * nothing. Content is text or base64. Modes are numbers such as 0o644 or text such as '0644'.
 */
export type FileOperation =
  | { readonly write: WriteText | WriteBase64 }
  | { readonly remove: { readonly path: string; readonly recursive?: boolean } }
  | { readonly mkdir: { readonly path: string; readonly mode?: number | string } }
  | { readonly rename: { readonly path: string; readonly to: string } }
  | { readonly chmod: { readonly path: string; readonly mode: number | string } }
  | { readonly symlink: { readonly path: string; readonly target: string } }
  | { readonly read: { readonly path: string } }
  /** Lists a folder; without a path, the root. */
  | { readonly list: { readonly path?: string } };

interface WriteText {
  readonly path: string;
  readonly text: string;
  readonly mode?: number | string;
}

interface WriteBase64 {
  readonly path: string;
  readonly base64: string;
  readonly mode?: number | string;
}

/** What an agent may submit: operations that run in order in one candidate. */
export interface FilesAction {
  readonly operations: readonly FileOperation[];
}

/** A fully checked operation. `mode: undefined` keeps the mode of a replaced file. */
export type CheckedOperation =
  | {
      readonly op: 'write';
      readonly path: string;
      readonly bytes: Uint8Array;
      readonly mode: number | undefined;
    }
  | { readonly op: 'remove'; readonly path: string; readonly recursive: boolean }
  | { readonly op: 'mkdir'; readonly path: string; readonly mode: number }
  | { readonly op: 'rename'; readonly path: string; readonly to: string }
  | { readonly op: 'chmod'; readonly path: string; readonly mode: number }
  | { readonly op: 'symlink'; readonly path: string; readonly target: string }
  | { readonly op: 'read'; readonly path: string }
  | { readonly op: 'list'; readonly path: string };

/** A fully checked copy of an action, which the agent cannot change. */
export interface CheckedFilesAction {
  readonly operations: readonly CheckedOperation[];
}

const MAX_OPERATIONS = 10_000;
const MAX_CONTENT_BYTES = 64 * 1024 * 1024;
const FIELDS = {
  write: ['path', 'text', 'base64', 'mode'],
  remove: ['path', 'recursive'],
  mkdir: ['path', 'mode'],
  rename: ['path', 'to'],
  chmod: ['path', 'mode'],
  symlink: ['path', 'target'],
  read: ['path'],
  list: ['path'],
} as const;

/** Checks untrusted input and copies it. */
export function parseAction(input: unknown): CheckedFilesAction {
  return readUntrusted(() => {
    const { operations } = readObject(input, ['operations'], 'the action');
    const limit = { name: 'operation', max: MAX_OPERATIONS };
    return { operations: readItems(operations, limit, parseOperation) };
  });
}

function parseOperation(input: unknown, where: string): CheckedOperation {
  const named = Object.entries(readObject(input, Object.keys(FIELDS), where));
  const [op, body] = named[0] ?? [];
  if (named.length !== 1 || op === undefined)
    throw refuseAction(`${where} must be one of ${Object.keys(FIELDS).join(', ')}`);
  const fields = readObject(body, FIELDS[op as keyof typeof FIELDS], `${where} (${op})`);
  if (op === 'list' && fields.path === undefined) return { op, path: '.' };
  const path = readPath(fields.path, `${where}: path`);
  switch (op) {
    case 'write':
      return {
        op,
        path,
        bytes: readContent(fields, where),
        mode: readMode(fields.mode, 0o400, undefined, where),
      };
    case 'remove':
      if (!['undefined', 'boolean'].includes(typeof fields.recursive))
        throw refuseAction(`${where}: recursive is true or false`);
      return { op, path, recursive: fields.recursive === true };
    case 'mkdir':
      return { op, path, mode: readMode(fields.mode, 0o700, 0o755, where) };
    case 'rename':
      return { op, path, to: readPath(fields.to, `${where}: to`) };
    case 'chmod':
      if (fields.mode === undefined) throw refuseAction(`${where}: mode is missing`);
      return { op, path, mode: readMode(fields.mode, 0o400, 0, where) };
    case 'read':
      return { op, path };
    case 'list':
      return { op, path };
    default: {
      const { target } = fields;
      if (typeof target !== 'string') throw refuseAction(`${where}: target must be text`);
      const problem = findLinkProblem(path, target);
      if (problem !== undefined) throw refuseAction(`${where}: ${problem}`);
      return { op: 'symlink', path, target };
    }
  }
}

function readPath(path: unknown, where: string): string {
  if (typeof path !== 'string') throw refuseAction(`${where} must be text`);
  const problem = findPathProblem(path);
  if (problem !== undefined) throw refuseAction(`${where}: ${problem}`);
  return path;
}

function readContent(fields: Fields, where: string): Uint8Array {
  const { text, base64 } = fields;
  if ((text === undefined) === (base64 === undefined))
    throw refuseAction(`${where}: give either text or base64`);
  const given = text ?? base64;
  if (typeof given !== 'string' || !given.isWellFormed())
    throw refuseAction(`${where}: content must be well-formed text`);
  if (given.length > 2 * MAX_CONTENT_BYTES)
    throw refuseAction(`${where}: the content is too large`);
  const bytes = Buffer.from(given, text === undefined ? 'base64' : 'utf8');
  if (text === undefined && bytes.toString('base64') !== given)
    throw refuseAction(`${where}: base64 is not in its standard form`);
  if (bytes.length > MAX_CONTENT_BYTES)
    throw refuseAction(`${where}: the content is larger than ${MAX_CONTENT_BYTES} bytes`);
  return bytes;
}

/** Reads permission bits. `needed` are the bits that the adapter itself needs on the result. */
function readMode<Default>(
  mode: unknown,
  needed: number,
  otherwise: Default,
  where: string,
): number | Default {
  if (mode === undefined) return otherwise;
  const bits = parseMode(mode);
  if (bits === undefined)
    throw refuseAction(`${where}: mode must be permission bits such as 0o644 or '0644'`);
  if ((bits & needed) !== needed) {
    throw refuseAction(
      `${where}: mode ${formatMode(bits)} would keep the owner out, so the result could not be observed`,
    );
  }
  return bits;
}

/**
 * Reads permission bits from a number or octal text; undefined for anything else, including special
 * bits.
 */
export function parseMode(mode: unknown): number | undefined {
  const bits =
    typeof mode === 'string' && /^0?[0-7]{3}$/.test(mode) ? Number.parseInt(mode, 8) : mode;
  return typeof bits === 'number' && Number.isInteger(bits) && bits >= 0 && bits <= 0o777
    ? bits
    : undefined;
}

/** Formats permission bits as octal text. */
export function formatMode(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

/** Describes the action as plain data. The same operations always give the same data. */
export function describeAction(action: CheckedFilesAction): Value {
  return {
    operations: action.operations.map((operation): Value => {
      if (operation.op !== 'write') return { ...operation };
      const { op, path, bytes, mode } = operation;
      return { op, path, content: describeContent(bytes), mode: mode ?? null };
    }),
  };
}

/** The paths that an action names. Only these, and paths below them, may change. */
export function namedPaths(action: CheckedFilesAction): ReadonlySet<string> {
  return new Set(
    action.operations.flatMap((operation) => {
      if (operation.op === 'read' || operation.op === 'list') return [];
      return 'to' in operation ? [operation.path, operation.to] : [operation.path];
    }),
  );
}

/** The path that a probe writes. {@link parseAction} refuses such paths. */
export function probePath(token: string): string {
  return `${RESERVED_PREFIX}probe-${token}`;
}

/** The action of the admission probe: an ordinary write to a path that only the probe can name. */
export function probeAction(token: string): CheckedFilesAction {
  return {
    operations: [
      { op: 'write', path: probePath(token), bytes: Buffer.from(token), mode: undefined },
    ],
  };
}

/** The fields of an object. Refuses unknown fields by name. */
function readObject(input: unknown, known: readonly string[], where: string): Fields {
  const fields = readFields(input, where);
  refuseUnknown(fields, known, where);
  return fields;
}
