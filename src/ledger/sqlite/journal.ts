import type { Ledgers } from '../../contract/ledgers.ts';
import { checkpointRecord } from '../../protocol/checkpoint.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import { entryOf, openRow } from '../journal.ts';
import { makeCheckpoint } from './checkpoint.ts';
import { guarded, pageRows, read, type Session } from './session.ts';
import { verifyStore } from './verify.ts';

type JournalMethods = 'journal' | 'search' | 'checkpoint' | 'verify';

/** The journal as readers see it, and the checkpoints that chain its rows. */
export function journalLedger(session: Session): Pick<Ledgers, JournalMethods> {
  const { context } = session;
  return {
    async journal({ afterSeq = 0, limit = 100, last = false, occurrence } = {}) {
      const range = { afterSeq, limit: Math.max(0, limit), occurrence };
      const rows = await read(session, () => pageRows(session, range, last ? 'desc' : 'asc'));
      const ordered = last ? rows.reverse() : rows;
      return ordered.map((row) => entryOf(openRow(context, row)));
    },
    async search(prefix) {
      const rows = await read(session, () =>
        session.sql(SEARCH).all(prefix, `${prefix}\u{10ffff}`),
      );
      return rows.map(({ occurrence }) => occurrence as OccurrenceId);
    },
    checkpoint: () => makeCheckpoint(session),
    async verify(exported) {
      const known = exported && context.sealer.open(checkpointRecord, exported.text, exported.seal);
      return await guarded(session.store, verifyStore(session, known?.record));
    },
  };
}

const SEARCH =
  'select distinct occurrence from journal where occurrence >= ? and occurrence < ? order by occurrence limit 10';
