import { existsSync, readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { StoredMarker } from './backends/backend.ts';
import type { Installation } from './installation.ts';

/** One journal row, as SQL returns it, with its text as plain JSON. */
export interface JournalLine {
  readonly seq: number;
  readonly kind: string;
  readonly occurrence: string;
  readonly slot: string;
  readonly record: {
    readonly occurrence?: string;
    readonly execution?: string;
    readonly task?: string;
    readonly kind?: string;
    readonly reason?: string;
    readonly claim?: string;
    readonly state?: string;
    readonly continuation?: string;
  };
}

/** What is durable, read from the files by plain SQL: no code of the product takes part. */
export interface Facts {
  /** One journal per ledger that was used on this backend. */
  readonly journals: readonly (readonly JournalLine[])[];
  readonly markers: readonly StoredMarker[];
  readonly state: readonly string[];
  /** Numbers of the operations whose dependent work ran, one entry per run. */
  readonly releases: readonly number[];
}

/** Reads everything that a verdict about an installation depends on. */
export async function readFacts(
  installation: Installation,
  ledgers: readonly string[] = [installation.site.ledger],
): Promise<Facts> {
  return {
    journals: await Promise.all(ledgers.map(readJournal)),
    markers: await installation.backend.readMarkers(installation.folder),
    state: await installation.backend.readState(installation.folder),
    releases: readLines(installation.releases).map(Number),
  };
}

/** The journal of a ledger, in a file or on a server. */
export async function readJournal(ledger: string): Promise<readonly JournalLine[]> {
  const rows = ledger.startsWith('postgres:') ? await askServer(ledger) : askFile(ledger);
  return rows.map(({ seq, kind, occurrence, slot, text }) => ({
    seq: Number(seq),
    kind: String(kind),
    occurrence: String(occurrence),
    slot: String(slot),
    record: JSON.parse(String(text)) as JournalLine['record'],
  }));
}

const COLUMNS = 'seq, kind, occurrence, slot, text';

function askFile(file: string): readonly Record<string, unknown>[] {
  const db = new DatabaseSync(file, { timeout: 10_000 });
  try {
    return db.prepare(`select ${COLUMNS} from journal order by seq`).all();
  } finally {
    db.close();
  }
}

async function askServer(url: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const sql = `select ${COLUMNS} from effectmatch_ledger.journal order by seq`;
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** The lines of a log that may not exist yet. */
export function readLines(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}
