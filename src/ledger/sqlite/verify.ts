import { setImmediate as nextTurn } from 'node:timers/promises';
import type { JournalVerdict } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { EffectMatchError, type ErrorCode } from '../../errors.ts';
import type { Checkpoint } from '../../protocol/checkpoint.ts';
import type { Digest, OccurrenceId } from '../../protocol/record.ts';
import { openDatabase, setPragma } from '../../sqlite/connection.ts';
import {
  CHAIN_START,
  CLAIM_SLOT,
  extendChain,
  type JournalRow,
  type OpenedRow,
  openRow,
  settlementSlot,
} from '../journal.ts';
import { assertPermitFits } from '../rules.ts';
import { BATCH, checkpointAfter } from './checkpoint.ts';
import { findClaim, openIssuance } from './claims.ts';
import { checkDocuments } from './documents.ts';
import { schemaDifference } from './open.ts';
import {
  countRows,
  createSession,
  findRow,
  lastSeq,
  pageRows,
  read,
  type Session,
} from './session.ts';
import { checkRelease, findKnown, findResolution, findTerminal } from './verdicts.ts';

type Tampered = Extract<JournalVerdict, { kind: 'tampered' }>;

/** What a stored text can fail with when it is no longer the text that was written. */
const EVIDENCE: readonly ErrorCode[] = [
  'ERR_EM_CANON_UNSUPPORTED',
  'ERR_EM_INVARIANT',
  'ERR_EM_JOURNAL_TAMPERED',
  'ERR_EM_KEY_UNKNOWN',
  'ERR_EM_RECORD_INVALID',
  'ERR_EM_RECORD_TOO_LARGE',
  'ERR_EM_SEAL_INVALID',
];

/**
 * Reads the whole store through and reports the first thing that is not as it was written. It does
 * so on a separate connection that only reads, so that its snapshot does not hold up the others.
 * Opened as read-only, SQLite would not look at CHECK constraints.
 */
export async function verifyStore(
  { context, store }: Session,
  exported: Checkpoint | undefined,
): Promise<JournalVerdict> {
  const db = openDatabase(store.file);
  try {
    setPragma(db, { name: 'query_only', value: 'on', reads: 1 });
    return await verifySnapshot(createSession(context, { ...store, db }), exported);
  } finally {
    db.close();
  }
}

/** One snapshot, a batch per turn of the event loop. */
async function verifySnapshot(
  session: Session,
  exported: Checkpoint | undefined,
): Promise<JournalVerdict> {
  await read(session, () => session.store.db.exec('begin'));
  const structure = await read(session, () => checkStructure(session));
  if (structure !== undefined) return structure;

  const walk = new Walk(session, exported);
  for (;;) {
    const rows = pageRows(session, { afterSeq: walk.seq, limit: BATCH });
    for (const row of rows) {
      const wrong = catchEvidence(row.seq, () => walk.step(row));
      if (wrong !== undefined) return wrong;
    }
    if (rows.length < BATCH) break;
    await nextTurn();
  }
  const wrong = catchEvidence(0, () => walk.end() ?? findStray(session, walk.claims));
  if (wrong !== undefined) return wrong;

  let after: string | undefined = '';
  while (after !== undefined) {
    const kept = catchEvidence(0, () => checkDocuments(session, after ?? '', BATCH));
    if (typeof kept === 'object') return kept;
    after = kept;
    await nextTurn();
  }
  return { kind: 'intact', rows: walk.seq, checkpointed: walk.checkpointed };
}

/** Follows the chain row by row and compares it with every checkpoint. */
class Walk {
  readonly #session: Session;
  readonly #exported: Checkpoint | undefined;
  #chain: Digest = CHAIN_START;
  #next: Sealed<Checkpoint> | undefined;
  #asked = false;
  seq = 0;
  claims = 0;
  checkpointed = 0;

  constructor(session: Session, exported: Checkpoint | undefined) {
    this.#session = session;
    this.#exported = exported;
  }

  step(row: JournalRow): Tampered | undefined {
    if (row.seq !== this.seq + 1) return tamperedAt(this.seq + 1, 'the row is missing');
    const opened = openRow(this.#session.context, row);
    const wrong = checkNeighbours(this.#session, opened);
    if (wrong !== undefined) return tamperedAt(row.seq, wrong);
    this.seq = row.seq;
    if (opened.kind === 'claim') this.claims += 1;
    this.#chain = extendChain(this.#session.context, this.#chain, opened.digest);

    if (this.#exported?.throughSeq === row.seq && this.#exported.chain !== this.#chain) {
      return tamperedAt(
        row.seq,
        'these are not the rows that the exported checkpoint was made from',
      );
    }
    const checkpoint = this.#awaited();
    if (checkpoint?.record.throughSeq !== row.seq) return undefined;
    if (checkpoint.record.chain !== this.#chain) {
      return tamperedAt(
        row.seq,
        `these are not the rows after ${this.checkpointed} that the checkpoint was made from`,
      );
    }
    this.checkpointed = row.seq;
    this.#asked = false;
    return undefined;
  }

  /**
   * What is known to have existed must have been seen, and nothing beyond the last position that
   * was given away.
   */
  end(): Tampered | undefined {
    const given = lastSeq(this.#session);
    const known = Math.max(
      given,
      this.#awaited()?.record.throughSeq ?? 0,
      this.#exported?.throughSeq ?? 0,
    );
    if (known > this.seq) return tamperedAt(this.seq + 1, 'the end of the journal is missing');
    return given < this.seq
      ? tamperedAt(given + 1, 'its position was never given away')
      : undefined;
  }

  /** The next checkpoint to compare with. */
  #awaited(): Sealed<Checkpoint> | undefined {
    if (!this.#asked) {
      this.#next = checkpointAfter(this.#session, this.checkpointed);
      this.#asked = true;
    }
    return this.#next;
  }
}

/**
 * Indexes that disagree with their tables, or an added trigger, would make every other answer
 * worthless.
 */
function checkStructure(session: Session): Tampered | undefined {
  const difference = schemaDifference(session.store.db);
  if (difference !== undefined) return tamperedAt(0, `the schema was changed: ${difference}`);
  const found = String(
    session.store.db.prepare('pragma integrity_check(1)').get()?.integrity_check,
  );
  return found === 'ok' ? undefined : tamperedAt(0, `the file is damaged: ${found}`);
}

function catchEvidence<T>(seq: number, check: () => T): T | Tampered {
  try {
    return check();
  } catch (error) {
    if (error instanceof EffectMatchError && EVIDENCE.includes(error.code))
      return tamperedAt(seq, error.message);
    throw error;
  }
}

function tamperedAt(seq: number, what: string): Tampered {
  return { kind: 'tampered', seq, what };
}

/**
 * Whether everything a journal row depends on is there and fits, and the other tables say the same
 * about it: a claim without its entry among the occurrences would never be recovered, a verdict
 * without its claim was never earned.
 */
function checkNeighbours(session: Session, row: OpenedRow): string | undefined {
  const { occurrence } = row.sealed.record;
  switch (row.kind) {
    case 'claim':
      return checkClaim(session, row);
    case 'permit':
      assertPermitFits(session.context, findClaim(session, occurrence), row.sealed.record);
      return undefined;
    case 'void': {
      const holder = findClaim(session, occurrence)?.record.execution;
      return holder === row.sealed.record.execution
        ? undefined
        : 'it voids the permit of an attempt that has no claim';
    }
    case 'terminal':
      return checkTerminal(session, row);
    case 'acknowledgement':
      checkRelease(session, row.sealed.record);
      return undefined;
    case 'resolution': {
      const claim = findClaim(session, occurrence)?.record;
      const { execution, lineage } = row.sealed.record;
      const fits = claim?.execution === execution && claim.license === lineage;
      return fits ? undefined : 'it resolves an attempt that does not hold the claim';
    }
    case 'shadow':
      return countRows(session, occurrence) === 1
        ? undefined
        : 'it shares its occurrence with other rows';
  }
}

function checkClaim(
  session: Session,
  row: Extract<OpenedRow, { kind: 'claim' }>,
): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  openIssuance(session, row.seq, row.sealed);
  const entry = session.sql('select execution from unsettled where claim = ?').get(row.seq);
  if (isSettled(session, occurrence)) {
    return entry === undefined ? undefined : 'it has ended and is among the unsettled claims';
  }
  if (entry === undefined) return 'it has not ended and is missing among the unsettled claims';
  return entry.execution === execution
    ? undefined
    : 'its entry among the unsettled claims names another execution';
}

/** Whether something conclusive is recorded about the attempt that holds the occurrence. */
function isSettled(session: Session, occurrence: OccurrenceId): boolean {
  const terminal = findTerminal(session, occurrence);
  const ended = terminal !== undefined && terminal.kind !== 'indeterminate';
  return ended || findResolution(session, occurrence) !== undefined;
}

function checkTerminal(
  session: Session,
  row: Extract<OpenedRow, { kind: 'terminal' }>,
): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  const { first } = findKnown(session, occurrence, execution);
  if (row.slot === settlementSlot(execution) && first?.kind !== 'indeterminate')
    return 'it settles what was not open';
  const claim = findRow(session, occurrence, CLAIM_SLOT);
  const holds = claim?.kind === 'claim' && claim.sealed.record.execution === execution;
  return holds && claim.seq > row.seq ? 'it stands before the claim that it ends' : undefined;
}

/**
 * What nothing in the journal stands behind. `claims` is how many the journal has: each of them was
 * found to be counted by its issuance, so where the sums agree every issuance counts exactly the
 * claims that were made under it.
 */
function findStray(session: Session, claims: number): Tampered | undefined {
  const stray = session.sql(STRAY).get()?.claim;
  if (stray !== undefined)
    return tamperedAt(Number(stray), 'an unsettled claim is listed that the journal does not have');
  const counted = Number(
    session.sql('select coalesce(sum(claimed), 0) as counted from issuance').get()?.counted,
  );
  if (counted === claims) return undefined;
  const what = `the issuances count ${counted} claims and the journal has ${claims}: an issuance was inserted or a claim removed`;
  return tamperedAt(0, what);
}

const STRAY = `select claim from unsettled where claim <> 0
  and not exists (select 1 from journal where seq = claim and kind = 'claim') limit 1`;
