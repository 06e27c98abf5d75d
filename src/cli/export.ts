import type { Envelope } from '../crypto/dsse.ts';
import { createSigner } from '../crypto/receipt.ts';
import { receiptKeys } from '../crypto/receipt-key.ts';
import {
  type ShadowEntry,
  shadowEntries,
  type TerminalEntry,
  terminalEntries,
} from '../runtime/receipt.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { type DeploymentRecords, findOccurrence, openRecords, readPrefix } from './deployment.ts';
import { writePrivateFile } from './files.ts';
import { countOf, type Output } from './output.ts';
import { showProgress } from './progress.ts';

const FORMATS = ['jsonl', 'cloudevents'] as const;

/** Exports signed receipts, or the public keys that verify them. It never opens a backend. */
export const verb: Verb = {
  summary: 'write signed receipts that others can verify offline',
  about: `Prints one signed receipt for every verdict in the journal, one per line: a DSSE
envelope around an in-toto statement. \`effectmatch verify\` checks it with the public key alone.
Send the public keys (--public-key) through a different channel than the receipts. A receipt shows the
verdict with its differences, so keep it as confidential as the journal. A shadow has no receipt;
--shadow exports shadows.`,
  flags: {
    occurrence: {
      value: 'ID',
      about: 'only the attempts at one occurrence, given by its id or a unique prefix of it',
      excludes: ['after'],
    },
    after: { value: 'SEQ', about: 'only verdicts after this row of the journal' },
    format: {
      value: 'FORMAT',
      about: 'jsonl (default), or cloudevents: each envelope as the data of one event',
    },
    shadow: {
      about: 'shadows instead of receipts; they are signed too, but they are not verdicts',
    },
    'public-key': {
      about: 'print the public keys of all key generations instead of receipts, newest first',
      excludes: ['occurrence', 'after', 'format', 'shadow'],
    },
    out: { value: 'FILE', about: 'write to a new file that only you can read' },
    force: { about: 'with --out: replace the file if it exists', needs: 'out' },
    ...CONFIG_FLAG,
  },
  examples: ['--occurrence occ_1f3a --out receipt.jsonl', '--public-key --out receipts.pub'],
  async run(args, output) {
    const request = readRequest(args);
    await using records = await openRecords(args);
    if (args.has('public-key')) await exportKeys(records, request, output);
    else await exportEntries(records, request, output);
  },
};

function readRequest(args: Arguments) {
  const occurrence = args.value('occurrence');
  return {
    shadow: args.has('shadow'),
    prefix: occurrence === undefined ? undefined : readPrefix(occurrence),
    after: args.count('after', 0) ?? 0,
    format: args.choice('format', FORMATS) ?? 'jsonl',
    file: args.path('out'),
    force: args.has('force'),
  };
}
type Request = ReturnType<typeof readRequest>;

async function exportEntries(
  records: DeploymentRecords,
  request: Request,
  output: Output,
): Promise<void> {
  const { file } = request;
  const what = request.shadow ? 'shadow' : 'receipt';
  const items = makeItems(records, request);
  if (file !== undefined) {
    using progress = showProgress('exporting');
    const count = await writePrivateFile(file, linesOf(items, progress), request);
    output.document({ [`${what}s`]: count, file });
    output.line(`${countOf(count, what)} written to ${file}`);
  } else if (output.json) {
    output.document({ [`${what}s`]: await Array.fromAsync(items) });
  } else {
    for await (const item of items) output.line(JSON.stringify(item));
  }
}

async function* linesOf(
  items: AsyncIterable<unknown>,
  progress: ReturnType<typeof showProgress>,
): AsyncGenerator<string> {
  let count = 0;
  for await (const item of items) {
    yield JSON.stringify(item);
    count += 1;
    progress.at(String(count));
  }
}

async function exportKeys(
  { keyring }: DeploymentRecords,
  { file, force }: Request,
  output: Output,
): Promise<void> {
  const keys = receiptKeys(keyring).map(({ generation, keyid, publicKey }) => {
    return { generation, keyid, publicKey };
  });
  const lines = keys.map(({ publicKey }) => publicKey);
  if (file !== undefined) await writePrivateFile(file, lines, { force });
  output.document({ keys, ...(file !== undefined && { file }) });
  if (file === undefined) output.line(lines.join('\n'));
  else output.line(`${countOf(lines.length, 'public key')} written to ${file}`);
}

async function* makeItems(
  { ledgers, keyring }: DeploymentRecords,
  { prefix, after, format, shadow }: Request,
): AsyncGenerator<Envelope | ReturnType<typeof wrapEvent>> {
  const signer = createSigner(keyring);
  const which =
    prefix === undefined
      ? { afterSeq: after }
      : { occurrence: await findOccurrence(ledgers, prefix) };
  const entries = shadow ? shadowEntries(ledgers, which) : terminalEntries(ledgers, which);
  for await (const entry of entries) {
    const envelope =
      entry.kind === 'shadow'
        ? signer.shadow(entry.record, entry.seq)
        : signer.receipt(entry.record, entry.seq);
    yield format === 'jsonl' ? envelope : wrapEvent(entry, envelope);
  }
}

/** A CloudEvent 1.0. Only `data` is signed; the other fields are for routing. */
function wrapEvent(entry: TerminalEntry | ShadowEntry, data: Envelope) {
  const { seq, record } = entry;
  const { id, type } =
    entry.kind === 'shadow'
      ? { id: record.occurrence, type: `shadow.${entry.record.would}` }
      : { id: entry.record.execution, type: `terminal.${entry.record.kind}` };
  return {
    specversion: '1.0',
    id: `${id}-${seq}`,
    source: 'urn:effectmatch:journal',
    type: `effectmatch.${type}`,
    subject: record.occurrence,
    time: record.recordedAt,
    datacontenttype: 'application/json',
    data,
  };
}
