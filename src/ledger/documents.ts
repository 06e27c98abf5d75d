import type { LedgerContext, Ledgers } from '../contract/ledgers.ts';
import { EffectMatchError, invariant } from '../errors.ts';
import type { Digest } from '../protocol/record.ts';
import { DOCUMENT_TEXT_DOMAIN, documentRecord } from './journal.ts';
import type { DocumentRow, LedgerTables, TableStore } from './store.ts';

/** Texts, each stored once under its digest. */
export function documentLedger(
  store: TableStore,
): Pick<Ledgers, 'keep' | 'keepFirst' | 'document'> {
  const find = (digest: Digest) =>
    store.read({ document: digest }, (tables) => findDocument(tables, digest));
  return {
    document: find,
    async keep(digest, text) {
      if ((await find(digest)) === text) return;
      await store.decide({ document: digest }, 'flushed', (tables) =>
        keepDocument(tables, digest, text),
      );
    },
    async keepFirst(name, text) {
      return await store.decide({ document: name }, 'flushed', (tables) => {
        const kept = findDocument(tables, name);
        if (kept === undefined) keepDocument(tables, name, text);
        else tables.touch();
        return kept ?? text;
      });
    },
  };
}

function findDocument(tables: LedgerTables, digest: Digest): string | undefined {
  const row = tables.document(digest);
  return row && openDocument(tables.context, row);
}

function keepDocument(tables: LedgerTables, digest: Digest, text: string): void {
  const kept = findDocument(tables, digest);
  invariant(kept === undefined || kept === text, 'one digest names one document');
  if (kept !== undefined) return;
  const { context } = tables;
  const { seal } = context.sealer.seal(documentRecord, describe(context, digest, text));
  tables.keep({ digest, text, sealKey: seal.key, sealMac: seal.mac });
}

/**
 * Checks at most `limit` documents after a digest, in digest order. Returns the last digest seen.
 */
export function checkDocuments(
  tables: LedgerTables,
  after: string,
  limit: number,
): string | undefined {
  const rows = tables.documentsAfter(after, limit);
  for (const row of rows) openDocument(tables.context, row);
  return rows.at(-1)?.digest;
}

function openDocument(context: LedgerContext, row: DocumentRow): string {
  const text = documentRecord.text(describe(context, row.digest, row.text));
  try {
    context.sealer.open(documentRecord, text, { key: row.sealKey, mac: row.sealMac });
  } catch (cause) {
    const what = `document ${row.digest} is not the one that was kept`;
    throw new EffectMatchError('ERR_EM_SEAL_INVALID', what, { cause });
  }
  return row.text;
}

function describe(context: LedgerContext, digest: Digest, text: string) {
  return { version: 1 as const, digest, text: context.digest(DOCUMENT_TEXT_DOMAIN, text) };
}
