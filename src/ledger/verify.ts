import { setImmediate as nextTurn } from 'node:timers/promises';
import type { JournalVerdict } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { EffectMatchError, type ErrorCode } from '../errors.ts';
import type { Checkpoint } from '../protocol/checkpoint.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import { BATCH, checkpointAfter } from './checkpoint.ts';
import { findClaim, openIssuance } from './claims.ts';
import { checkDocuments } from './documents.ts';
import {
  CHAIN_START,
  CLAIM_SLOT,
  extendChain,
  type JournalRow,
  type OpenedRow,
  openRow,
  settlementSlot,
} from './journal.ts';
import { assertPermitFits } from './rules.ts';
import type { LedgerTables, TableStore } from './store.ts';
import { checkRelease, findKnown, findResolution, findTerminal } from './verdicts.ts';

type Tampered = Extract<JournalVerdict, { kind: 'tampered' }>;

/** The errors that a stored text can raise if it was altered. */
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
 * Reads the whole store, one batch per turn of the event loop, and reports the first thing that was
 * altered.
 */
export async function verifyStore(
  store: TableStore,
  exported: Checkpoint | undefined,
): Promise<JournalVerdict> {
  await using snapshot = await store.openSnapshot();
  const fault = await snapshot.findStructureFault();
  if (fault !== undefined) return tamperedAt(0, fault);

  const walk = new Walk(exported);
  // Compare the sums in the read that finds no further rows.
  let totals = false;
  for (let isDone = false; !isDone; await nextTurn()) {
    const page = { afterSeq: walk.seq, limit: BATCH };
    const about = { page, neighbours: true, checkpointsAfter: walk.checkpointed, totals };
    const wrong = await snapshot.read(about, (tables) => {
      const rows = tables.page(page);
      totals = rows.length < BATCH;
      isDone = totals && about.totals;
      return walk.steps(tables, rows) ?? (isDone ? walk.end(tables) : undefined);
    });
    if (wrong !== undefined) return wrong;
  }

  for (let after: string | undefined = ''; after !== undefined; await nextTurn()) {
    const digest: string = after;
    const kept = await snapshot.read({ documentsAfter: digest }, (tables) =>
      catchEvidence(0, () => checkDocuments(tables, digest, BATCH)),
    );
    if (typeof kept === 'object') return kept;
    after = kept;
  }
  return { kind: 'intact', rows: walk.seq, checkpointed: walk.checkpointed };
}

/** Follows the chain row by row and compares it with every checkpoint. */
class Walk {
  readonly #exported: Checkpoint | undefined;
  #chain: Digest = CHAIN_START;
  #next: Sealed<Checkpoint> | undefined;
  #asked = false;
  #claims = 0;
  seq = 0;
  checkpointed = 0;

  constructor(exported: Checkpoint | undefined) {
    this.#exported = exported;
  }

  steps(tables: LedgerTables, rows: readonly JournalRow[]): Tampered | undefined {
    this.#asked = false;
    for (const row of rows) {
      const wrong = catchEvidence(row.seq, () => this.#step(tables, row));
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  #step(tables: LedgerTables, row: JournalRow): Tampered | undefined {
    if (row.seq !== this.seq + 1) return tamperedAt(this.seq + 1, 'the row is missing');
    const opened = openRow(tables.context, row);
    const wrong = checkNeighbours(tables, opened);
    if (wrong !== undefined) return tamperedAt(row.seq, wrong);
    this.seq = row.seq;
    if (opened.kind === 'claim') this.#claims += 1;
    this.#chain = extendChain(tables.context, this.#chain, opened.digest);

    if (this.#exported?.throughSeq === row.seq && this.#exported.chain !== this.#chain) {
      return tamperedAt(
        row.seq,
        'these are not the rows that the exported checkpoint was made from',
      );
    }
    const checkpoint = this.#awaited(tables);
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
   * Every row known to have existed must have been read, and none beyond the last position
   * assigned.
   */
  end(tables: LedgerTables): Tampered | undefined {
    return catchEvidence(0, () => this.#findCut(tables) ?? findStray(tables, this.#claims));
  }

  #findCut(tables: LedgerTables): Tampered | undefined {
    const given = tables.lastSeq();
    const known = Math.max(
      given,
      this.#awaited(tables)?.record.throughSeq ?? 0,
      this.#exported?.throughSeq ?? 0,
    );
    if (known > this.seq) return tamperedAt(this.seq + 1, 'the end of the journal is missing');
    return given < this.seq
      ? tamperedAt(given + 1, 'its position was never given away')
      : undefined;
  }

  /** The next checkpoint to compare with. */
  #awaited(tables: LedgerTables): Sealed<Checkpoint> | undefined {
    if (!this.#asked) {
      this.#next = checkpointAfter(tables, this.checkpointed);
      this.#asked = true;
    }
    return this.#next;
  }
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
 * Checks that everything a row depends on exists and fits, and that the other tables agree with it.
 * A claim without an `unsettled` entry would never be recovered; a verdict needs its claim.
 */
function checkNeighbours(tables: LedgerTables, row: OpenedRow): string | undefined {
  const { occurrence } = row.sealed.record;
  switch (row.kind) {
    case 'claim':
      return checkClaim(tables, row);
    case 'permit':
      assertPermitFits(tables.context, findClaim(tables, occurrence), row.sealed.record);
      return undefined;
    case 'void': {
      const holder = findClaim(tables, occurrence)?.record.execution;
      return holder === row.sealed.record.execution
        ? undefined
        : 'it voids the permit of an attempt that has no claim';
    }
    case 'terminal':
      return checkTerminal(tables, row);
    case 'acknowledgement':
      checkRelease(tables, row.sealed.record);
      return undefined;
    case 'resolution': {
      const claim = findClaim(tables, occurrence)?.record;
      const { execution, lineage } = row.sealed.record;
      const fits = claim?.execution === execution && claim.license === lineage;
      return fits ? undefined : 'it resolves an attempt that does not hold the claim';
    }
    case 'shadow':
      return tables.count(occurrence) === 1
        ? undefined
        : 'it shares its occurrence with other rows';
  }
}

function checkClaim(
  tables: LedgerTables,
  row: Extract<OpenedRow, { kind: 'claim' }>,
): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  openIssuance(tables, row.seq, row.sealed);
  const entry = tables.entry(row.seq);
  if (isSettled(tables, occurrence)) {
    return entry === undefined ? undefined : 'it has ended and is among the unsettled claims';
  }
  if (entry === undefined) return 'it has not ended and is missing among the unsettled claims';
  return entry.execution === execution
    ? undefined
    : 'its entry among the unsettled claims names another execution';
}

/** Whether the attempt that holds the occurrence has a conclusive verdict or a resolution. */
function isSettled(tables: LedgerTables, occurrence: OccurrenceId): boolean {
  const terminal = findTerminal(tables, occurrence);
  const ended = terminal !== undefined && terminal.kind !== 'indeterminate';
  return ended || findResolution(tables, occurrence) !== undefined;
}

function checkTerminal(
  tables: LedgerTables,
  row: Extract<OpenedRow, { kind: 'terminal' }>,
): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  const { first } = findKnown(tables, occurrence, execution);
  if (row.slot === settlementSlot(execution) && first?.kind !== 'indeterminate')
    return 'it settles what was not open';
  const claim = tables.find(occurrence, CLAIM_SLOT);
  const holds = claim?.kind === 'claim' && claim.sealed.record.execution === execution;
  return holds && claim.seq > row.seq ? 'it stands before the claim that it ends' : undefined;
}

/**
 * Finds entries and counts that the journal does not support. `claims` is the number of claims in
 * the journal. Each was found to be counted by its issuance, so if the sums agree, every issuance
 * counts exactly its own claims.
 */
function findStray(tables: LedgerTables, claims: number): Tampered | undefined {
  const { stray, counted } = tables.totals();
  if (stray !== undefined)
    return tamperedAt(stray, 'an unsettled claim is listed that the journal does not have');
  if (counted === claims) return undefined;
  const what = `the issuances count ${counted} claims and the journal has ${claims}: an issuance was inserted or a claim removed`;
  return tamperedAt(0, what);
}
