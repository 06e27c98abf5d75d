import type { ParameterValue, WireStatement } from '../../postgres/connection.ts';
import { TextList } from '../../postgres/frames.ts';
import type { Queries } from './fetch.ts';
import type { FetchedTables } from './fetched.ts';
import type { Belief } from './memory.ts';

/** How to write a decision. */
interface Writing {
  /** Do not wait for the flush. */
  readonly relaxed: boolean;
  /** What this process believes about the tables; the server refuses if it is wrong. */
  readonly belief?: Belief;
  /** A decision relies on the server's log, which this session is known to write to. */
  readonly sameLog?: boolean;
  /** The call is a whole transaction, and waits this long for the lock; 0 if the session knows. */
  readonly lockMs?: number;
}

/** The statement that writes the decisions. */
export function writeOf(
  queries: Queries,
  tables: FetchedTables,
  { relaxed, belief, lockMs, sameLog = false }: Writing,
): WireStatement {
  const { changes } = tables;
  const issued = issuances(tables, changes.issued);
  const { positions, occurrences, counts, unused = [], tasks, revisions } = belief ?? {};
  // A nonce that is issued here needs no look-up: the unique key refuses it if it was used.
  const asked = issued.length < unused.length ? unused : [];
  const [issuers, nonces] = [asked.map(({ issuer }) => issuer), asked.map(({ nonce }) => nonce)];
  const known = [occurrences, counts, issuers, nonces, tasks, revisions];
  const believed = [positions ?? null, ...known.map((one) => (one?.length ? one : null))];
  const isNew = changes.rows.length > 0;
  const documents = [...tables.kept.values()].filter(({ digest }) => changes.documents.has(digest));
  return queries.get(
    'decide',
    ...[lockMs === undefined ? null : String(lockMs), String(relaxed)],
    ...believed,
    texts(issued.map(issuanceColumns)),
    list(issuances(tables, changes.counted).map(({ id, claimed }) => [id, claimed])),
    texts(changes.rows.map(rowColumns)),
    texts(tables.entries(changes.entered).map(entryColumns)),
    list(tables.entries(changes.leased).map(({ claim, leaseUntilMs }) => [claim, leaseUntilMs])),
    list([...changes.removed].map((claim) => [claim])),
    texts([...changes.plans].map((task) => [task, tables.plans.get(task)])),
    texts(documents.map(documentColumns)),
    texts(changes.checkpoints.map(checkpointColumns)),
    isNew ? String(tables.lastSeq()) : null,
    announced(tables),
    String(sameLog),
  );
}

/** The occurrences with a new verdict or resolution, which `ensure` waits for. */
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

/** The columns of a row, in the order that the `decide` function expects. */
type Columns = readonly (string | number | null | undefined)[];

const issuanceColumns = (row: Row<'issued'>): Columns => {
  const { id, issuer, nonce, claimed, license, approved, binding, sealKey, mac } = row;
  return [id, issuer, nonce, claimed, license, approved, binding, sealKey, mac];
};

const rowColumns = (row: Row<'row'>): Columns => {
  const { seq, kind, occurrence, slot, text, sealKey, sealMac, digest, issuance } = row;
  return [seq, kind, occurrence, slot, text, sealKey, sealMac, digest, issuance];
};

const entryColumns = ({ claim, execution, leaseUntilMs }: Row<'entry'>): Columns => [
  claim,
  execution,
  leaseUntilMs,
];

const documentColumns = ({ digest, text, sealKey, sealMac }: Row<'document'>): Columns => [
  digest,
  text,
  sealKey,
  sealMac,
];

const checkpointColumns = ({ throughSeq, text, sealKey, sealMac }: Row<'checkpoint'>): Columns => [
  throughSeq,
  text,
  sealKey,
  sealMac,
];

/** Rows as one list of texts; null if there are none. */
export function texts(rows: readonly Columns[]): ParameterValue {
  return rows.length === 0 ? null : new TextList(flatten(rows));
}

/** Rows of numbers as one list; null if there are none. */
function list(rows: readonly Columns[]): ParameterValue {
  return rows.length === 0 ? null : flatten(rows);
}

function flatten(rows: readonly Columns[]): readonly (string | null)[] {
  return rows.flatMap((row) => row.map((value) => (value == null ? null : String(value))));
}
