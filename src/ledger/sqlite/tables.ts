import type { StatementSync } from 'node:sqlite';
import type { LedgerContext } from '../../contract/ledgers.ts';
import type { Digest, OccurrenceId } from '../../protocol/record.ts';
import { statement } from '../../sqlite/connection.ts';
import {
  CLAIM_SLOT,
  type JournalRow,
  type OpenedRow,
  openRow,
  rowDigest,
  tampered,
} from '../journal.ts';
import type {
  CheckpointRow,
  DocumentRow,
  IssuanceRow,
  LedgerTables,
  UnsettledEntry,
} from '../store.ts';
import type { LedgerFile } from './open.ts';
import { MIGRATIONS } from './schema.ts';

/** One connection, and the keys to check the rows it returns. */
export interface Session {
  readonly context: LedgerContext;
  readonly store: LedgerFile;
  /** Occurrences claimed on this session whose attempts have not ended on it. */
  readonly underWay: Set<string>;
  /** The compiled statement, cached for the life of the connection. */
  sql(text: string): StatementSync;
}

export function createSession(context: LedgerContext, store: LedgerFile): Session {
  return { context, store, underWay: new Set(), sql: (text) => statement(store.db, text) };
}

/** The tables of the file. Each method runs one or two statements. */
export function sqliteTables(session: Session): LedgerTables {
  const { context, store } = session;
  return {
    context,
    now: () => store.clock.now(),
    ...journalTables(session),
    ...listTables(session),
    ...claimTables(session),
    ...keptTables(session),
    // Writes the header page without changing it. SQLite skips the write if a row is updated to the
    // same values.
    touch: () => store.db.exec(`pragma user_version = ${MIGRATIONS.length}`),
  };
}

const ROWS =
  'select seq, kind, occurrence, slot, text, seal_key as sealKey, seal_mac as sealMac, digest from journal';
const ROW_IN_SLOT = `${ROWS} where occurrence = ? and slot = ?`;
const ROWS_OF_OCCURRENCE = `${ROWS} where occurrence = ?`;
const ROWS_OF_KIND = `${ROWS} where occurrence = ? and kind = ? order by seq`;
const APPEND =
  'insert into journal (seq, kind, occurrence, slot, text, seal_key, seal_mac, digest, issuance) ' +
  'values (?, ?, ?, ?, ?, ?, ?, ?, ?)';
const LAST_POSITION = 'select positions from unsettled where claim = 0';
// Faster than one statement with RETURNING, for which SQLite builds a table.
const TAKE_POSITION = 'update unsettled set positions = ? where claim = 0';
const CLAIMED_TRACE =
  "select seq from journal where occurrence = ? and (kind <> 'terminal' or text ->> '$.claim' is not null) limit 1";
const SEARCH =
  'select distinct occurrence from journal where occurrence >= ? and occurrence < ? order by occurrence limit 10';
const UNCOMPLETED = `${ROWS} as released
  where kind = 'acknowledgement' and slot like 'released:%' and not exists (select 1 from journal as completed
    where completed.occurrence = released.occurrence and completed.slot =
      'completed:' || substr(released.slot, 10, instr(released.slot || '#', '#') - 10))
  order by seq`;

/** Limits the set: attempts that another process ended are never removed from it. */
const UNDER_WAY_MAX = 256;

type JournalTables = 'lastSeq' | 'find' | 'findAll' | 'count' | 'findClaimedTrace' | 'append';

function journalTables(session: Session): Pick<LedgerTables, JournalTables> {
  const { context, sql, underWay } = session;
  return {
    lastSeq: () => positionIn(sql(LAST_POSITION).get()),
    find(occurrence, slot) {
      const row = sql(ROW_IN_SLOT).get(occurrence, slot);
      return row && openRow(context, asRow(row));
    },
    findAll(occurrence, slots) {
      const found = new Map<string, OpenedRow>();
      // An occurrence has few rows: its own, and a bounded number of refusals.
      for (const row of sql(ROWS_OF_OCCURRENCE).all(occurrence).map(asRow))
        if (slots.includes(row.slot)) found.set(row.slot, openRow(context, row));
      return found;
    },
    count(occurrence) {
      const row = sql('select count(*) as found from journal where occurrence = ?').get(occurrence);
      return Number(row?.found);
    },
    findClaimedTrace(occurrence) {
      const row = sql(CLAIMED_TRACE).get(occurrence);
      return row && Number(row.seq);
    },
    append(kind, slot, { record, text, seal }, issuance) {
      const seq = positionIn(sql(LAST_POSITION).get()) + 1;
      sql(TAKE_POSITION).run(seq);
      const { occurrence } = record;
      const { key, mac } = seal;
      const digest = rowDigest(context, { seq, kind, slot, sealKey: key, sealMac: mac });
      sql(APPEND).run(seq, kind, occurrence, slot, text, key, mac, digest, issuance ?? null);
      if (kind === 'terminal') underWay.delete(occurrence);
      if (kind === 'claim') {
        if (underWay.size === UNDER_WAY_MAX) underWay.clear();
        underWay.add(occurrence);
      }
      return seq;
    },
  };
}

type ListTables = 'list' | 'page' | 'search' | 'uncompleted';

function listTables({ context, sql }: Session): Pick<LedgerTables, ListTables> {
  return {
    list: <K>(occurrence: string, kind: string) => {
      const rows = sql(ROWS_OF_KIND).all(occurrence, kind);
      return rows.map((row) => openRow(context, asRow(row))) as Extract<OpenedRow, { kind: K }>[];
    },
    page({ afterSeq, limit, last = false, occurrence }) {
      const rest = `order by seq ${last ? 'desc' : 'asc'} limit ?`;
      const rows =
        occurrence === undefined
          ? sql(`${ROWS} where seq > ? ${rest}`).all(afterSeq, limit)
          : sql(`${ROWS} where occurrence = ? and seq > ? ${rest}`).all(
              occurrence,
              afterSeq,
              limit,
            );
      return rows.map(asRow);
    },
    search(prefix) {
      const rows = sql(SEARCH).all(prefix, `${prefix}\u{10ffff}`);
      return rows.map(({ occurrence }) => occurrence as OccurrenceId);
    },
    uncompleted: () =>
      sql(UNCOMPLETED)
        .all()
        .map((row) => openRow(context, asRow(row))),
  };
}

function positionIn(row: { readonly positions?: unknown } | undefined): number {
  if (typeof row?.positions !== 'number') throw tampered('the count of positions', 'it is missing');
  return row.positions;
}

/** The tables are STRICT, so the columns have these types. `openRow` checks the values. */
function asRow(row: object): JournalRow {
  return row as JournalRow;
}

const RAISE =
  'insert into plan (task, revision) values (?, ?) ' +
  'on conflict (task) do update set revision = max(plan.revision, excluded.revision) returning revision';
const CLAIM_OF = `claim = (select seq from journal where occurrence = ? and slot = '${CLAIM_SLOT}')`;
const RENEW = `update unsettled set lease_until_ms = max(lease_until_ms, ?) where ${CLAIM_OF} and execution = ?`;
const END_LEASE = `update unsettled set lease_until_ms = min(lease_until_ms, ?) where ${CLAIM_OF} and execution = ?`;
const SETTLE = `delete from unsettled where ${CLAIM_OF}`;
const ENTER = 'insert into unsettled (claim, execution, lease_until_ms) values (?, ?, ?)';
const STANDING =
  'select (select revision from plan where task = ?) as announced, exists (select 1 from journal ' +
  `join unsettled on claim = seq where occurrence = ? and slot = '${CLAIM_SLOT}' and execution = ?) as holds`;
const ENTRIES =
  'select claim, execution, lease_until_ms as leaseUntilMs, ' +
  '(select occurrence from journal where seq = claim) as occurrence from unsettled';
const UNSETTLED = `${ENTRIES} where claim > 0 and lease_until_ms <= ? order by claim`;
const ISSUED =
  'select (select revision from plan where task = ?) as announced, ' +
  '(select count(*) from journal where occurrence = ?) as traces, id, claimed, binding ' +
  'from (select 1) left join issuance on issuer = ? and nonce = ?';
const ISSUE =
  'insert into issuance (issuer, nonce, claimed, license, approved, binding, seal_key, mac) values (?, ?, ?, ?, ?, ?, ?, ?)';
const ISSUANCES =
  'select issuer, nonce, claimed, license, approved, binding, seal_key as sealKey, mac from issuance';

type ClaimTables =
  | 'announce'
  | 'issuedBefore'
  | 'issue'
  | 'countClaim'
  | 'issuance'
  | 'issuanceOf'
  | 'enter'
  | 'settle'
  | 'extendLease'
  | 'endLease'
  | 'standing'
  | 'entry'
  | 'unsettled';

function claimTables({ sql, store }: Session): Pick<LedgerTables, ClaimTables> {
  return {
    announce: (task, revision) => Number(sql(RAISE).get(task, revision)?.revision),
    issuedBefore({ license, binding }) {
      const { task, issuer, nonce } = license;
      const first = binding.occurrences[0] ?? null;
      const row = sql(ISSUED).get(task, first, issuer, nonce) as unknown as IssuedRow;
      const { id, traces } = row;
      const issued = id === null ? undefined : { id, claimed: row.claimed, binding: row.binding };
      return { announced: row.announced ?? undefined, traces, issued };
    },
    issue({ issuer, nonce, claimed, license, approved, binding, sealKey, mac }) {
      const texts = [license, approved, binding, sealKey, mac] as const;
      return Number(sql(ISSUE).run(issuer, nonce, claimed, ...texts).lastInsertRowid);
    },
    countClaim(id) {
      sql('update issuance set claimed = claimed + 1 where id = ?').run(id);
    },
    issuance: (id) => sql(`${ISSUANCES} where id = ?`).get(id) as IssuanceRow | undefined,
    issuanceOf: (claim) =>
      sql(`${ISSUANCES} where id = (select issuance from journal where seq = ?)`).get(claim) as
        | IssuanceRow
        | undefined,
    enter(claim, execution, untilMs) {
      sql(ENTER).run(claim, execution, untilMs);
    },
    settle: (occurrence) => sql(SETTLE).run(occurrence).changes === 1,
    extendLease: ({ occurrence, execution }, untilMs) =>
      sql(RENEW).run(untilMs, occurrence, execution).changes === 1,
    endLease: ({ occurrence, execution }, atMs) =>
      sql(END_LEASE).run(atMs, occurrence, execution).changes === 1,
    standing(task, { occurrence, execution }) {
      const row = sql(STANDING).get(task, occurrence, execution);
      const announced = (row?.announced as number | null) ?? undefined;
      return { announced, open: row?.holds === 1 };
    },
    entry: (claim) => sql(`${ENTRIES} where claim = ?`).get(claim) as UnsettledEntry | undefined,
    unsettled(which) {
      const latest = which === 'all' ? Number.MAX_SAFE_INTEGER : store.clock.now();
      return sql(UNSETTLED).all(latest) as unknown as readonly UnsettledEntry[];
    },
  };
}

type IssuedRow = { readonly announced: number | null; readonly traces: number } & (
  | { readonly id: null }
  | (Pick<IssuanceRow, 'claimed' | 'binding'> & { readonly id: number })
);

const DOCUMENTS = 'select digest, text, seal_key as sealKey, seal_mac as sealMac from document';
const CHECKPOINTS =
  'select through_seq as throughSeq, text, seal_key as sealKey, seal_mac as sealMac from checkpoint';
const STRAY = `select claim from unsettled where claim <> 0
  and not exists (select 1 from journal where seq = claim and kind = 'claim') limit 1`;

type KeptTables =
  | 'document'
  | 'keep'
  | 'documentsAfter'
  | 'newestCheckpoint'
  | 'checkpointAfter'
  | 'addCheckpoint'
  | 'totals';

function keptTables({ sql }: Session): Pick<LedgerTables, KeptTables> {
  return {
    document: (digest: Digest) =>
      sql(`${DOCUMENTS} where digest = ?`).get(digest) as DocumentRow | undefined,
    keep({ digest, text, sealKey, sealMac }) {
      sql('insert into document (digest, text, seal_key, seal_mac) values (?, ?, ?, ?)').run(
        digest,
        text,
        sealKey,
        sealMac,
      );
    },
    documentsAfter: (digest, limit) =>
      sql(`${DOCUMENTS} where digest > ? order by digest limit ?`).all(
        digest,
        limit,
      ) as unknown as readonly DocumentRow[],
    newestCheckpoint: () =>
      sql(`${CHECKPOINTS} order by through_seq desc limit 1`).get() as CheckpointRow | undefined,
    checkpointAfter: (seq) =>
      sql(`${CHECKPOINTS} where through_seq > ? order by through_seq limit 1`).get(seq) as
        | CheckpointRow
        | undefined,
    addCheckpoint({ throughSeq, text, sealKey, sealMac }) {
      sql('insert into checkpoint (through_seq, text, seal_key, seal_mac) values (?, ?, ?, ?)').run(
        throughSeq,
        text,
        sealKey,
        sealMac,
      );
    },
    totals() {
      const stray = sql(STRAY).get()?.claim;
      const sum = sql('select coalesce(sum(claimed), 0) as counted from issuance').get();
      return {
        stray: stray === undefined ? undefined : Number(stray),
        counted: Number(sum?.counted),
      };
    },
  };
}
