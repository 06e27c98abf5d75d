import { hash } from 'node:crypto';
import { join } from 'node:path';
import { normaliseReads } from '../../backend/normalise.ts';
import { unavailable } from '../../backend/setup.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { formatMode } from './action.ts';
import { describeContent, describeDigest, MAX_TEXT_BYTES, readSmallFile } from './content.ts';
import type { FileEntry, VersionEntries } from './control.ts';
import { FilesSchema } from './normalise.ts';

/** The compared columns of an entry, except its path. */
export function rowOf(tree: string, entry: FileEntry): Row {
  const { kind, mode, link } = entry;
  return {
    kind,
    mode: mode === null ? null : formatMode(mode),
    content: contentOf(tree, entry),
    link,
  };
}

/** Reads small text from the file. It counts only if it matches the digest. */
function contentOf(tree: string, { path, kind, size, digest }: FileEntry): Value {
  if (kind !== 'file' || digest === null) return null;
  if (size > MAX_TEXT_BYTES) return describeDigest(digest, size);
  const bytes = readSmallFile(join(tree, path));
  if (hash('sha256', bytes, 'hex') !== digest) {
    throw unavailable('a file was changed past EffectMatch; put it back');
  }
  return describeContent(bytes);
}

/** Reads exactly these paths in one version, in the given order. */
export function readState(
  tree: string,
  entries: VersionEntries,
  reads: readonly StateRead[],
): readonly StateReading[] {
  const schema = new FilesSchema('plain');
  return normaliseReads(schema, reads).map(({ target, key, columns }) => {
    const path = String(key.path);
    const entry = entries.get(path);
    if (entry === undefined) return { target, key, row: null };
    const row: Row = { path, ...rowOf(tree, entry) };
    const names = columns ?? Object.keys(row);
    return { target, key, row: Object.fromEntries(names.map((name) => [name, row[name] ?? null])) };
  });
}
