import type { Ledgers } from '../../contract/ledgers.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import type { Digest } from '../../protocol/record.ts';
import { DOCUMENT_TEXT_DOMAIN, documentRecord } from '../journal.ts';
import { read, type Session, writeFlushed } from './session.ts';

/** Texts that are kept once under their digest. */
export function documentLedger(session: Session): Pick<Ledgers, 'keep' | 'document'> {
  const find = (digest: Digest) => read(session, () => findDocument(session, digest));
  return {
    document: find,
    async keep(digest, text) {
      if ((await find(digest)) === text) return;
      await writeFlushed(session, () => keepDocument(session, digest, text));
    },
  };
}

function findDocument(session: Session, digest: Digest): string | undefined {
  const row = session.sql(`${DOCUMENTS} where digest = ?`).get(digest);
  return row && openDocument(session, row as unknown as DocumentRow);
}

function keepDocument(session: Session, digest: Digest, text: string): void {
  const kept = findDocument(session, digest);
  invariant(kept === undefined || kept === text, 'one digest names one document');
  if (kept !== undefined) return;
  const { seal } = session.context.sealer.seal(documentRecord, describe(session, digest, text));
  session.sql(INSERT).run(digest, text, seal.key, seal.mac);
}

/**
 * Checks the documents after a digest, in order of digest, at most `limit`; returns the last digest
 * seen.
 */
export function checkDocuments(session: Session, after: string, limit: number): string | undefined {
  const rows = session
    .sql(`${DOCUMENTS} where digest > ? order by digest limit ?`)
    .all(after, limit) as unknown as readonly DocumentRow[];
  for (const row of rows) openDocument(session, row);
  return rows.at(-1)?.digest;
}

const INSERT = 'insert into document (digest, text, seal_key, seal_mac) values (?, ?, ?, ?)';
const DOCUMENTS = 'select digest, text, seal_key as sealKey, seal_mac as sealMac from document';

interface DocumentRow {
  readonly digest: Digest;
  readonly text: string;
  readonly sealKey: string;
  readonly sealMac: string;
}

function openDocument(session: Session, row: DocumentRow): string {
  const text = documentRecord.text(describe(session, row.digest, row.text));
  try {
    session.context.sealer.open(documentRecord, text, { key: row.sealKey, mac: row.sealMac });
  } catch (cause) {
    const what = `document ${row.digest} is not the one that was kept`;
    throw new EffectMatchError('ERR_EM_SEAL_INVALID', what, { cause });
  }
  return row.text;
}

function describe(session: Session, digest: Digest, text: string) {
  return { version: 1 as const, digest, text: session.context.digest(DOCUMENT_TEXT_DOMAIN, text) };
}
