import type { ParameterValue, WireStatement } from '../../postgres/connection.ts';
import type { Queries } from './fetch.ts';
import type { FetchedTables } from './fetched.ts';
import type { Belief } from './memory.ts';

/** How a decision is written, besides what it is. */
interface Writing {
  /** Do not wait for the flush. */
  readonly relaxed: boolean;
  /** The tables as the process believes them; the server refuses if they are not. */
  readonly belief?: Belief;
  /** The call is a transaction by itself, and waits at most this long for its turn. */
  readonly lockMs?: number;
}

/** The statement that writes what was decided. */
export function writeOf(
  queries: Queries,
  tables: FetchedTables,
  { relaxed, belief, lockMs }: Writing,
): WireStatement {
  const { changes } = tables;
  const { positions, occurrences, counts, issuers, nonces, tasks, revisions } = belief ?? {};
  const known = [occurrences, counts, issuers, nonces, tasks, revisions];
  const believed = [positions ?? null, ...known.map((list) => list ?? null)];
  const isNew = changes.rows.length > 0;
  const documents = [...tables.kept.values()].filter(({ digest }) => changes.documents.has(digest));
  return queries.get(
    'decide',
    ...[lockMs === undefined ? null : String(lockMs), String(relaxed)],
    ...believed,
    json(issuances(tables, changes.issued).map(issuanceColumns)),
    json(issuances(tables, changes.counted).map(({ id, claimed }) => ({ id, claimed }))),
    json(changes.rows.map(rowColumns)),
    json(tables.entries(changes.entered).map(entryColumns)),
    json(tables.entries(changes.leased).map(entryColumns)),
    changes.removed.size > 0 ? [...changes.removed].map(String) : null,
    json([...changes.plans].map((task) => ({ task, revision: tables.plans.get(task) }))),
    json(documents.map(documentColumns)),
    json(changes.checkpoints.map(checkpointColumns)),
    isNew ? String(tables.lastSeq()) : null,
    announced(tables),
  );
}

/** What `ensure` waits for. */
function announced({ changes }: FetchedTables): readonly string[] | null {
  const awaited = changes.rows.filter(({ kind }) => kind === 'terminal' || kind === 'resolution');
  return awaited.length === 0 ? null : awaited.map(({ occurrence }) => occurrence);
}

function issuances(tables: FetchedTables, ids: Iterable<number>) {
  return [...ids].flatMap((id) => {
    const row = tables.issuance(id);
    return row === undefined ? [] : [{ id, ...row }];
  });
}

type Row<Name extends 'issued' | 'row' | 'entry' | 'document' | 'checkpoint'> = {
  readonly issued: ReturnType<typeof issuances>[number];
  readonly row: FetchedTables['changes']['rows'][number];
  readonly entry: ReturnType<FetchedTables['entries']>[number];
  readonly document: NonNullable<ReturnType<FetchedTables['document']>>;
  readonly checkpoint: FetchedTables['changes']['checkpoints'][number];
}[Name];

const issuanceColumns = ({ sealKey, ...row }: Row<'issued'>) => ({ ...row, seal_key: sealKey });

const rowColumns = ({ sealKey, sealMac, ...row }: Row<'row'>) => ({
  ...row,
  seal_key: sealKey,
  seal_mac: sealMac,
});

const entryColumns = ({ claim, execution, leaseUntilMs }: Row<'entry'>) => ({
  claim,
  execution,
  lease_until_ms: leaseUntilMs,
});

const documentColumns = ({ digest, text, sealKey, sealMac }: Row<'document'>) => ({
  digest,
  text,
  seal_key: sealKey,
  seal_mac: sealMac,
});

const checkpointColumns = ({ throughSeq, text, sealKey, sealMac }: Row<'checkpoint'>) => ({
  through_seq: throughSeq,
  text,
  seal_key: sealKey,
  seal_mac: sealMac,
});

/** The list as the server reads it; nothing for an empty one. */
function json(rows: readonly object[]): ParameterValue {
  return rows.length === 0 ? null : JSON.stringify(rows);
}
