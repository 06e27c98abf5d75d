import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import { EffectMatchError } from '../errors.ts';
import { type Arguments, CONFIG_FLAG } from './arguments.ts';
import { formatCheckpoint, formatSignedCheckpoint, readCheckpoint } from './checkpoint-file.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { GuidedError, usageError } from './guided-error.ts';
import { createLineWriter, readEntries } from './journal-entries.ts';
import { createMatcher, FILTER_FLAGS, type Filter, readFilter } from './journal-filter.ts';
import { loadConfig } from './load-config.ts';
import { openStore, type Store } from './open-store.ts';
import type { Output } from './output.ts';
import { catchInterrupt, showProgress } from './progress.ts';
import type { Verb } from './verb.ts';

const DEFAULT_LIMIT = 50;

/** Lists, verifies or seals the journal. It opens keyring and store only, never a backend. */
export const journal: Verb = {
  name: 'journal',
  summary: 'list what happened, or check that it was not altered',
  about: `Prints the newest rows of the journal, newest last. With --verify it recomputes every row and checkpoint and
says whether the journal is intact. With --checkpoint it seals the rows since the last checkpoint. Keep an
exported checkpoint on another machine: checked against it, even a journal whose end was cut off, or a whole
store that was put back to an earlier day, is found out.`,
  positionals: [],
  flags: {
    limit: { value: 'N', about: `at most so many rows (default ${DEFAULT_LIMIT})` },
    after: { value: 'SEQ', about: 'the rows that follow this number, oldest first' },
    ...FILTER_FLAGS,
    follow: {
      about: 'go on printing rows as they are recorded, until Ctrl-C; with --json one row per line',
    },
    verify: { about: 'check every row and checkpoint; exit code 1 when something was altered' },
    against: { value: 'FILE', about: 'with --verify: also check against an exported checkpoint' },
    checkpoint: { about: 'seal the rows since the last checkpoint' },
    export: { value: 'FILE', about: 'with --checkpoint: write the checkpoint to a new file' },
    signed: {
      about:
        'with --export: sign it, so that `effectmatch verify` can check it with the public key',
    },
    ...CONFIG_FLAG,
  },
  examples: [
    'effectmatch journal --limit 10',
    'effectmatch journal --kind terminal --json',
    'effectmatch journal --follow --kind terminal',
    'effectmatch journal --disposition rejected --adapter books --since 1d',
    'effectmatch journal --checkpoint --export checkpoint-42.json',
    'effectmatch journal --checkpoint --signed --export checkpoint-42.json',
    'effectmatch journal --verify --against checkpoint-42.json',
  ],
  async run(args, output) {
    const request = readRequest(args);
    const config = await loadConfig(args);
    await using store = await openStore(config);
    switch (request.mode) {
      case 'verify':
        return await verify(store, request.against, output);
      case 'checkpoint':
        return await seal(store, request, output);
      case 'list':
        return await list(store, request, output);
    }
  },
};

interface Listing {
  readonly limit: number;
  readonly after: number | undefined;
  readonly filter: Filter;
  readonly follow: boolean;
}

type Request =
  | { readonly mode: 'verify'; readonly against: string | undefined }
  | { readonly mode: 'checkpoint'; readonly file: string | undefined; readonly signed: boolean }
  | ({ readonly mode: 'list' } & Listing);

/**
 * One mode, with only the flags that belong to it. File names count from where the command was
 * called.
 */
function readRequest(args: Arguments): Request {
  const mode = args.has('verify') ? 'verify' : args.has('checkpoint') ? 'checkpoint' : 'list';
  const belongs = {
    verify: ['verify', 'against'],
    checkpoint: ['checkpoint', 'export', 'signed'],
    list: ['limit', 'after', 'follow', ...Object.keys(FILTER_FLAGS)],
  };
  for (const [owner, flags] of Object.entries(belongs)) {
    const stray = owner === mode ? undefined : flags.find((flag) => args.has(flag));
    if (stray === undefined) continue;
    const why = mode === 'list' ? `needs --${owner}` : `does not go together with --${mode}`;
    throw usageError(`--${stray} ${why}`, 'journal');
  }
  const pathOf = (flag: string) => {
    const given = args.value(flag);
    return given === undefined ? undefined : resolve(given);
  };
  if (mode === 'verify') return { mode, against: pathOf('against') };
  if (mode === 'checkpoint') {
    if (args.has('signed') && !args.has('export'))
      throw usageError('--signed needs --export', 'journal');
    return { mode, file: pathOf('export'), signed: args.has('signed') };
  }
  const filter = readFilter(args, Date.now());
  const limit = args.count('limit', 1) ?? DEFAULT_LIMIT;
  return { mode, limit, after: args.count('after', 0), filter, follow: args.has('follow') };
}

async function list({ ledgers }: Store, listing: Listing, output: Output): Promise<ExitCode> {
  const matches = createMatcher(ledgers, listing.filter);
  const entries = await withProgress('reading the journal', () =>
    readEntries(ledgers, { ...listing, matches }),
  );
  if (!listing.follow) output.document({ entries });
  if (entries.length === 0 && !listing.follow)
    output.line('no such rows: nothing of this kind has been recorded');
  const print = createPrinter(ledgers, output);
  if (listing.follow || !output.json) for (const entry of entries) await print(entry);
  if (!listing.follow) return EXIT.done;
  await follow(ledgers, { after: entries.at(-1)?.seq ?? listing.after ?? 0, matches }, print);
  return EXIT.done;
}

async function withProgress<T>(what: string, work: () => Promise<T>): Promise<T> {
  using _progress = showProgress(what);
  return await work();
}

type Asked = Parameters<typeof readEntries>[1];

/** Prints a row for people, or as one line of JSON where there is no end to wait for. */
function createPrinter(ledgers: Ledgers, output: Output): (entry: JournalEntry) => Promise<void> {
  const writeLine = createLineWriter(ledgers, output);
  return async (entry) => {
    if (output.json) output.row(entry);
    else output.line(await writeLine(entry));
  };
}

const FOLLOW_MS = 500;

/**
 * Asks for what is new twice a second until somebody interrupts; rows are never missed, because
 * they are numbered.
 */
async function follow(
  ledgers: Ledgers,
  asked: { readonly after: number; readonly matches: Asked['matches'] },
  print: (entry: JournalEntry) => Promise<void>,
): Promise<void> {
  using interrupt = catchInterrupt();
  let { after } = asked;
  while ((await Promise.race([interrupt.interrupted, sleep(FOLLOW_MS)])) !== 'interrupted') {
    const [newest] = await ledgers.journal({ last: true, limit: 1 });
    if (newest === undefined || newest.seq <= after) continue;
    const limit = newest.seq - after;
    const entries = await readEntries(ledgers, { limit, after, matches: asked.matches });
    for (const entry of entries) await print(entry);
    after = Math.max(newest.seq, entries.at(-1)?.seq ?? 0);
  }
}

async function verify(
  store: Store,
  against: string | undefined,
  output: Output,
): Promise<ExitCode> {
  const exported = against === undefined ? undefined : readCheckpoint(store, against);
  const verdict = await withProgress('verifying the journal', () => store.ledgers.verify(exported));
  if (verdict.kind === 'tampered') {
    const where = verdict.seq > 0 ? `row ${verdict.seq}: ` : '';
    throw new EffectMatchError(
      'ERR_EM_JOURNAL_TAMPERED',
      `the journal was tampered with: ${where}${verdict.what}`,
    );
  }
  const { rows, checkpointed } = verdict;
  output.document({ journal: verdict, against: exported?.record ?? null });
  const open = rows - checkpointed;
  output.line(
    `${output.paint('good', 'intact')}: ${countOf(rows, 'row')}, ${checkpointed} of them sealed by a checkpoint`,
  );
  if (exported !== undefined)
    output.line(`agrees with the exported checkpoint over rows 1 to ${exported.record.throughSeq}`);
  if (open > 0)
    output.line(
      `The newest ${countOf(open, 'row')} could be cut off unnoticed: \`effectmatch journal --checkpoint\``,
    );
  return EXIT.done;
}

async function seal(
  { ledgers, keyring }: Store,
  { file, signed }: { readonly file: string | undefined; readonly signed: boolean },
  output: Output,
): Promise<ExitCode> {
  const checkpoint = await withProgress('sealing the journal', () => ledgers.checkpoint());
  if (checkpoint !== undefined && file !== undefined) {
    exportFile(
      file,
      signed ? formatSignedCheckpoint(keyring, checkpoint) : formatCheckpoint(checkpoint),
    );
  }
  output.document({ checkpoint: checkpoint ?? null });
  if (checkpoint === undefined) {
    output.line('nothing to seal: the journal is empty');
    return EXIT.done;
  }
  const { throughSeq, chain, at } = checkpoint.record;
  output.line(`sealed rows 1 to ${throughSeq} at ${at}, chain ${chain.slice(0, 16)}`);
  if (file !== undefined)
    output.line(`exported${signed ? ' and signed' : ''} to ${file}; keep it on another machine`);
  return EXIT.done;
}

/** An earlier export is evidence, so it is never overwritten. */
function exportFile(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' });
  } catch (cause) {
    const taken = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST';
    const why = taken ? 'the file exists and is never overwritten' : String(cause);
    const next = 'the rows are sealed all the same; name another file with --export';
    throw new GuidedError(
      'ERR_EM_USAGE',
      `the checkpoint was not exported to ${file}: ${why}`,
      next,
      { cause },
    );
  }
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
