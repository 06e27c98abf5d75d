import { resolve } from 'node:path';
import type { Envelope } from '../crypto/dsse.ts';
import { createSigner } from '../crypto/receipt.ts';
import { receiptKeys } from '../crypto/receipt-key.ts';
import {
  type ShadowEntry,
  shadowEntries,
  type TerminalEntry,
  terminalEntries,
} from '../runtime/receipt.ts';
import { type Arguments, CONFIG_FLAG } from './arguments.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { findOccurrence, readPrefix } from './find-occurrence.ts';
import { usageError } from './guided-error.ts';
import { loadConfig } from './load-config.ts';
import { openStore, type Store } from './open-store.ts';
import type { Output } from './output.ts';
import { writePrivateFile } from './private-file.ts';
import { showProgress } from './progress.ts';
import type { Verb } from './verb.ts';

const FORMATS = ['jsonl', 'cloudevents'] as const;
type Format = (typeof FORMATS)[number];

/**
 * Hands out signed receipts, or the public keys that verify them. It opens keyring and store only,
 * never a backend.
 */
export const exportReceipts: Verb = {
  name: 'export',
  summary: 'write signed receipts of what was decided, for people who cannot see this store',
  about: `Prints one signed receipt for every verdict in the journal, one per line: a DSSE envelope around an in-toto
statement. Anyone with the public key can check it with \`effectmatch verify\`, without this store, its keyring or a
network. Give the public keys (--public-key) to that person by another way than the receipts. A receipt shows
the stored verdict with its differences, so keep it as confidential as the journal. A shadow is no verdict: it has no
receipt, and --shadow exports it as what it is.`,
  positionals: [],
  flags: {
    occurrence: {
      value: 'ID',
      about: 'only the attempts at one occurrence; any unique beginning of the id will do',
    },
    after: { value: 'SEQ', about: 'only verdicts that follow this row of the journal' },
    format: {
      value: 'FORMAT',
      about: 'jsonl (default), or cloudevents: each envelope as the data of one event',
    },
    shadow: { about: 'shadows in place of receipts: signed too, and no verdicts' },
    'public-key': {
      about: 'print the public keys of all key generations in place of receipts, newest first',
    },
    out: { value: 'FILE', about: 'write to a new file that only you can read' },
    force: { about: 'with --out: replace the file if it exists' },
    ...CONFIG_FLAG,
  },
  examples: [
    'effectmatch export --occurrence occ_1f3a --out receipt.jsonl',
    'effectmatch export --after 120 --format cloudevents',
    'effectmatch export --public-key --out receipts.pub',
  ],
  async run(args, output) {
    const request = readRequest(args);
    const config = await loadConfig(args);
    await using store = await openStore(config);
    return request.publicKey
      ? await exportKeys(store, request, output)
      : await exportAll(store, request, output);
  },
};

interface Request {
  readonly publicKey: boolean;
  readonly shadow: boolean;
  readonly prefix: string | undefined;
  readonly after: number | undefined;
  readonly format: Format;
  readonly file: string | undefined;
  readonly force: boolean;
}

function readRequest(args: Arguments): Request {
  const publicKey = args.has('public-key');
  for (const [flag, other] of [
    ['occurrence', 'after'],
    ['public-key', 'occurrence'],
    ['public-key', 'after'],
    ['public-key', 'format'],
    ['public-key', 'shadow'],
  ] as const) {
    if (args.has(flag) && args.has(other))
      throw usageError(`--${other} does not go together with --${flag}`, 'export');
  }
  if (args.has('force') && !args.has('out')) throw usageError('--force needs --out', 'export');
  const word = args.value('format') ?? 'jsonl';
  const format = FORMATS.find((known) => known === word);
  if (format === undefined)
    throw usageError(`--format takes one of ${FORMATS.join(', ')}, not "${word}"`, 'export');
  const [occurrence, file] = [args.value('occurrence'), args.value('out')];
  return {
    publicKey,
    shadow: args.has('shadow'),
    prefix: occurrence === undefined ? undefined : readPrefix(occurrence, 'export'),
    after: args.count('after', 0),
    format,
    file: file === undefined ? undefined : resolve(file),
    force: args.has('force'),
  };
}

async function exportAll(store: Store, request: Request, output: Output): Promise<ExitCode> {
  const { file, force } = request;
  const items = makeItems(store, request);
  if (file !== undefined) {
    const what = request.shadow ? 'shadow' : 'receipt';
    const count = await writeCounted(file, toLines(items), { force, what });
    output.document({ [`${what}s`]: count, file });
    output.line(`${count} ${what}${count === 1 ? '' : 's'} written to ${file}`);
  } else if (output.json) {
    output.document({ [request.shadow ? 'shadows' : 'receipts']: await Array.fromAsync(items) });
  } else {
    for await (const line of toLines(items)) output.line(line);
  }
  return EXIT.done;
}

async function writeCounted(
  file: string,
  lines: AsyncIterable<string>,
  { force, what }: { readonly force: boolean; readonly what: string },
): Promise<number> {
  using progress = showProgress('exporting');
  let count = 0;
  const counted = async function* () {
    for await (const line of lines) {
      yield line;
      count += 1;
      progress.at(`${count} ${what}s`);
    }
  };
  return await writePrivateFile(file, counted(), { force });
}

async function exportKeys(
  { keyring }: Store,
  { file, force }: Request,
  output: Output,
): Promise<ExitCode> {
  const keys = receiptKeys(keyring).map(({ generation, keyid, publicKey }) => ({
    generation,
    keyid,
    publicKey,
  }));
  const lines = keys.map(({ publicKey }) => publicKey);
  if (file !== undefined) await writePrivateFile(file, lines, { force });
  output.document({ keys, ...(file !== undefined && { file }) });
  for (const line of file === undefined
    ? lines
    : [`${lines.length} public ${lines.length === 1 ? 'key' : 'keys'} written to ${file}`])
    output.line(line);
  return EXIT.done;
}

async function* makeItems(store: Store, request: Request): AsyncGenerator<Envelope | CloudEvent> {
  const { prefix, after, format, shadow } = request;
  const { ledgers, keyring } = store;
  const signer = createSigner(keyring);
  const occurrence = prefix === undefined ? undefined : await findOccurrence(ledgers, prefix);
  const which = occurrence === undefined ? { afterSeq: after ?? 0 } : { occurrence };
  for await (const entry of shadow
    ? shadowEntries(ledgers, which)
    : terminalEntries(ledgers, which)) {
    const envelope =
      entry.kind === 'shadow'
        ? signer.shadow(entry.record, entry.seq)
        : signer.receipt(entry.record, entry.seq);
    yield format === 'jsonl' ? envelope : wrapEvent(entry, envelope);
  }
}

async function* toLines(items: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const item of items) yield JSON.stringify(item);
}

/** CloudEvents 1.0. Only `data` is signed: everything beside it is for routing. */
interface CloudEvent {
  readonly specversion: '1.0';
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject: string;
  readonly time: string;
  readonly datacontenttype: 'application/json';
  readonly data: Envelope;
}

function wrapEvent(entry: TerminalEntry | ShadowEntry, data: Envelope): CloudEvent {
  const { seq, record } = entry;
  return {
    specversion: '1.0',
    id: `${entry.kind === 'shadow' ? record.occurrence : entry.record.execution}-${seq}`,
    source: 'urn:effectmatch:journal',
    type:
      entry.kind === 'shadow'
        ? `effectmatch.shadow.${entry.record.would}`
        : `effectmatch.terminal.${entry.record.kind}`,
    subject: record.occurrence,
    time: record.recordedAt,
    datacontenttype: 'application/json',
    data,
  };
}
