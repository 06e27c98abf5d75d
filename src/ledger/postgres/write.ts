import type { ParameterValue, WireStatement } from '../../postgres/connection.ts';
import { quoteLiteral, quoteName } from '../../postgres/identifier.ts';
import type { Queries } from './fetch.ts';
import type { FetchedTables } from './fetched.ts';

type Column = string | number | undefined;

/** The statements that write what was decided. */
export function writesOf(queries: Queries, tables: FetchedTables): readonly WireStatement[] {
  const { changes } = tables;
  const writes: WireStatement[] = [];
  const write = (name: string, rows: readonly (readonly Column[])[]) => {
    if (rows.length > 0) writes.push(queries.get(name, ...columnsOf(rows)));
  };
  const issuances = (ids: Iterable<number>) =>
    [...ids].flatMap((id) => {
      const row = tables.issuance(id);
      return row === undefined ? [] : [{ id, ...row }];
    });

  write(
    'add_issuances',
    issuances(changes.issued).map((row) => {
      const { id, issuer, nonce, claimed, license, approved, binding, sealKey, mac } = row;
      return [id, issuer, nonce, claimed, license, approved, binding, sealKey, mac];
    }),
  );
  write(
    'count_claims',
    issuances(changes.counted).map(({ id, claimed }) => [id, claimed]),
  );
  write(
    'add_rows',
    changes.rows.map((row) => {
      const { seq, kind, occurrence, slot, text, sealKey, sealMac, digest, issuance } = row;
      return [seq, kind, occurrence, slot, text, sealKey, sealMac, digest, issuance];
    }),
  );
  write(
    'add_entries',
    tables.entries(changes.entered).map((one) => [one.claim, one.execution, one.leaseUntilMs]),
  );
  write(
    'set_leases',
    tables.entries(changes.leased).map((one) => [one.claim, one.leaseUntilMs]),
  );
  if (changes.removed.size > 0)
    writes.push(queries.get('remove_entries', [...changes.removed].map(String)));
  write(
    'set_plans',
    [...changes.plans].map((task) => [task, tables.plans.get(task)]),
  );
  write(
    'add_documents',
    [...tables.kept.values()]
      .filter(({ digest }) => changes.documents.has(digest))
      .map(({ digest, text, sealKey, sealMac }) => [digest, text, sealKey, sealMac]),
  );
  write(
    'add_checkpoints',
    changes.checkpoints.map((row) => [row.throughSeq, row.text, row.sealKey, row.sealMac]),
  );
  if (changes.rows.length > 0) writes.push(queries.get('advance', String(tables.lastSeq())));
  for (const { kind, occurrence } of changes.rows)
    if (isAwaited(kind)) writes.push({ text: notifying(queries.channel, occurrence) });
  return writes;
}

/** What `ensure` waits for. */
function isAwaited(kind: string): boolean {
  return kind === 'terminal' || kind === 'resolution';
}

/** The statement, because the function of the same purpose may be closed to this login. */
function notifying(channel: string, payload: string): string {
  return `notify ${quoteName(channel)}, ${quoteLiteral(payload)}`;
}

function columnsOf(rows: readonly (readonly Column[])[]): readonly ParameterValue[] {
  const [first = []] = rows;
  return first.map((_, column) => rows.map((row) => textOf(row[column])));
}

function textOf(value: Column): string | null {
  return value === undefined ? null : String(value);
}
