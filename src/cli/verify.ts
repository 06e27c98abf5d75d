import { readFields } from '../crypto/handover.ts';
import { type Verified, verifyReceipt } from '../crypto/receipt.ts';
import { parseReceiptKey, parseReceiptKeys, type ReceiptKey } from '../crypto/receipt-key.ts';
import { EffectMatchError } from '../errors.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import { quote } from '../protocol/render-text.ts';
import { renderShadow } from '../protocol/shadow.ts';
import { readDocuments, readWhole } from './envelope-file.ts';
import { EXIT } from './exit-code.ts';
import { describeFault, GuidedError, usageError, withNext } from './guided-error.ts';
import { toneOf } from './journal-entries.ts';
import { indent, type Output } from './output.ts';
import { showProgress } from './progress.ts';
import type { Verb } from './verb.ts';

const PROVES = {
  receipt:
    'The holder of the key recorded this verdict about this attempt, with these digests, and it was not changed since.',
  checkpoint:
    'The holder of the key vouches for these journal rows: a journal that has them must arrive at this chain.',
  shadow:
    'The holder of the key rehearsed an action and recorded what would have been decided about it.',
};
const NOT_PROVED = {
  receipt:
    'That the key belongs to the deployment you think it does (compare it over another channel), that its machine was honest, ' +
    'what the backend holds today, or that there is no other attempt or later settlement with another receipt.',
  checkpoint:
    'That the rows are still there: only `effectmatch journal --verify --against` beside the store shows that.',
  shadow:
    'That anything was decided, committed or released: a shadow is not a verdict, and nothing may depend on it.',
};

const KEY_HELP =
  'give --key what `effectmatch export --public-key` printed, or a file with it; an approver key is something else';

/**
 * Verifies receipts and signed checkpoints with a public key alone: no configuration, store,
 * keyring or network.
 */
export const verify: Verb = {
  name: 'verify',
  summary: 'verify receipts or a signed checkpoint with a public key alone',
  about: `Checks every receipt and signed checkpoint in a file with the public key of the deployment.
It needs no configuration, store, keyring or network. The exit code is ${EXIT.done} when everything in the file is verified,
whatever the verdicts say, and ${EXIT.fault} when anything is not. The verdict itself is printed: a verified receipt of a
rejection is still a rejection.`,
  positionals: ['file'],
  flags: {
    key: {
      value: 'KEY',
      about: 'public key (ed25519:…), or a file with one key per line or one PEM',
    },
  },
  examples: [
    'effectmatch verify receipt.jsonl --key receipts.pub',
    'effectmatch verify checkpoint-42.json --key ed25519:JUO5L_EJVRFHatyDadtt3JM2ZaEZeN2hQE7hBmypVZ0 --json',
  ],
  async run(args, output) {
    const file = args.positionals[0] ?? '';
    const key = args.value('key');
    if (key === undefined)
      throw usageError(
        '--key is missing: without a key that you trust nothing can be verified',
        'verify',
      );
    const keys = withNext('ERR_EM_CONFIG_INVALID', KEY_HELP, () =>
      key.startsWith('ed25519:') ? [parseReceiptKey(key)] : parseReceiptKeys(readWhole(key)),
    );
    const kinds = new Set<Verified['kind']>();
    const documents: Verified[] = [];
    let count = 0;
    // Where documents are printed on the same terminal, they are the progress.
    using progress = process.stdout.isTTY ? undefined : showProgress('verifying');
    for (const { line, text } of readDocuments(file)) {
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
    return EXIT.done;
  },
};

/** One fault ends it, with the place: a file of which a part is not verified is not verified. */
function verifyDocument(keys: readonly ReceiptKey[], text: string, place: string): Verified {
  try {
    return verifyReceipt(keys, unwrap(text));
  } catch (cause) {
    if (!(cause instanceof EffectMatchError)) throw cause;
    const { code, message, next } = describeFault(cause);
    throw new GuidedError(code, `${place}: ${message}`, next, { cause });
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

/**
 * The envelope inside an event that `export --format cloudevents` wrote; what is around it is not
 * signed.
 */
function unwrap(text: string): unknown {
  return /^\s*\{\s*"specversion"/.test(text) ? readFields('event', text, EVENT_FIELDS).data : text;
}

function print(verified: Verified, { line, paint }: Output): void {
  const signedBy = `  signed by  key ${verified.keyid}`;
  if (verified.kind === 'checkpoint') {
    const { throughSeq, chain, at } = verified.checkpoint;
    line(`${paint('good', 'verified')}  checkpoint over journal rows 1 to ${throughSeq}`);
    line(`  sealed     ${at}`);
    line(`  chain      ${chain}`);
    line(signedBy);
    return;
  }
  if (verified.kind === 'shadow') {
    const { shadow, position } = verified;
    line(`${paint('good', 'verified')}  shadow ${shadow.occurrence}: no verdict`);
    line(indent(renderShadow(shadow), 2));
    line(
      `  task       ${quote(shadow.task)}, on ${shadow.adapter}, compared with: ${shadow.basis}`,
    );
    line(`  recorded   ${shadow.recordedAt}, journal row ${position}`);
    line(signedBy);
    return;
  }
  const { terminal, position, digest, lineage } = verified.receipt;
  line(
    `${paint('good', 'verified')}  receipt of ${terminal.occurrence}: ${paint(toneOf(terminal.kind), terminal.kind)}`,
  );
  line(indent(renderTerminal(terminal), 2));
  line(`  task       ${quote(terminal.task)}, on ${terminal.adapter}`);
  line(`  attempt    ${terminal.execution}`);
  line(`  recorded   ${terminal.recordedAt}, journal row ${position}`);
  line(`  license    ${lineage}`);
  line(`  approved   ${terminal.approved}`);
  line(`  terminal   ${digest}`);
  line(signedBy);
}

function printMeaning(
  kinds: ReadonlySet<Verified['kind']>,
  count: number,
  { line, paint }: Output,
): void {
  line();
  if (count > 1) line(`${count} documents, all verified.`);
  for (const kind of kinds) {
    line(`${paint('strong', 'Proves:')} ${PROVES[kind]}`);
    line(`${paint('strong', 'Does not prove:')} ${NOT_PROVED[kind]}`);
  }
}
