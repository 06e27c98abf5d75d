import { setImmediate as nextTurn } from 'node:timers/promises';
import type { JournalVerdict } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { EffectMatchError, type ErrorCode } from '../../errors.ts';
import type { Checkpoint } from '../../protocol/checkpoint.ts';
import type { Digest } from '../../protocol/record.ts';
import { retryWhileBusy } from '../../sqlite/connection.ts';
import { CHAIN_START, extendChain, type JournalRow, openRow } from '../journal.ts';
import { BATCH, checkpointAfter } from './checkpoint.ts';
import { checkNeighbours, findStray } from './cross-check.ts';
import { checkDocuments } from './documents.ts';
import { schemaDifference } from './open.ts';
import { lastSeq, pageRows, type Session } from './session.ts';

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
 * Reads the whole store through in one snapshot, a batch per turn of the event loop, and reports
 * the first thing that is not as it was written. `session` has a connection of its own: the
 * snapshot must not hold up the others.
 */
export async function verifyStore(
  session: Session,
  exported: Checkpoint | undefined,
): Promise<JournalVerdict> {
  await retryWhileBusy(() => session.db.exec('begin'), session.patience);
  const structure = await retryWhileBusy(() => checkStructure(session), session.patience);
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

/** Follows the chain row by row and compares it wherever a checkpoint says what it must be. */
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
 * Indexes that disagree with their tables, or a trigger somebody added, would make every other
 * answer worthless.
 */
function checkStructure(session: Session): Tampered | undefined {
  const difference = schemaDifference(session.db);
  if (difference !== undefined) return tamperedAt(0, `the schema was changed: ${difference}`);
  const found = String(session.db.prepare('pragma integrity_check(1)').get()?.integrity_check);
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
