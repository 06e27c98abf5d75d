import { createReadStream, readFileSync, type Stats, statSync } from 'node:fs';
import { MAX_ENVELOPE_BYTES } from '../crypto/dsse.ts';
import { readFields } from '../crypto/handover.ts';
import { type Verified, verifyReceipt } from '../crypto/receipt.ts';
import { parseReceiptKey, parseReceiptKeys, type ReceiptKey } from '../crypto/receipt-key.ts';
import { EffectMatchError, messageOf } from '../errors.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import { quote } from '../protocol/render-text.ts';
import { renderShadow } from '../protocol/shadow.ts';
import { EXIT, type Verb } from './command.ts';
import { describeFault, GuidedError, withNext } from './fault.ts';
import { fold, indent, type Output, toneOf } from './output.ts';
import { showProgress } from './progress.ts';

/** The longest line: an envelope, plus the attributes of the event around it. */
const MAX_LINE_BYTES = MAX_ENVELOPE_BYTES + 16 * 1024;

const PROVES = {
  receipt:
    'The holder of the key recorded this verdict about this attempt, with these digests, and it was not changed since.',
  checkpoint:
    'The holder of the key vouches for these journal rows: a journal that has them must produce this chain.',
  shadow:
    'The holder of the key rehearsed an action and recorded what would have been decided about it.',
  completion:
    'The holder of the key recorded that this dependent work, released by this occurrence, has completed.',
};
const NOT_PROVED = {
  receipt:
    'That the key belongs to the deployment you think it does (compare it over another channel), that its machine was honest, ' +
    'what the backend holds today, or that no other attempt or later settlement has another receipt.',
  checkpoint:
    'That the rows are still there: only `effectmatch journal --verify --against` beside the store shows that.',
  shadow:
    'That anything was decided, committed or released: a shadow is not a verdict, and nothing may depend on it.',
  completion:
    'What the work did: its effects need a verdict, and with it a receipt of that verdict.',
};

const KEY_HELP =
  'give --key what `effectmatch export --public-key` printed, or a file with it; an approver key is something else';

/** Verifies receipts and signed checkpoints with a public key alone. */
export const verb: Verb = {
  summary: 'verify receipts or a signed checkpoint with a public key alone',
  about: `Checks every receipt and signed checkpoint in a file. It needs only the public key of the
deployment. The exit code is ${EXIT.done} if everything in the file is verified, whatever the
verdicts say, and ${EXIT.fault} if anything is not. The verdict itself is printed: a verified
receipt of a rejection is still a rejection.`,
  positionals: ['file'],
  flags: {
    key: {
      value: 'KEY',
      about: 'public key (ed25519:…), or a file with one key per line or one PEM',
    },
  },
  examples: [
    'receipt.jsonl --key receipts.pub',
    'checkpoint-42.json --key ed25519:JUO5L_EJVRFHatyDadtt3JM2ZaEZeN2hQE7hBmypVZ0 --json',
  ],
  async run(args, output) {
    const file = args.first;
    const key = args.value('key');
    if (key === undefined)
      throw args.wrong('--key is missing: without a key that you trust nothing can be verified');
    const keys = withNext('ERR_EM_CONFIG_INVALID', KEY_HELP, () =>
      key.startsWith('ed25519:') ? [parseReceiptKey(key)] : parseReceiptKeys(readWhole(key)),
    );
    const kinds = new Set<Verified['kind']>();
    const documents: Verified[] = [];
    let count = 0;
    // On a terminal, the printed documents already show the progress.
    using progress = process.stdout.isTTY ? undefined : showProgress('verifying');
    for await (const { line, text } of readDocuments(file)) {
      const verified = verifyDocument(keys, text, `${file}, line ${line}`);
      if (output.json) documents.push(verified);
      else print(verified, output);
      kinds.add(verified.kind);
      count += 1;
      progress?.at(`${count} documents`);
    }
    if (count === 0)
      throw new EffectMatchError('ERR_EM_RECORD_INVALID', `${file} holds nothing to verify`);
    output.document({ verified: true, documents });
    printMeaning(kinds, count, output);
  },
};

interface Document {
  readonly line: number;
  readonly text: string;
}

/**
 * The documents in a file: one per line, as an export writes them, or one that spans several lines.
 * Only one is in memory at a time, so the file can have any length.
 */
async function* readDocuments(file: string): AsyncGenerator<Document> {
  let line = 0;
  for await (const text of readLines(file)) {
    line += 1;
    if (line === 1 && text.trim() === '{') {
      yield { line, text: readWhole(file) };
      return;
    }
    if (text.trim() !== '') yield { line, text };
  }
}

async function* readLines(file: string): AsyncGenerator<string> {
  findFile(file);
  let held: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    held = Buffer.concat([held, chunk]);
    for (let end = held.indexOf(10); end !== -1; end = held.indexOf(10)) {
      yield held.toString('utf8', 0, end);
      held = held.subarray(end + 1);
    }
    assertSize(file, held.length);
  }
  if (held.length > 0) yield held.toString('utf8');
}

function readWhole(file: string): string {
  assertSize(file, findFile(file).size);
  return readFileSync(file, 'utf8');
}

function findFile(file: string): Stats {
  const refuse = (why: string, cause?: unknown) =>
    new GuidedError('ERR_EM_NOT_FOUND', `${file} ${why}`, 'check the path', cause);
  try {
    const found = statSync(file);
    if (found.isFile()) return found;
  } catch (cause) {
    throw refuse(`cannot be read: ${messageOf(cause)}`, cause);
  }
  throw refuse('is not a regular file');
}

function assertSize(file: string, bytes: number): void {
  if (bytes <= MAX_LINE_BYTES) return;
  const message = `${file}: a document in it is larger than ${MAX_LINE_BYTES} bytes`;
  throw new EffectMatchError('ERR_EM_RECORD_TOO_LARGE', message);
}

/** Stops at the first fault and reports its place: a partly verified file is not verified. */
function verifyDocument(keys: readonly ReceiptKey[], text: string, place: string): Verified {
  try {
    return verifyReceipt(keys, unwrap(text));
  } catch (cause) {
    if (!(cause instanceof EffectMatchError)) throw cause;
    const { code, message, next } = describeFault(cause);
    throw new GuidedError(code, `${place}: ${message}`, next, cause);
  }
}

const EVENT_FIELDS = [
  'specversion',
  'id',
  'source',
  'type',
  'subject',
  'time',
  'datacontenttype',
  'data',
] as const;

/** The envelope inside an event of `export --format cloudevents`. The rest is not signed. */
function unwrap(text: string): unknown {
  return /^\s*\{\s*"specversion"/.test(text) ? readFields('event', text, EVENT_FIELDS).data : text;
}

function print(verified: Verified, { line, paint }: Output): void {
  const { title, text, ...fields } = describe(verified, paint);
  line(`${paint('good', 'verified')}  ${title}`);
  if (text !== undefined) line(indent(text, 2));
  for (const [name, value] of Object.entries({ ...fields, 'signed by': `key ${verified.keyid}` }))
    line(`  ${name.padEnd(10)} ${value}`);
}

/** A title, the text of a verdict or shadow, and named fields. */
interface Description {
  readonly title: string;
  readonly text?: string;
  readonly [field: string]: string | undefined;
}

function describe(verified: Verified, paint: Output['paint']): Description {
  switch (verified.kind) {
    case 'checkpoint': {
      const { throughSeq, chain, at } = verified.checkpoint;
      return { title: `checkpoint over journal rows 1 to ${throughSeq}`, sealed: at, chain };
    }
    case 'shadow': {
      const { occurrence, task, adapter, basis, recordedAt } = verified.shadow;
      return {
        title: `shadow ${occurrence}: no verdict`,
        text: renderShadow(verified.shadow),
        task: `${quote(task)}, on ${adapter}, compared with: ${basis}`,
        recorded: `${recordedAt}, journal row ${verified.position}`,
      };
    }
    case 'completion': {
      const { occurrence, continuation, lineage, at } = verified.completion;
      return {
        title: `completion of ${quote(continuation)}, released by ${occurrence}`,
        recorded: `${at}, journal row ${verified.position}`,
        license: lineage,
      };
    }
    case 'receipt': {
      const { terminal, position, digest, lineage } = verified.receipt;
      const { occurrence, kind, task, adapter, execution, recordedAt, approved } = terminal;
      return {
        title: `receipt of ${occurrence}: ${paint(toneOf(kind), kind)}`,
        text: renderTerminal(terminal),
        task: `${quote(task)}, on ${adapter}`,
        attempt: execution,
        recorded: `${recordedAt}, journal row ${position}`,
        license: lineage,
        approved,
        terminal: digest,
      };
    }
  }
}

function printMeaning(
  kinds: ReadonlySet<Verified['kind']>,
  count: number,
  { line, paint }: Output,
): void {
  line();
  if (count > 1) line(`${count} documents, all verified.`);
  for (const kind of kinds) {
    line(paint('strong', 'Proves:'));
    for (const part of fold(PROVES[kind], 78)) line(`  ${part}`);
    line(paint('strong', 'Does not prove:'));
    for (const part of fold(NOT_PROVED[kind], 78)) line(`  ${part}`);
  }
}
