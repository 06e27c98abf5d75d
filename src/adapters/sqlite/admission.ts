import { accessSync, constants, statSync } from 'node:fs';
import {
  checkVolatile,
  demandRelations,
  identifyFile,
  readValuesOption,
  refusalsOf,
  unregistrable,
} from '../../backend/setup.ts';
import { misnamedOption, misnamedRelation, type OptionNames } from '../../contract/options.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import type { SqliteCatalog } from './catalog.ts';
import { foldName } from './control.ts';
import { inspectRelation } from './relation.ts';

/** A relation to register: a name, or a name with the columns that are not compared. */
export type SqliteRelationOption =
  | string
  | { readonly name: string; readonly volatile?: readonly string[] };

/** How an application describes its database. */
export interface SqliteOptions {
  /** Path of an existing database file. */
  readonly file: string;
  /** The tables that protected operations may write. The rest of the file must not change. */
  readonly relations: readonly SqliteRelationOption[];
  /** Whether journal and receipts keep values or only their digests. Default: `plain`. */
  readonly values?: 'plain' | 'digest';
  /** Sessions report only net changes, so `net-state` is the only profile. */
  readonly profile?: 'net-state';
  /** How long to wait for other writers before an operation fails as busy. Default: 5000. */
  readonly busyTimeoutMs?: number;
}

const OPTIONS: OptionNames<SqliteOptions> = {
  file: true,
  relations: true,
  values: true,
  profile: true,
  busyTimeoutMs: true,
};
const RELATION = { name: true, volatile: true } as const;

export const refused = refusalsOf('sqlite');

/** Checks the options as far as possible without the file. */
export function checkOptions(options: SqliteOptions): void {
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
  if (typeof options.file !== 'string') throw refused('file must be the path of a database file');
  const wrong = misnamedRelation(options.relations, RELATION);
  if (wrong !== undefined) throw refused(wrong);
}

/**
 * Requires an existing, regular, writable file. Returns its identity, which must not change while
 * the adapter is open.
 */
export function admitFile(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined)
    throw refused(`there is no database file "${file}"; create it with its tables first`);
  if (!stats.isFile()) throw refused(`"${file}" is not a regular file`);
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw refused(
      `"${file}" cannot be written by this process; a promotion needs write access`,
      cause,
    );
  }
  return identifyFile(file);
}

/**
 * Checks the registration against the schema. Refuses the first relation that cannot be protected,
 * and says how to fix it.
 */
export function admitRegistration(options: SqliteOptions, catalog: SqliteCatalog): Registration {
  const profile: string = options.profile ?? 'net-state';
  if (profile !== 'net-state') {
    throw refused(
      `profile "${profile}" needs recorders, which this adapter does not have; use net-state`,
    );
  }
  const values = readValuesOption(options.values, refused);
  if (catalog.settings.encoding !== 'UTF-8') {
    throw refused(
      'the database is not encoded in UTF-8, so sessions would not report text byte by byte; convert it',
    );
  }
  if (!['wal', 'delete'].includes(String(catalog.settings.journal_mode))) {
    throw refused(
      `journal mode ${String(catalog.settings.journal_mode)} is not supported; use wal or delete`,
    );
  }
  const relations = options.relations.map((relation) =>
    typeof relation === 'string'
      ? { name: relation, volatile: [] }
      : { name: relation.name, volatile: relation.volatile ?? [] },
  );
  demandRelations(relations, refused);
  const seen = new Set<string>();
  const targets = relations.map(({ name, volatile }) => {
    const folded = foldName(name);
    if (seen.has(folded))
      throw refused(`relation "${name}" is registered twice; SQLite ignores case in names`);
    seen.add(folded);
    return admitRelation(catalog, name, volatile);
  });
  return { profile: 'net-state', values, targets };
}

function admitRelation(catalog: SqliteCatalog, name: string, volatile: readonly string[]): Target {
  const inspection = inspectRelation(catalog, name);
  if (inspection.kind === 'unusable') throw unregistrable({ name, why: inspection.why }, refused);
  const { relation } = inspection;
  const columns = relation.columns.map((column) => column.name);
  const computed = volatile.find((column) => relation.computed.includes(column));
  if (computed !== undefined)
    throw refused(
      `relation "${name}": "${computed}" is generated and never compared; leave it out of volatile`,
    );
  const target = { name, columns, key: relation.key, volatile: [...new Set(volatile)] };
  checkVolatile(target, refused);
  return target;
}
