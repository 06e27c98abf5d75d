import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import { EffectMatchError, hasCode } from '../errors.ts';
import { formatCheckpoint, formatSignedCheckpoint, readCheckpoint } from './checkpoint-file.ts';
import { type Arguments, CONFIG_FLAG, type Flags, type Verb } from './command.ts';
import { type DeploymentRecords, openRecords } from './deployment.ts';
import { GuidedError } from './fault.ts';
import {
  createLineWriter,
  createMatcher,
  FILTER_FLAGS,
  type Matcher,
  readFilter,
  readJournalRows,
} from './journal-rows.ts';
import { countOf, type Output } from './output.ts';
import { catchInterrupt, showProgress } from './progress.ts';

const DEFAULT_LIMIT = 50;

const LIST_FLAGS: Flags = {
  limit: { value: 'N', about: `print at most this many rows (default ${DEFAULT_LIMIT})` },
  after: { value: 'SEQ', about: 'the rows after this number, oldest first' },
  ...FILTER_FLAGS,
  follow: {
    about: 'keep printing rows as they are recorded, until Ctrl-C; with --json one row per line',
  },
};

/** Lists, verifies or seals the journal. It never opens a backend. */
export const verb: Verb = {
  summary: 'list what happened, or check that it was not altered',
  about: `Prints the newest rows of the journal, newest last. With --verify it recomputes every
row and checkpoint and says whether the journal is intact. With --checkpoint it seals the rows
since the last checkpoint. Keep an exported checkpoint on another machine: checking against it
also detects a journal that was cut off or restored from an older copy.`,
  flags: {
    ...LIST_FLAGS,
    verify: {
      about: 'check every row and checkpoint; exit code 1 if something was altered',
      excludes: ['checkpoint', ...Object.keys(LIST_FLAGS)],
    },
    against: {
      value: 'FILE',
      about: 'with --verify: also check against an exported checkpoint',
      needs: 'verify',
    },
    checkpoint: {
      about: 'seal the rows since the last checkpoint',
      excludes: Object.keys(LIST_FLAGS),
    },
    export: {
      value: 'FILE',
      about: 'with --checkpoint: write the checkpoint to a new file',
      needs: 'checkpoint',
    },
    signed: {
      about:
        'with --export: sign it, so that `effectmatch verify` can check it with the public key',
      needs: 'export',
    },
    ...CONFIG_FLAG,
  },
  examples: [
    '--limit 10',
    '--kind terminal --json',
    '--follow --kind terminal',
    '--disposition rejected --adapter books --since 1d',
    '--checkpoint --export checkpoint-42.json',
    '--checkpoint --signed --export checkpoint-42.json',
    '--verify --against checkpoint-42.json',
  ],
  async run(args, output) {
    const listing = readListing(args);
    const [against, file] = [pathOf(args, 'against'), pathOf(args, 'export')];
    await using records = await openRecords(args);
    if (args.has('verify')) await verify(records, against, output);
    else if (args.has('checkpoint'))
      await seal(records, { file, signed: args.has('signed') }, output);
    else await list(records.ledgers, listing, output);
  },
};

/** File names are relative to the caller's folder, not to the configuration's. */
function pathOf(args: Arguments, flag: string): string | undefined {
  const given = args.value(flag);
  return given === undefined ? undefined : resolve(given);
}

function readListing(args: Arguments) {
  const limit = args.count('limit', 1) ?? DEFAULT_LIMIT;
  const filter = readFilter(args, Date.now());
  return { limit, after: args.count('after', 0), filter, follow: args.has('follow') };
}

async function list(
  ledgers: Ledgers,
  { limit, after, filter, follow }: ReturnType<typeof readListing>,
  output: Output,
): Promise<void> {
  const matches = createMatcher(ledgers, filter);
  const entries = await withProgress('reading the journal', () =>
    readJournalRows(ledgers, { limit, after, matches }),
  );
  if (follow) {
    await followRows(ledgers, { entries, after: after ?? 0, matches }, output);
    return;
  }
  output.document({ entries });
  if (entries.length === 0) output.line('no such rows: nothing of this kind has been recorded');
  const writeLine = createLineWriter(ledgers, output);
  for (const entry of output.json ? [] : entries) output.line(await writeLine(entry));
}

async function withProgress<T>(what: string, work: () => Promise<T>): Promise<T> {
  using _progress = showProgress(what);
  return await work();
}

const FOLLOW_MS = 500;

interface Following {
  /** The rows that were already read. */
  readonly entries: readonly JournalEntry[];
  readonly after: number;
  readonly matches: Matcher;
}

/** Prints new rows until Ctrl-C. Rows are numbered, so none is missed. */
async function followRows(
  ledgers: Ledgers,
  { entries, after, matches }: Following,
  output: Output,
): Promise<void> {
  using interrupt = catchInterrupt();
  const writeLine = createLineWriter(ledgers, output);
  const print = async (rows: readonly JournalEntry[]) => {
    for (const row of rows) {
      if (output.json) output.row(row);
      else output.line(await writeLine(row));
    }
  };
  await print(entries);
  let seen = entries.at(-1)?.seq ?? after;
  while ((await Promise.race([interrupt.interrupted, sleep(FOLLOW_MS)])) !== 'interrupted') {
    const [newest] = await ledgers.journal({ last: true, limit: 1 });
    const last = newest?.seq ?? 0;
    if (last <= seen) continue;
    const rows = await readJournalRows(ledgers, { limit: last - seen, after: seen, matches });
    await print(rows);
    seen = Math.max(last, rows.at(-1)?.seq ?? 0);
  }
}

async function verify(
  records: DeploymentRecords,
  against: string | undefined,
  output: Output,
): Promise<void> {
  const exported = against === undefined ? undefined : readCheckpoint(records, against);
  const verdict = await withProgress('verifying the journal', () =>
    records.ledgers.verify(exported),
  );
  if (verdict.kind === 'tampered') {
    const where = verdict.seq > 0 ? `row ${verdict.seq}: ` : '';
    const message = `the journal was tampered with: ${where}${verdict.what}`;
    throw new EffectMatchError('ERR_EM_JOURNAL_TAMPERED', message);
  }
  const { rows, checkpointed } = verdict;
  output.document({ journal: verdict, against: exported?.record ?? null });
  const intact = output.paint('good', 'intact');
  output.line(`${intact}: ${countOf(rows, 'row')}, ${checkpointed} of them sealed by a checkpoint`);
  if (exported !== undefined)
    output.line(`agrees with the exported checkpoint over rows 1 to ${exported.record.throughSeq}`);
  const open = countOf(rows - checkpointed, 'row');
  if (rows > checkpointed)
    output.line(
      `The newest ${open} could be cut off unnoticed: \`effectmatch journal --checkpoint\``,
    );
}

async function seal(
  { ledgers, keyring }: DeploymentRecords,
  { file, signed }: { readonly file: string | undefined; readonly signed: boolean },
  output: Output,
): Promise<void> {
  const checkpoint = await withProgress('sealing the journal', () => ledgers.checkpoint());
  if (checkpoint !== undefined && file !== undefined) {
    const text = signed
      ? formatSignedCheckpoint(keyring, checkpoint)
      : formatCheckpoint(checkpoint);
    exportFile(file, text);
  }
  output.document({ checkpoint: checkpoint ?? null });
  if (checkpoint === undefined) {
    output.line('nothing to seal: the journal is empty');
    return;
  }
  const { throughSeq, chain, at } = checkpoint.record;
  output.line(`sealed rows 1 to ${throughSeq} at ${at}, chain ${chain.slice(0, 16)}`);
  if (file !== undefined)
    output.line(`exported${signed ? ' and signed' : ''} to ${file}; keep it on another machine`);
}

/** An earlier export is evidence, so never overwrite it. */
function exportFile(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' });
  } catch (cause) {
    const taken = hasCode(cause, 'EEXIST');
    const why = taken ? 'the file exists and is never overwritten' : String(cause);
    const message = `the checkpoint was not exported to ${file}: ${why}`;
    const next = 'the rows are sealed anyway; name another file with --export';
    throw new GuidedError('ERR_EM_USAGE', message, next, cause);
  }
}
