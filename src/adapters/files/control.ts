import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { EffectMatchError, invariant } from '../../errors.ts';
import { immediate, readPragma, retryWhileBusy, statement } from '../../sqlite/connection.ts';

const VERSION = '1';

const SCHEMA = `
  create table if not exists meta (name text primary key not null, value text not null) strict, without rowid;
  create table if not exists marker (occurrence text primary key not null, disposition text not null, text text not null,
    seal_key text not null, seal_mac text not null) strict, without rowid;
  create table if not exists version (number integer primary key not null, folder text not null unique) strict;
  create table if not exists pointer (one integer primary key not null check (one = 1), version integer not null) strict;
  create table if not exists stage (folder text primary key not null, host text not null, pid integer not null,
    since_ms integer not null) strict, without rowid;
  create table if not exists entry (path text not null, since integer not null, until integer, kind text not null,
    mode integer, size integer not null, digest text, link text, stamp text not null,
    primary key (path, since)) strict, without rowid;
`;

/**
 * What a version contains at one path. The control file keeps the entry from the version that added
 * it to the version that ended it.
 */
export interface FileEntry {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'symlink';
  readonly mode: number | null;
  readonly size: number;
  /** SHA-256 of a file's content. */
  readonly digest: string | null;
  readonly link: string | null;
  /** The file's stamp when its digest was taken; empty for folders and links. */
  readonly stamp: string;
}

/** All entries of a version, by path. */
export type VersionEntries = ReadonlyMap<string, FileEntry>;

/** A promoted version of the folder, and the folder that contains its tree. */
export interface FolderVersion {
  readonly number: number;
  readonly folder: string;
}

/**
 * Creates missing control tables and returns the backend id, which is random and stored in the
 * file. The file also stores the only `root` that it serves, relative to the control folder,
 * because it would never switch the link of another root.
 */
export async function ensureControl(
  db: DatabaseSync,
  root: string,
  options: { readonly deadlineMs: number },
): Promise<string> {
  await retryWhileBusy(() => {
    if (readPragma(db, 'journal_mode') !== 'wal') db.exec('pragma journal_mode = wal');
  }, options);
  return await immediate(
    db,
    () => {
      db.exec(SCHEMA);
      const insert = db.prepare(
        'insert into meta (name, value) values (?, ?) on conflict do nothing',
      );
      insert.run('version', VERSION);
      insert.run('backend', randomBytes(16).toString('hex'));
      insert.run('root', root);
      const rows = db.prepare('select name, value from meta').all();
      const meta = new Map(rows.map((row) => [String(row.name), String(row.value)]));
      if (meta.get('version') !== VERSION) {
        throw new EffectMatchError(
          'ERR_EM_STORE_NEWER',
          `the control file has version ${meta.get('version')}, this release knows ${VERSION}; use the newer release`,
        );
      }
      if (meta.get('root') !== root) {
        throw new EffectMatchError(
          'ERR_EM_ADAPTER_REFUSED',
          `files: the control folder serves the root "${meta.get('root')}"; give every root a separate control folder`,
        );
      }
      return meta.get('backend') ?? '';
    },
    options,
  );
}

/** The current version; undefined before the folder is adopted. */
export function readCurrent(db: DatabaseSync): FolderVersion | undefined {
  const sql = 'select number, folder from version join pointer on pointer.version = version.number';
  const row = statement(db, sql).get();
  return row === undefined ? undefined : { number: Number(row.number), folder: String(row.folder) };
}

/** Reads all entries of a version. */
export function readEntries(db: DatabaseSync, number: number): VersionEntries {
  const sql = `select path, kind, mode, size, digest, link, stamp from entry
    where since <= ?1 and (until is null or until > ?1) order by path`;
  const entries = new Map<string, FileEntry>();
  for (const row of statement(db, sql).iterate(number))
    entries.set(String(row.path), readEntry(row));
  return entries;
}

function readEntry(row: Record<string, unknown>): FileEntry {
  const { kind, mode, digest, link } = row;
  invariant(
    kind === 'file' || kind === 'directory' || kind === 'symlink',
    'an entry has a known kind',
  );
  return {
    path: String(row.path),
    kind,
    mode: typeof mode === 'number' ? mode : null,
    size: Number(row.size),
    digest: typeof digest === 'string' ? digest : null,
    link: typeof link === 'string' ? link : null,
    stamp: String(row.stamp),
  };
}

/**
 * Writes a version in the open transaction. Only differences from the previous version need rows.
 */
export function writeVersion(
  db: DatabaseSync,
  version: FolderVersion,
  before: VersionEntries,
  after: VersionEntries,
): void {
  const { number, folder } = version;
  statement(db, 'insert into version (number, folder) values (?, ?)').run(number, folder);
  const end = statement(db, 'update entry set until = ? where path = ? and until is null');
  const begin = statement(
    db,
    'insert into entry (path, since, kind, mode, size, digest, link, stamp) values (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  for (const [path, entry] of before) if (!isSame(entry, after.get(path))) end.run(number, path);
  for (const [path, entry] of after) {
    if (isSame(entry, before.get(path))) continue;
    const { kind, mode, size, digest, link, stamp } = entry;
    begin.run(path, number, kind, mode, size, digest, link, stamp);
  }
  statement(
    db,
    'insert into pointer (one, version) values (1, ?1) on conflict (one) do update set version = ?1',
  ).run(number);
}

function isSame(one: FileEntry, other: FileEntry | undefined): boolean {
  return (
    other !== undefined && describeEntry(one) === describeEntry(other) && one.stamp === other.stamp
  );
}

/**
 * Everything lasting about an entry, as one text. Two entries are equal exactly if their texts are.
 */
export function describeEntry({ path, kind, mode, size, digest, link }: FileEntry): string {
  return JSON.stringify([path, kind, mode, kind === 'directory' ? 0 : size, digest, link]);
}

/**
 * Stores stamps that changed without the content, such as new inodes after the folder was copied.
 */
export function storeStamps(
  db: DatabaseSync,
  version: FolderVersion,
  entries: VersionEntries,
): void {
  const update = statement(
    db,
    'update entry set stamp = ?1 where path = ?2 and stamp <> ?1 and since <= ?3 and (until is null or until > ?3)',
  );
  for (const { path, stamp } of entries.values()) update.run(stamp, path, version.number);
}
