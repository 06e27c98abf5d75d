import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import type { CheckedSqliteAction } from '../../../src/adapters/sqlite/action.ts';
import { openAdapter } from '../../../src/adapters/sqlite/adapter.ts';
import type { SqliteOptions } from '../../../src/adapters/sqlite/index.ts';
import type {
  CandidateFacts,
  Evidence,
  PromotableAdapter,
  Promotion,
  Stage,
  Staged,
} from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import type {
  Certificate,
  Claim,
  ConsumedPermit,
  MarkerText,
} from '../../../src/contract/proof.ts';
import { type Reached, unobserved } from '../../../src/contract/steps.ts';
import { establish } from '../../../src/protocol/observation.ts';

/** What `open` gives. */
export type SqliteAdapter = PromotableAdapter<CheckedSqliteAction>;

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-sqlite-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let names = 0;

/** A path in a folder that is removed after the test file. */
export function freshPath(): string {
  names += 1;
  return join(folder, `${names}.db`);
}

/** A database file with this schema. */
export function freshFile(schema: string): string {
  const file = freshPath();
  change(file, schema);
  return file;
}

/**
 * Runs statements as someone else would: with a plain connection that knows nothing of the adapter.
 */
export function change(file: string, sql: string): void {
  using db = new DatabaseSync(file);
  db.exec(sql);
}

/** What an independent connection finds in the file. */
export function look(file: string, sql: string): unknown[] {
  using db = new DatabaseSync(file, { readOnly: true });
  return db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }));
}

/**
 * Everything durable in the file as text: every row of every table, the schema, and the file's own
 * settings.
 */
export function dump(file: string): string {
  using db = new DatabaseSync(file, { readOnly: true });
  const tables = db
    .prepare("select name from sqlite_schema where type = 'table' order by name")
    .all();
  const quoted = (name: unknown) => `"${String(name).replaceAll('"', '""')}"`;
  const settings = ['schema_version', 'user_version', 'application_id', 'journal_mode', 'encoding'];
  const lines = [
    ...settings.map((name) => JSON.stringify(db.prepare(`pragma ${name}`).get())),
    ...db
      .prepare('select type, name, sql from sqlite_schema order by name')
      .all()
      .map((row) => JSON.stringify(row)),
    ...tables.flatMap(({ name }) => {
      const columns = db.prepare(`pragma table_xinfo(${quoted(name)})`).all();
      const cells = columns.map(
        (column) => `typeof(${quoted(column.name)}) || ' ' || quote(${quoted(column.name)})`,
      );
      const rows = db.prepare(
        `select ${cells.map((cell, index) => `${cell} as c${index}`).join(', ')} from ${quoted(name)}`,
      );
      return rows
        .all()
        .map((row) => `${String(name)}: ${JSON.stringify(Object.values(row))}`)
        .sort();
    }),
  ];
  return lines.join('\n');
}

/** A second file with the same content. */
export function copyOf(file: string): string {
  const copy = freshPath();
  copyFileSync(file, copy);
  return copy;
}

/** The adapter as the runtime would open it; closed by `using`. */
export async function open(
  options: SqliteOptions,
  reached: Reached = unobserved,
): Promise<SqliteAdapter & AsyncDisposable> {
  const adapter = await openAdapter(
    { busyTimeoutMs: 0, ...options },
    { name: 'books', clock: systemClock, reached },
  );
  return Object.assign(adapter, { [Symbol.asyncDispose]: () => adapter.close() });
}

let occurrences = 0;

/** Occurrence ids that no other test uses. */
export function freshOccurrence(): string {
  occurrences += 1;
  return `occ_${String(occurrences).padStart(40, '0')}`;
}

/** Stages an action after a survey, as the runtime does. */
export async function stage(
  adapter: SqliteAdapter,
  action: unknown,
  occurrence = freshOccurrence(),
): Promise<Staged> {
  await adapter.survey();
  const claim = { sealed: { record: { occurrence } } } as unknown as Claim;
  return await adapter.stage(claim, {} as unknown as Certificate, adapter.parseAction(action));
}

/** A stage that must be held. */
export async function held(
  adapter: SqliteAdapter,
  action: unknown,
  occurrence?: string,
): Promise<Stage> {
  const staged = await stage(adapter, action, occurrence);
  assert.equal(
    staged.kind,
    'held',
    staged.kind === 'failed' ? `${staged.reason}: ${staged.detail}` : '',
  );
  return staged.kind === 'held' ? staged.stage : assert.fail();
}

/** Observes an action in a stage that is thrown away again. */
export async function observe(adapter: SqliteAdapter, action: unknown): Promise<Evidence> {
  await using candidate = await held(adapter, action);
  return await candidate.observe();
}

/** Why the core would not take this evidence for complete; empty when it would. */
export function gapsOf(adapter: SqliteAdapter, evidence: Evidence): readonly string[] {
  const observation = establish(evidence, adapter.registration, adapter.channels);
  return observation.kind === 'incomplete' ? observation.gaps : [];
}

export function marker(
  occurrence: string,
  disposition: 'committed' | 'void' = 'committed',
): MarkerText {
  return {
    occurrence,
    disposition,
    text: `{"for":"${occurrence}"}`,
    sealKey: 'key',
    sealMac: 'mac',
  };
}

/** A permit for a stage that was opened with {@link stage}. */
export function permit(
  occurrence: string,
  { candidate, evidence }: CandidateFacts,
): ConsumedPermit {
  const record = { occurrence, bound: { candidate, evidence } };
  return { record, marker: marker(occurrence) } as unknown as ConsumedPermit;
}

/** Observes a candidate and promotes what was seen. */
export async function promote(candidate: Stage, occurrence: string): Promise<Promotion> {
  return await candidate.promote(permit(occurrence, await candidate.observe()));
}
